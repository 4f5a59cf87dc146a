package mirror

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func shanghai(t testing.TB) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func TestRowIdentity(t *testing.T) {
	long := strings.Repeat("x", maxIDBytes)
	tests := []struct{ name, record, id, reason string }{
		{"a string", `{"id":"u-1"}`, "u-1", ""},
		{"an escaped string", `{"\u0069d":"a\u002fb\n"}`, "a/b\n", ""},
		{"an integer beyond 2^53", `{"id":9007199254740993}`, "9007199254740993", ""},
		{"20 digits", `{"id":12345678901234567890}`, "12345678901234567890", ""},
		{"a negative integer", `{"id":-12345678901234567890}`, "-12345678901234567890", ""},
		{"21 digits", `{"id":123456789012345678901}`, "", reasonIDLong},
		{"a fraction", `{"id":1.0}`, "", reasonIDKind},
		{"an exponent", `{"id":1e3}`, "", reasonIDKind},
		{"an object", `{"id":{"v":1}}`, "", reasonIDKind},
		{"a boolean", `{"id":true}`, "", reasonIDKind},
		{"null", `{"id":null}`, "", reasonIDKind},
		{"missing", `{"ID":"x","nested":{"id":"y"}}`, "", reasonNoID},
		{"empty", `{"id":""}`, "", reasonIDEmpty},
		{"2,000 bytes", `{"id":"` + long + `"}`, long, ""},
		{"2,001 bytes", `{"id":"` + long + `x"}`, "", reasonIDLong},
		{"NUL", `{"id":"a\u0000"}`, "", reasonIDText},
		{"a lone surrogate", `{"id":"a\udc00"}`, "", reasonIDText},
		{"invalid UTF-8", "{\"id\":\"a\xff\"}", "", reasonIDText},
		{"U+FFFD as sent", `{"id":"a` + "\uFFFD" + `"}`, "a\uFFFD", ""},
		{"twice: the last", `{"id":"a","id":"b"}`, "b", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, reason := newDecoder(time.UTC).decode(json.RawMessage(tt.record))
			if r.id != tt.id || reason != tt.reason {
				t.Errorf("id %q, reason %q", r.id, reason)
			}
		})
	}
}

func TestTheIDOfARefusedRecordIsStorableOrNone(t *testing.T) {
	for record, want := range map[string]string{
		`{"x":1e5000,"id":"a"}`:           "a",
		`{"id":17,"x":1e5000}`:            "17",
		`{"id":"a\u0000b"}`:               "",
		`{"id":"a\udc00"}`:                "",
		"{\"id\":\"a\xff\",\"x\":1e9999}": "",
		`{"id":{"id":"a"}}`:               "",
		`[{"id":"a"}]`:                    "",
		`{"id":"a"`:                       "a",
	} {
		if got := refusedID([]byte(record)); got != want {
			t.Errorf("%q: id %q, want %q", record, got, want)
		}
	}
}

