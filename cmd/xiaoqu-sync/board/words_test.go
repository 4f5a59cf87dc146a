package board

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var verb = regexp.MustCompile(`%(?:\[\d\])?[.0-9]*[a-z]`)

func TestBothLanguagesSayEverything(t *testing.T) {
	en, zh := reflect.ValueOf(english()), reflect.ValueOf(chinese())
	for i := range en.NumField() {
		name := en.Type().Field(i).Name
		if en.Field(i).Kind() == reflect.Map {
			if diff := cmp.Diff(mapKeys(en.Field(i)), mapKeys(zh.Field(i))); diff != "" {
				t.Errorf("%s (-english +chinese):\n%s", name, diff)
			}
			continue
		}
		a, b := en.Field(i).String(), zh.Field(i).String()
		if a == "" || b == "" {
			t.Errorf("%s: %q, %q", name, a, b)
		}
		if va, vb := verb.FindAllString(a, -1), verb.FindAllString(b, -1); !slices.Equal(va, vb) {
			t.Errorf("%s: %v, %v", name, va, vb)
		}
	}
}

func mapKeys(m reflect.Value) []string {
	keys := map[string]bool{}
	for _, k := range m.MapKeys() {
		keys[k.String()] = m.MapIndex(k).String() != ""
	}
	return slices.Sorted(maps.Keys(keys))
}

func TestSpansAreInTheirTwoGreatestUnits(t *testing.T) {
	for d, want := range map[time.Duration][2]string{
		-time.Second:                   {"0 s", "0 秒"},
		59*time.Second + 999e6:         {"59 s", "59 秒"},
		time.Minute:                    {"1 min", "1 分钟"},
		2*time.Hour + 3*time.Minute:    {"2 h 3 min", "2 小时 3 分钟"},
		3 * time.Hour:                  {"3 h", "3 小时"},
		49*time.Hour + 59*time.Minute:  {"2 d 1 h", "2 天 1 小时"},
		240 * time.Hour:                {"10 d", "10 天"},
		24*time.Hour + 30*time.Second:  {"1 d", "1 天"},
		time.Hour + 59*time.Second:     {"1 h", "1 小时"},
		4*time.Minute + 10*time.Second: {"4 min", "4 分钟"},
	} {
		if got := [2]string{english().span(d), chinese().span(d)}; got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestCountsAreGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -4321: "-4,321", 100: "100"} {
		if got := count(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestAChartShowsRunsThatDidNothing(t *testing.T) {
	none := func(int) string { return "" }
	c := draw("x", []float64{0, 10, 5}, none, none)
	if len(c.Bars) != 3 || c.Bars[0].H != "1.50" || c.Bars[1].H != "36.00" || c.Bars[2].H != "18.00" {
		t.Errorf("%+v", c.Bars)
	}
	if last := c.Bars[2]; last.X != "391.50" {
		t.Errorf("the latest run is at %s", last.X)
	}
	if c := draw("x", []float64{0, 0}, none, none); c.Bars[1].H != "1.50" {
		t.Errorf("all zero: %+v", c.Bars)
	}
}
