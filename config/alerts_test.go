package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
)

// targets is a file whose receivers begin in line 7.
func targets(lines ...string) config.Input {
	return config.Input{Path: "c.yaml", File: []byte(minimal + "alerts:\n  targets:\n    - " + strings.Join(lines, "\n      ") + "\n")}
}

func TestAlerts(t *testing.T) {
	c := load(t, config.Input{Path: "example.yaml"})
	want := config.Alerts{
		StaleAfter: 2 * time.Hour, RemindAfter: 4 * time.Hour, Language: "zh",
		Targets: []config.AlertTarget{
			{Kind: "wecom", URLEnv: "XIAOQU_ALERT_WECOM_URL"},
			{Kind: "dingtalk", URLFile: "/run/secrets/dingtalk-url", SecretFile: "/run/secrets/dingtalk-secret"},
			{Kind: "feishu", URLEnv: "XIAOQU_ALERT_FEISHU_URL", SecretEnv: "XIAOQU_ALERT_FEISHU_SECRET", Events: []string{"halt", "credentials", "held"}},
			{Kind: "json", URL: "https://alerts.example.com/xiaoqu", SecretEnv: "XIAOQU_ALERT_SECRET"},
		},
	}
	if diff := cmp.Diff(want, c.Alerts, cmpopts.IgnoreUnexported(config.AlertTarget{})); diff != "" {
		t.Error(diff)
	}
	if got := load(t, config.Input{Env: environment()}).Alerts; len(got.Targets) != 0 || got.StaleAfter != 2*time.Hour {
		t.Errorf("by default: %+v", got)
	}
}

func TestVariablesThatReceiversNameAreKnown(t *testing.T) {
	in := targets("kind: json", "url_env: XIAOQU_ALERT_URL", "secret_env: XIAOQU_ALERT_SECRET")
	in.Env = []string{"XIAOQU_ALERT_URL=https://a/", "XIAOQU_ALERT_SECRET=x", "XIAOQU_ALERT_SECRETS=x"}
	ws := load(t, in).Warnings()
	if len(ws) != 1 || ws[0].Field != "XIAOQU_ALERT_SECRETS" || !strings.Contains(ws[0].Hint, "XIAOQU_ALERT_SECRET?") {
		t.Errorf("warnings: %v", ws)
	}
}

