package deploy_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What rules and dashboard read must be what the daemon counts.
func TestEveryMetricThatIsReadIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(xiaoqu_sync_\\w+)` \\| (\\w+) \\| ([^|]*) \\|").FindAllStringSubmatch(string(page), -1) {
		name, of := m[1], regexp.MustCompile(`\w+`).FindAllString(m[3], -1)
		if m[2] == "histogram" {
			name, of = name+"_bucket", append(of, "le")
		}
		labels[name] = of
	}
	list, err := os.ReadFile("prometheus/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for line := range strings.Lines(string(list)) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		read++
		known, ok := labels[f[0]]
		if !ok {
			t.Errorf("%s is read and not counted", f[0])
			continue
		}
		for _, l := range f[1:] {
			if !slices.Contains(known, l) {
				t.Errorf("%s has no label %s", f[0], l)
			}
		}
	}
	if read < 10 {
		t.Errorf("%d metrics are listed", read)
	}
}
