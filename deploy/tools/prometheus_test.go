package tools_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// rule is what a rule of Prometheus and of its operator have in common.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type ruleGroups struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type panel struct {
	ID      int    `json:"id"`
	Title   string `json:"title"`
	GridPos struct{ X, Y, W, H int }
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

func shipped(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "prometheus", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func rules(t *testing.T) ruleGroups {
	t.Helper()
	var plain ruleGroups
	if err := yaml.UnmarshalStrict(shipped(t, "rules.yaml"), &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}

func panels(t *testing.T) []panel {
	t.Helper()
	var board struct{ Panels []panel }
	if err := json.Unmarshal(shipped(t, "dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	return board.Panels
}

func TestTheOperatorGetsTheSameRules(t *testing.T) {
	var wrapped struct {
		APIVersion, Kind string
		Metadata         map[string]any
		Spec             ruleGroups
	}
	if err := yaml.UnmarshalStrict(shipped(t, "prometheusrule.yaml"), &wrapped); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rules(t), wrapped.Spec); diff != "" {
		t.Errorf("rules.yaml and prometheusrule.yaml differ (-plain +operator):\n%s", diff)
	}
}

func TestEveryAlertSaysWhatItMeans(t *testing.T) {
	for _, g := range rules(t).Groups {
		for _, r := range g.Rules {
			severity := r.Labels["severity"]
			if !slices.Contains([]string{"critical", "warning", "info"}, severity) || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s: severity %q, annotations %v", r.Alert, severity, r.Annotations)
			}
		}
	}
}

func TestThePanelsFormADashboard(t *testing.T) {
	taken := map[[2]int]string{}
	seen := map[int]bool{}
	for _, p := range panels(t) {
		if seen[p.ID] || p.GridPos.X+p.GridPos.W > 24 || len(p.Targets) == 0 {
			t.Errorf("%s: id %d twice, too wide or without a query", p.Title, p.ID)
		}
		seen[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s lies on %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// expressions are those of the rules and of the dashboard, its variables filled in.
func expressions(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, g := range rules(t).Groups {
		for _, r := range g.Rules {
			found = append(found, r.Expr)
		}
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$namespace", ".*", "$job", ".*", "$resource", ".*")
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			found = append(found, variables.Replace(target.Expr))
		}
	}
	return found
}

var metricName = regexp.MustCompile(`\bxiaoqu_sync_[a-z_]+`)

// A metric that is renamed in the daemon only would silence its alert for good.
func TestRulesAndDashboardReadTheListedMetrics(t *testing.T) {
	listed, used := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(shipped(t, "metrics.txt"))) {
		if name := metricName.FindString(line); name != "" && line[0] != '#' {
			listed[name] = true
		}
	}
	for _, e := range expressions(t) {
		for _, name := range metricName.FindAllString(e, -1) {
			used[name] = true
		}
	}
	if diff := cmp.Diff(listed, used); diff != "" {
		t.Errorf("metrics.txt and what is read differ (-listed +read):\n%s", diff)
	}
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not on this machine; Debian's package prometheus has it")
	}
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	promtool(t, "check", "rules", filepath.Join("..", "prometheus", "rules.yaml"))
	promtool(t, "test", "rules", filepath.Join("..", "prometheus", "rules_test.yaml"))
}

func TestPrometheusUnderstandsTheDashboard(t *testing.T) {
	type recording struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var all []recording
	for _, e := range expressions(t) {
		all = append(all, recording{"trial:expression", e})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "trial", "rules": all}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "trial.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", "--lint=none", file)
}