func TestMistakesOfReceivers(t *testing.T) {
	for _, tt := range []struct{ lines, want string }{
		{"just: text", "c.yaml:7:7: alerts.targets.0.just: is not a known key (known here: kind, url, url_env, url_file, secret_env, secret_file, events)"},
		{"kind: slack|url_env: A", `c.yaml:7:13: alerts.targets.0.kind: "slack" is not known here (one of json, wecom, dingtalk, feishu)`},
		{"url_env: A", "c.yaml:7:7: alerts.targets.0: has no kind (one of json, wecom, dingtalk, feishu)"},
		{"kind: json", "c.yaml:7:7: alerts.targets.0: wants one address (give exactly one of url_env, url_file and, for kind json, url)"},
		{"kind: json|url: https://a/|url_env: A", "c.yaml:7:7: alerts.targets.0: wants one address (give exactly one of url_env, url_file and, for kind json, url)"},
		{"kind: wecom|url: https://a/s3cr3t", "c.yaml:7:7: alerts.targets.0: has its address in the file, and a robot's address holds its key (name a variable in url_env, or a file in url_file)"},
		{"kind: json|url: https://a/?k=s3cr3t", "c.yaml:8:12: alerts.targets.0.url: has a user, a query or a fragment, which may hold a key (name a variable in url_env, or a file in url_file)"},
		{"kind: json|url: http://a.example/s3cr3t", "c.yaml:8:12: alerts.targets.0.url: would tell everybody on the way (use https; http is for loopback only)"},
		{"kind: json|url: s3cr3t", "c.yaml:8:12: alerts.targets.0.url: is not a full address (such as https://alerts.example.com/xiaoqu)"},
		{"kind: feishu|url_env: https://a/s3cr3t", "c.yaml:8:16: alerts.targets.0.url_env: is not the name of a variable (such as ALERT_URL; the value goes there)"},
		{"kind: feishu|url_file: https://a/s3cr3t", "c.yaml:8:17: alerts.targets.0.url_file: is not the name of a file (such as /run/secrets/alert-url; the value goes there)"},
		{"kind: json|url_env: A|secret_env: s3cr3t!", "c.yaml:9:19: alerts.targets.0.secret_env: is not the name of a variable (such as ALERT_URL; the value goes there)"},
		{"kind: json|url_env: A|secret: s3cr3t", "c.yaml:9:7: alerts.targets.0.secret: the secret is never taken from the file (name a variable in secret_env, or a file in secret_file)"},
		{"kind: json|url_env: A|secret_env: B|secret_file: /c", "c.yaml:7:7: alerts.targets.0: has two secrets (keep secret_env or secret_file)"},
		{"kind: wecom|url_env: A|secret_env: B", "c.yaml:7:7: alerts.targets.0: has a secret, and robots of WeCom take no signature (remove it)"},
		{"kind: json|url_env: A|events: halt", "c.yaml:9:15: alerts.targets.0.events: want a list of events (such as [halt, credentials, recovered]; leave it out for all)"},
		{"kind: json|url_env: A|events: [halt, fire]", `c.yaml:9:22: alerts.targets.0.events.1: "fire" is not known here (one of halt, credentials, held, stale, drift, recovered)`},
		{"kind: json|url_env: A|events: [halt, halt]", `c.yaml:9:22: alerts.targets.0.events.1: "halt" stands there twice`},
		{"kind: json|url_env: A|events: [3]", `c.yaml:9:16: alerts.targets.0.events.0: want text, found a number (write it in quotes: "3")`},
		{"kind: json|url_env: A|kind: json", "c.yaml:9:7: alerts.targets.0.kind: stands there twice (remove this one or the one in line 7)"},
		{"just text", "c.yaml:7:7: alerts.targets.0: want keys with values, found text (write key: value, one a line)"},
	} {
		t.Run(tt.lines, func(t *testing.T) {
			got := problems(t, targets(strings.Split(tt.lines, "|")...))
			if !strings.Contains(got.Error(), tt.want) {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if strings.Contains(got.Error(), "s3cr3t") {
				t.Errorf("repeated: %s", got)
			}
		})
	}
}

func TestTheSameReceiverTwiceIsAMistake(t *testing.T) {
	ps := problems(t, config.Input{File: []byte(minimal + "alerts: {targets: [{kind: json, url_env: A}, {kind: wecom, url_env: A}, {kind: json, url_env: A, events: [halt]}]}")})
	if len(ps) != 1 || ps[0].Field != "alerts.targets.2" {
		t.Errorf("got %v", ps)
	}
}

func TestALaterMistakeOfAReceiverHasItsPlace(t *testing.T) {
	target := load(t, targets("kind: json", "url_env: A")).Alerts.Targets[0]
	got := target.Problem("url_env", "A is not set", "set it").String()
	if want := "c.yaml:7:7: alerts.targets.0.url_env: A is not set (set it)"; got != want {
		t.Errorf("got %s", got)
	}
}

func TestTheSchemaAgreesWithLoadOnAlerts(t *testing.T) {
	s := compiled(t)
	for extra, ok := range map[string]bool{
		"alerts: {targets: }":                                                              true,
		"alerts: {stale_after: 1h}":                                                        true,
		"alerts: {language: fr}":                                                           false,
		"alerts: {targets: {}}":                                                            false,
		"alerts: {targets: [{}]}":                                                          false,
		"alerts: {targets: [{kind: wecom, url_env: A}]}":                                   true,
		"alerts: {targets: [{kind: wecom, url_env: 'https://a/b'}]}":                       false,
		"alerts: {targets: [{kind: wecom, url_env: A, url_file: b}]}":                      false,
		"alerts: {targets: [{kind: wecom, url_env: A, secret_env: B}]}":                    false,
		"alerts: {targets: [{kind: wecom, url: 'https://a/b'}]}":                           false,
		"alerts: {targets: [{kind: feishu, url_file: 'https://a/b'}]}":                     false,
		"alerts: {targets: [{kind: feishu, url_file: /a, secret_file: /b}]}":               true,
		"alerts: {targets: [{kind: feishu, url_file: /a, secret_file: b, secret_env: B}]}": false,
		"alerts: {targets: [{kind: json, url: 'https://a/b', secret_env: B}]}":             true,
		"alerts: {targets: [{kind: json, url: 'https://a/b?c=d'}]}":                        false,
		"alerts: {targets: [{kind: json, url_env: A, secret: b}]}":                         false,
		"alerts: {targets: [{kind: json, url_env: A, events: [halt, stale]}]}":             true,
		"alerts: {targets: [{kind: json, url_env: A, events: []}]}":                        false,
		"alerts: {targets: [{kind: json, url_env: A, events: [halt, halt]}]}":              false,
		"alerts: {targets: [{kind: json, url_env: A, events: [fire]}]}":                    false,
		"alerts: {targets: [{kind: slack, url_env: A}]}":                                   false,
		"alerts: {targets: [{url_env: A}]}":                                                false,
	} {
		agree(t, s, extra, ok)
	}
}
