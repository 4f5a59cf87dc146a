package sync

import (
	"testing"
	"time"
)

// at reads a time of day in a zone.
func at(t *testing.T, zone, text string) time.Time {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	moment, err := time.ParseInLocation("2006-01-02 15:04:05", text, loc)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestNextMoment(t *testing.T) {
	const shanghai, york, berlin = "Asia/Shanghai", "America/New_York", "Europe/Berlin"
	cases := map[string]struct{ schedule, zone, after, want string }{
		"every five minutes is on the clock":  {"@every 5m", shanghai, "2026-09-15 10:02:03", "2026-09-15 10:05:00"},
		"the moment itself is past":           {"@every 5m", shanghai, "2026-09-15 10:05:00", "2026-09-15 10:10:00"},
		"every 90 seconds":                    {"@every 90s", "UTC", "2026-09-15 00:00:01", "2026-09-15 00:01:30"},
		"the fields are in the zone":          {"0 2 * * *", shanghai, "2026-09-15 10:00:00", "2026-09-16 02:00:00"},
		"a zone of its own is stronger":       {"CRON_TZ=UTC 0 2 * * *", shanghai, "2026-09-15 03:00:00", "2026-09-15 10:00:00"},
		"working days only":                   {"0 9 * * 1-5", shanghai, "2026-09-18 09:00:00", "2026-09-21 09:00:00"},
		"the leap day":                        {"0 0 29 2 *", shanghai, "2026-03-01 00:00:00", "2028-02-29 00:00:00"},
		"a night without 02:30 runs at 03:00": {"30 2 * * *", york, "2026-03-07 02:30:00", "2026-03-08 03:00:00"},
		"and not once more at 03:30":          {"30 2 * * *", york, "2026-03-08 03:00:00", "2026-03-09 02:30:00"},
		"the night before is as ever":         {"30 2 * * *", york, "2026-03-06 02:30:00", "2026-03-07 02:30:00"},
		"many lost moments are one run":       {"*/5 2 * * *", berlin, "2026-03-28 02:55:00", "2026-03-29 03:00:00"},
		"an interval walks over the jump":     {"*/5 * * * *", berlin, "2026-03-29 01:55:00", "2026-03-29 03:00:00"},
		"a moment outside the jump is kept":   {"30 4 * * *", berlin, "2026-03-28 04:30:00", "2026-03-29 04:30:00"},
		"a jump in another year does nothing": {"0 12 1 1 *", berlin, "2026-01-01 12:00:00", "2027-01-01 12:00:00"},
		"the hour that comes twice: daily":    {"30 3 * * *", berlin, "2026-10-25 03:30:00", "2026-10-26 03:30:00"},
		"@daily after the long day":           {"@daily", berlin, "2026-10-25 00:00:00", "2026-10-26 00:00:00"},
		"a zone that jumps by half an hour":   {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03 02:15:00", "2026-10-04 02:30:00"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			from, want := at(t, c.zone, c.after), at(t, c.zone, c.want)
			s, err := parseSchedule(c.schedule, from.Location())
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Next(from); !got.Equal(want) {
				t.Errorf("after %v comes %v, want %v", from, got.In(from.Location()), want)
			}
		})
	}
}

func TestEveryMomentOfAYearComesOnceAndInOrder(t *testing.T) {
	for _, zone := range []string{"Asia/Shanghai", "America/New_York", "Europe/Berlin", "UTC"} {
		for text, wanted := range map[string][2]int{"30 2 * * *": {365, 366}, "15 1 * * *": {365, 366}, "0 */6 * * *": {1460, 1460}} {
			from, end := at(t, zone, "2026-01-01 00:00:00"), at(t, zone, "2027-01-01 00:00:00")
			s, err := parseSchedule(text, from.Location())
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for moment := s.Next(from.Add(-time.Second)); moment.Before(end); n++ {
				next := s.Next(moment)
				if !next.After(moment) {
					t.Fatalf("%s in %s: after %v comes %v", text, zone, moment, next)
				}
				moment = next
			}
			if n < wanted[0] || n > wanted[1] {
				t.Errorf("%s in %s: %d moments in a year, want %d to %d", text, zone, n, wanted[0], wanted[1])
			}
		}
	}
}

func TestOverdue(t *testing.T) {
	const zone = "Asia/Shanghai"
	cases := map[string]struct {
		schedule, last, now string
		want                bool
	}{
		"never synced":                       {"@every 5m", "", "2026-09-15 10:00:00", true},
		"younger than a period":              {"@every 5m", "2026-09-15 10:00:30", "2026-09-15 10:04:00", false},
		"older than a period":                {"@every 5m", "2026-09-15 09:50:30", "2026-09-15 10:04:00", true},
		"the night's run was missed":         {"0 2 * * *", "2026-09-14 02:01:00", "2026-09-15 03:00:00", true},
		"the night's run is still to come":   {"0 2 * * *", "2026-09-14 02:01:00", "2026-09-15 01:59:00", false},
		"missed, though yesterday was late":  {"0 2 * * *", "2026-09-14 18:00:00", "2026-09-15 03:00:00", true},
		"no run on a Sunday is no miss":      {"0 9 * * 1-5", "2026-09-18 09:01:00", "2026-09-20 12:00:00", false},
		"a success in the future is a fresh": {"@every 5m", "2026-09-15 10:09:00", "2026-09-15 10:00:00", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			now := at(t, zone, c.now)
			s, err := parseSchedule(c.schedule, now.Location())
			if err != nil {
				t.Fatal(err)
			}
			var last time.Time
			if c.last != "" {
				last = at(t, zone, c.last)
			}
			if got := overdue(s, last, now); got != c.want {
				t.Errorf("overdue: %v", got)
			}
		})
	}
}

func TestJitterStaysWithinItsBounds(t *testing.T) {
	cases := map[string]struct {
		schedule string
		most     time.Duration
		want     time.Duration
	}{
		"a tenth of a short period": {"@every 1m", 30 * time.Second, 6 * time.Second},
		"the setting of a long one": {"@every 1h", 30 * time.Second, 30 * time.Second},
		"none when it is off":       {"@every 1h", 0, 0},
		"of the next interval":      {"0,10 * * * *", time.Hour, time.Minute},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			moment := at(t, "UTC", "2026-09-15 10:00:00")
			s, err := parseSchedule(c.schedule, time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			bound := jitterBound(s, moment, c.most)
			if bound != c.want {
				t.Fatalf("bound %v, want %v", bound, c.want)
			}
			different := map[time.Duration]bool{}
			for seed := range uint64(200) {
				d := jitter(seed, moment, bound)
				if d < 0 || d > bound {
					t.Fatalf("seed %d: %v is out of 0 to %v", seed, d, bound)
				}
				different[d] = true
			}
			if bound > 0 && len(different) < 100 {
				t.Errorf("only %d different delays", len(different))
			}
		})
	}
}
