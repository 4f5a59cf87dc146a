package mirror

import (
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

// reading is a value of a record's time and what it reads as, "" for nothing.
type reading struct{ name, value, want string }

func TestTimesThatCanBeRead(t *testing.T) { readTimes(t, readableTimes()) }

func readableTimes() []reading {
	return []reading{
		{"RFC 3339", `"2026-09-14T18:20:31+08:00"`, "2026-09-14T10:20:31Z"},
		{"Z", `"2026-09-14T10:20:31Z"`, "2026-09-14T10:20:31Z"},
		{"lower case", `"2026-09-14t10:20:31z"`, "2026-09-14T10:20:31Z"},
		{"nine digits are cut", `"2026-12-31T23:59:59.999999999Z"`, "2026-12-31T23:59:59.999999Z"},
		{"one digit", `"2026-09-14T10:20:31.5Z"`, "2026-09-14T10:20:31.5Z"},
		{"a comma", `"2026-09-14T10:20:31,25Z"`, "2026-09-14T10:20:31.25Z"},
		{"a space for the T, no zone", `"2026-09-14 18:20:31"`, "2026-09-14T10:20:31Z"},
		{"no seconds", `"2026-09-14 18:20"`, "2026-09-14T10:20:00Z"},
		{"a date", `"2026-09-14"`, "2026-09-13T16:00:00Z"},
		{"zone without colon", `"2026-09-14T10:20:31-0330"`, "2026-09-14T13:50:31Z"},
		{"zone of hours", `"2026-09-14 10:20:31 +08"`, "2026-09-14T02:20:31Z"},
		{"summer time of 1988", `"1988-07-01 09:00:00"`, "1988-07-01T00:00:00Z"},
		{"24:00", `"2026-12-31T24:00:00Z"`, "2027-01-01T00:00:00Z"},
		{"a leap second", `"2016-12-31T23:59:60Z"`, "2017-01-01T00:00:00Z"},
		{"29 February", `"2024-02-29T00:00:00Z"`, "2024-02-29T00:00:00Z"},
		{"epoch seconds", `1789381231`, "2026-09-14T10:20:31Z"},
		{"epoch seconds as text", `"1789381231"`, "2026-09-14T10:20:31Z"},
		{"epoch seconds with a fraction", `1789381231.1234567`, "2026-09-14T10:20:31.123456Z"},
		{"epoch milliseconds", `1789381231123`, "2026-09-14T10:20:31.123Z"},
		{"epoch milliseconds as text", `"1789381231123"`, "2026-09-14T10:20:31.123Z"},
		{"epoch milliseconds with a fraction", `1789381231123.5`, "2026-09-14T10:20:31.1235Z"},
		{"the last second", `"9999-12-31T23:59:59Z"`, "9999-12-31T23:59:59Z"},
	}
}

func TestTimesThatStayNull(t *testing.T) { readTimes(t, unreadableTimes()) }

func unreadableTimes() []reading {
	return []reading{
		{"zero date", `"0000-00-00"`, ""},
		{"zero date and time", `"0000-00-00 00:00:00"`, ""},
		{"year 0", `"0000-01-01T00:00:00Z"`, ""},
		{"year 24989", `"24989-01-01T00:00:00Z"`, ""},
		{"year 10000 by its zone", `"9999-12-31T23:59:59-01:00"`, ""},
		{"year 0 by its zone", `"0001-01-01T00:00:00+08:00"`, ""},
		{"24:00 of the last day", `"9999-12-31T24:00:00Z"`, ""},
		{"empty", `""`, ""},
		{"null", `null`, ""},
		{"true", `true`, ""},
		{"an object", `{"$date":1789381231123}`, ""},
		{"30 February", `"2026-02-30T00:00:00Z"`, ""},
		{"29 February of another year", `"2026-02-29"`, ""},
		{"month 13", `"2026-13-01"`, ""},
		{"hour 25", `"2026-01-01T25:00:00Z"`, ""},
		{"24:01", `"2026-01-01T24:01:00Z"`, ""},
		{"second 60 in mid-hour", `"2026-01-01T12:30:60Z"`, ""},
		{"second 61", `"2026-01-01T23:59:61Z"`, ""},
		{"an hour that summer time skipped", `"1986-05-04 02:30:00"`, ""},
		{"words that PostgreSQL takes", `"now"`, ""},
		{"infinity", `"infinity"`, ""},
		{"a zone's name", `"2026-01-01 00:00:00 Asia/Shanghai"`, ""},
		{"a zone of 16 hours", `"2026-01-01T00:00:00+16:00"`, ""},
		{"a dot without digits", `"2026-01-01T00:00:00.Z"`, ""},
		{"something behind", `"2026-01-01T00:00:00Zx"`, ""},
		{"slashes", `"2026/01/01"`, ""},
		{"date without punctuation", `20260914`, ""},
		{"date and minute without punctuation", `"202609141020"`, ""},
		{"date and second without punctuation", `"20260914102031"`, ""},
		{"epoch zero", `0`, ""},
		{"negative", `-1789381231`, ""},
		{"an exponent", `1.789381231e9`, ""},
		{"microseconds", `1789381231123456`, ""},
		{"full-width digits", `"２０２６-01-01"`, ""},
		{"long", `"` + strings.Repeat("1", 1000) + `"`, ""},
	}
}

func readTimes(t *testing.T, tests []reading) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			at, ok := parseTime([]byte(tt.value), shanghai(t))
			got := ""
			if ok {
				got = at.Format(time.RFC3339Nano)
			}
			if got != tt.want {
				t.Errorf("%s reads as %q, want %q", tt.value, got, tt.want)
			}
		})
	}
}