func TestRowBounds(t *testing.T) {
	nested := func(n int) string { return `{"id":1,"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	number := func(text string) string { return `{"id":1,"x":` + text + `}` }
	tests := []struct{ name, record, reason string }{
		{"depth at the limit", nested(maxDepth - 1), ""},
		{"depth beyond", nested(maxDepth), reasonDepth},
		{"depth far beyond", nested(100_000), reasonDepth},
		{"1e400", number("1e400"), ""},
		{"exponent at the limit", number("-1.5E+1000"), ""},
		{"exponent beyond", number("1e1001"), reasonNumber},
		{"small exponent beyond", number("1e-1001"), reasonNumber},
		{"exponent that overflows an int", number("1e99999999999999999999999"), reasonNumber},
		{"exponent with zeros", number("1e-0000000000000000000000012"), ""},
		{"digits at the limit", number(strings.Repeat("9", maxNumberDigits)), ""},
		{"digits beyond", number(strings.Repeat("9", maxNumberDigits+1)), reasonNumber},
		{"number within an array within an object", `{"id":1,"a":[{"b":[1e9999]}]}`, reasonNumber},
		{"too many values", number("[" + strings.Repeat("1,", maxValues) + "1]"), reasonValues},
		{"a fat record", `{"id":1,"x":"` + strings.Repeat("字", 2<<20) + `"}`, ""},
		{"too fat", `{"id":1,"x":"` + strings.Repeat("x", maxRecordBytes) + `"}`, reasonSize},
		{"not an object", `"id"`, reasonObject},
		{"null", `null`, reasonObject},
		{"nothing", ``, reasonSyntax},
		{"cut short", `{"id":"a"`, reasonSyntax},
		{"brackets in a text", `{"id":"` + strings.Repeat("[", 2*maxDepth) + `\"` + `[",}`, reasonSyntax},
		{"two values", `{"id":"a"} {}`, reasonSyntax},
		{"an empty object", `{}`, reasonNoID},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, reason := newDecoder(time.UTC).decode(json.RawMessage(tt.record)); reason != tt.reason {
				t.Errorf("reason %q, want %q", reason, tt.reason)
			}
		})
	}
}

// dirty are records whose text needs care; want is the record as it is stored, ""
// when it is the record as sent.
var dirty = []struct {
	name, record, want string
	mended             bool
}{
	{"NUL in a value", `{"id":"1","x":"a\u0000b"}`, "{\"id\":\"1\",\"x\":\"a\uFFFDb\"}", true},
	{"NUL in a nested value", `{"id":"1","x":[{"y":"\u0000"}]}`, "{\"id\":\"1\",\"x\":[{\"y\":\"\uFFFD\"}]}", true},
	{"NUL in a key", `{"id":"1","a\u0000":1}`, "{\"id\":\"1\",\"a\uFFFD\":1}", true},
	{"the text of an escaped NUL", `{"id":"1","x":"\\u0000","y":"\\\\u0000"}`, "", false},
	{"both", `{"id":"1","x":"\\u0000\u0000\\\u0000"}`, `{"id":"1","x":"\\u0000` + "\uFFFD" + `\\` + "\uFFFD" + `"}`, true},
	{"a lone high surrogate", `{"id":"1","x":"\ud800"}`, "{\"id\":\"1\",\"x\":\"\uFFFD\"}", true},
	{"a lone low surrogate in a key", `{"id":"1","\udc00":1}`, "{\"id\":\"1\",\"\uFFFD\":1}", true},
	{"a reversed pair", `{"id":"1","x":"\udc00\ud800"}`, "{\"id\":\"1\",\"x\":\"\uFFFD\uFFFD\"}", true},
	{"a surrogate pair", `{"id":"1","x":"\ud83d\ude00"}`, `{"id":"1","x":"😀"}`, false},
	{"invalid UTF-8", "{\"id\":\"1\",\"x\":\"a\xffb\"}", "{\"id\":\"1\",\"x\":\"a\uFFFDb\"}", true},
	{"emoji, flags, rare characters", `{"id":"1","x":"👩‍👩‍👧🇨🇳𠮷龘"}`, "", false},
	{"control characters", `{"id":"1","x":"\u0001\t\n\u007f"}`, "{\"id\":\"1\",\"x\":\"\\u0001\\t\\n\u007f\"}", false},
	{"U+FFFD as sent", "{\"id\":\"1\",\"x\":\"\uFFFD\"}", "", false},
	{"a name twice", `{"id":"1","x":1,"x":2}`, "", false},
}

func TestRowText(t *testing.T) {
	for _, tt := range dirty {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			if want == "" {
				want = tt.record
			}
			r, reason := newDecoder(time.UTC).decode(json.RawMessage(tt.record))
			if reason != "" || string(r.record) != want || r.mended != tt.mended {
				t.Errorf("%q, mended %v, reason %q; want %q", r.record, r.mended, reason, want)
			}
		})
	}
}

func TestContentHash(t *testing.T) {
	hash := func(record string) [16]byte {
		r, reason := newDecoder(time.UTC).decode(json.RawMessage(record))
		if reason != "" {
			t.Fatalf("%s: %s", record, reason)
		}
		return r.hash
	}
	base := `{"id":"1","b":[{"y":1,"x":"é"},2],"a":{"d":{"f":1,"e":2},"c":null}}`
	same := []string{
		`{"a":{"c":null,"d":{"e":2,"f":1}},"b":[{"x":"é","y":1},2],"id":"1"}`,
		"{ \"b\" : [ {\"x\":\"\\u00e9\",\"y\":1} , 2 ],\n\"id\":\"1\",\"a\":{\"d\":{\"e\":2,\"f\":1},\"c\":null} }",
	}
	for _, s := range same {
		if hash(s) != hash(base) {
			t.Errorf("%s is the same content", s)
		}
	}
	other := []string{
		`{"id":"1","b":[2,{"y":1,"x":"é"}],"a":{"d":{"f":1,"e":2},"c":null}}`,
		`{"id":"1","b":[{"y":1.0,"x":"é"},2],"a":{"d":{"f":1,"e":2},"c":null}}`,
		`{"id":"1","b":[{"y":1,"x":"é"},2],"a":{"d":{"f":1,"e":2}}}`,
		`{"id":"1","b":[{"y":"1","x":"é"},2],"a":{"d":{"f":1,"e":2},"c":null}}`,
	}
	for _, s := range other {
		if hash(s) == hash(base) {
			t.Errorf("%s is other content", s)
		}
	}
	if hash(`{"id":1,"x":1,"x":2}`) == hash(`{"id":1,"x":2,"x":1}`) {
		t.Error("of one name the last counts, so the order is content")
	}
	if hash(`{"id":1,"ab":1,"a":2}`) != hash(`{"id":1,"a":2,"ab":1}`) {
		t.Error("a name that begins another")
	}
}

func TestDecoderIsReusable(t *testing.T) {
	d := newDecoder(time.UTC)
	first, _ := d.decode([]byte(`{"id":"a","version":"v","deleted_at":"x","modify_time":"2026-01-01T00:00:00Z"}`))
	kept := bytes.Clone(first.record)
	for i := range 1000 {
		r, reason := d.decode(fmt.Appendf(nil, `{"id":"%d"}`, i))
		if reason != "" || r.tombstone || r.versioned || !r.modified.IsZero() {
			t.Fatalf("record %d remembers another: %+v %s", i, r, reason)
		}
	}
	if !bytes.Equal(first.record, kept) {
		t.Error("a later record overwrote an earlier one")
	}
}

func TestRowColumns(t *testing.T) {
	at := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		name, fields string
		want         row
	}{
		{"snake case", `"modify_time":"2026-09-01T00:00:00Z"`, row{modified: at}},
		{"camel case", `"modifyTime":"2026-09-01T00:00:00Z"`, row{modified: at}},
		{"an empty one does not hide the other", `"deleted_at":"","deletedAt":"2026-09-01T00:00:00Z"`, row{deleted: at, tombstone: true}},
		{"an unusable time is null", `"modify_time":"soon"`, row{}},
		{"version as number", `"version":1.50`, row{version: "1.50", versioned: true}},
		{"empty version", `"version":""`, row{versioned: true}},
		{"version of another kind", `"version":[1]`, row{}},
		{"null version", `"version":null`, row{}},
		{"only the top level counts", `"x":{"deleted_at":"2026-09-01T00:00:00Z","version":1}`, row{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, reason := newDecoder(time.UTC).decode(json.RawMessage(`{"id":"1",` + tt.fields + `}`))
			got := row{modified: r.modified, deleted: r.deleted, tombstone: r.tombstone, version: r.version, versioned: r.versioned}
			if reason != "" || got.modified != tt.want.modified || got.deleted != tt.want.deleted || got.tombstone != tt.want.tombstone ||
				got.version != tt.want.version || got.versioned != tt.want.versioned {
				t.Errorf("%+v, want %+v (%s)", got, tt.want, reason)
			}
		})
	}
}

func TestHugeRecordIsKeptInPart(t *testing.T) {
	huge := bytes.Repeat([]byte("x"), maxRecordBytes+1)
	p := NewBatch([]json.RawMessage{huge}, time.UTC)
	if len(p.notes) != 1 || len(p.notes[0].raw) != keptOfHuge || p.notes[0].length != len(huge) {
		t.Errorf("%d notes", len(p.notes))
	}
}
