package metrics_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
)

// line is a metric as docs/metrics.md has it.
func line(f *dto.MetricFamily) string {
	var labels []string
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if name := "`" + l.GetName() + "`"; !slices.Contains(labels, name) {
				labels = append(labels, name)
			}
		}
	}
	slices.Sort(labels)
	kind := strings.ToLower(f.GetType().String())
	return fmt.Sprintf("| `%s` | %s | %s | %s |", f.GetName(), kind, strings.Join(labels, ", "), f.GetHelp())
}

func TestThePageListsWhatIsRegistered(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	var documented, registered []string
	for l := range strings.Lines(string(page)) {
		if strings.HasPrefix(l, "| `xiaoqu_sync_") {
			documented = append(documented, strings.TrimSpace(l))
		}
	}
	for name, f := range scrape(t, worked()) {
		if strings.HasPrefix(name, "xiaoqu_sync_") {
			registered = append(registered, line(f))
		}
	}
	slices.Sort(documented)
	slices.Sort(registered)
	if diff := cmp.Diff(registered, documented); diff != "" {
		t.Errorf("docs/metrics.md (-registered +documented):\n%s\nall of them:\n%s", diff, strings.Join(registered, "\n"))
	}
}