// FuzzTime holds that a time which is read is the one that was written: what
// RFC 3339 can say too, the standard library reads the same.
func FuzzTime(f *testing.F) {
	for _, s := range []string{"2026-09-14T18:20:31.123456789+08:00", "2026-09-14 18:20", "1789381231", "1789381231123.5", "0000-00-00", "2016-12-31T23:59:60Z", "24:00", "\\u0032"} {
		f.Add(s)
	}
	zone := shanghai(f)
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, `"\`) {
			return // not what normalize lets through
		}
		at, ok := parseTime([]byte(`"`+text+`"`), zone)
		if ok && (at.Year() < minYear || at.Year() > maxYear || at.Nanosecond()%1000 != 0 || at.Location() != time.UTC) {
			t.Fatalf("%q reads as %v", text, at)
		}
		if std, err := time.Parse(time.RFC3339Nano, text); err == nil && ok && !std.Truncate(time.Microsecond).Equal(at) {
			t.Fatalf("%q reads as %v, the standard library says %v", text, at, std)
		}
		if std, err := time.ParseInLocation(time.DateTime, text, zone); err == nil && ok && !std.Truncate(time.Microsecond).Equal(at) {
			t.Fatalf("%q reads as %v, the standard library says %v", text, at, std)
		}
	})
}

// The function behind typed columns of times reads as the column modify_time does.
func TestTheDatabaseReadsTimesAsWeDo(t *testing.T) {
	url := localpg.Database(t)
	m, err := Open(t.Context(), Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	if _, err := m.Migrate(t.Context(), []string{"users"}, false); err != nil {
		t.Fatal(err)
	}
	for _, tt := range append(readableTimes(), unreadableTimes()...) {
		if tt.name == "an exponent" {
			continue // jsonb has written it out before anybody can see it
		}
		var got *time.Time
		if err := m.pool.QueryRow(t.Context(), "select xiaoqu._time($1::jsonb, 'Asia/Shanghai')", tt.value).Scan(&got); err != nil {
			t.Errorf("%s: %s: %v", tt.name, tt.value, err)
			continue
		}
		text := ""
		if got != nil {
			text = got.UTC().Format(time.RFC3339Nano)
		}
		if text != tt.want {
			t.Errorf("%s: %s reads as %q, want %q", tt.name, tt.value, text, tt.want)
		}
	}
}

// The cut-off of a page is a text already, whatever it begins with.
func TestATextIsNotUnquotedTwice(t *testing.T) {
	for _, text := range []string{`"`, `""`, `"2026-09-15T10:00:00Z"`, ``, `"\`} {
		if at, ok := ParseTime(text, time.UTC); ok {
			t.Errorf("%q reads as %v", text, at)
		}
	}
	if _, ok := ParseTime("2026-09-15T10:00:00Z", time.UTC); !ok {
		t.Error("a good one does not read")
	}
}
