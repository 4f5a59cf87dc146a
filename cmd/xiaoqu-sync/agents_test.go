package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/api"
	"github.com/xiaoqu-sync/xiaoqu-sync/config"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

// withAgents makes a synced mirror with all doors open, everything allowed, and a
// reader's role that may read the live views.
func withAgents(t testing.TB, allow ...string) *cli {
	t.Helper()
	c := newCLI(t)
	c.xiaoqu.Seed(150, 3, 3)
	role := "agents_" + strings.ToLower(rand.Text())
	c.read(t, "create role "+role)
	t.Cleanup(func() {
		for _, sql := range []string{"drop owned by " + role, "drop role " + role} {
			_, _, _ = localpg.Query(context.Background(), c.url, sql) // no test looks at it again
		}
	})
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := `
resources:
  users: {columns: {name: {path: $.name, type: text}}, masked: [$.mobile]}
  properties: {}
  contracts: {}
agents:
  doors: api, xiaoya, relay
  allow: "` + strings.Join(allow, ", ") + `"
  reader_role: ` + role + `
  masked: false
  public_url: https://agents.example.com
  xiaoya: {app_id: crm-mirror, callback_url: 'https://xiaoya.example.com/api/v1/open-agent-tools/callbacks'}
  relay: {help_url: 'https://example.com/bind', callback_url: 'https://relay.example.com/v1/callbacks'}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c.set("XIAOQU_CONFIG_FOR_TEST", file)
	c.set(config.XiaoyaKeyVariable, "xiaoya-demo-key-canary")
	c.set(config.XiaoyaCredentialVariable, "xiaoya-credential-canary")
	c.set(config.RelaySecretVariable, "whsec_relay_canary")
	c.must(t, "migrate", "--config", file, "--grant-reader", role)
	c.must(t, "sync", "--config", file)
	return c
}

// agent runs a verb for agents with the configuration of withAgents.
func (c *cli) agent(t testing.TB, args ...string) ran {
	t.Helper()
	return c.run(t, append([]string{"agent", "--config", c.lookup("XIAOQU_CONFIG_FOR_TEST"), "--output", "json"}, args...)...)
}

func (c *cli) lookup(name string) string {
	p := program{env: c.env}
	value, _ := p.lookup(name)
	return value
}

// called is a capability's result.
func (r ran) called(t testing.TB) string {
	t.Helper()
	if r.exit != 0 {
		t.Fatalf("exit %d\n%s%s", r.exit, r.out, r.err)
	}
	var data struct{ Data json.RawMessage }
	if err := json.Unmarshal(r.envelope(t).Data, &data); err != nil {
		t.Fatal(err)
	}
	var flat any
	if err := json.Unmarshal(data.Data, &flat); err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(flat)
	return string(text)
}

func TestAgentsAskTheMirror(t *testing.T) {
	c := withAgents(t)
	id := c.xiaoqu.IDs("users")[0]
	tests := []struct{ id, input, want string }{
		{"mirror.status", `{}`, `"live_rows":150`},
		{"mirror.freshness", `{"resources":["users"]}`, `"phase":"incremental"`},
		{"records.get", `{"resource":"users","id":"` + id + `"}`, `"found":true`},
		{"records.search", `{"resource":"users","limit":2}`, `"next":"`},
		{"changes.list", `{"resource":"contracts","after":0}`, `"more":false`},
		{"quarantine.list", `{"resource":"users"}`, `"quarantined":[]`},
	}
	for _, tt := range tests {
		if got := c.agent(t, "call", tt.id, "--input", tt.input).called(t); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", tt.id, got)
		}
	}
	if r := c.agent(t, "call", "sync.run"); r.exit != exitUsage || r.envelope(t).Error.Code != "UNKNOWN_CAPABILITY" {
		t.Errorf("what was not allowed: exit %d\n%s", r.exit, r.out)
	}
	if r := c.agent(t, "call", "records.get", "--input", `{"resource":"users"}`); r.exit != exitUsage || !strings.Contains(string(r.envelope(t).Error.Details), `"id"`) {
		t.Errorf("a wrong input: exit %d\n%s", r.exit, r.out)
	}
}

func TestAgentsOperateTheWorker(t *testing.T) {
	c := withAgents(t, agent.Writing()...)
	c.xiaoqu.Put("users", "neu", `{"name":"新"}`)
	if got := c.agent(t, "call", "sync.run", "--input", `{"resources":["users"]}`).called(t); !strings.Contains(got, `"inserted":1`) {
		t.Errorf("sync.run: %s", got)
	}
	if got := c.agent(t, "call", "verify.run").called(t); strings.Contains(got, "drift") || !strings.Contains(got, `"outcome":"done"`) {
		t.Errorf("verify.run: %s", got)
	}
	c.read(t, "update xiaoqu.users set record = record || '{\"name\":\"damaged\"}', content_hash = '' where id = 'neu'")
	if got := c.agent(t, "call", "verify.run", "--input", `{"resources":["users"]}`).called(t); !strings.Contains(got, `"outcome":"drift"`) {
		t.Errorf("verify.run after damage: %s", got)
	}
	plan := c.agent(t, "call", "rebuild.plan", "--input", `{"resources":["users"]}`).called(t)
	var report struct {
		Resources []struct{ Plan string }
	}
	if err := json.Unmarshal([]byte(plan), &report); err != nil || report.Resources[0].Plan == "" {
		t.Fatalf("rebuild.plan: %s", plan)
	}
	if r := c.agent(t, "call", "rebuild.apply", "--input", `{"resource":"users","plan":"another"}`); r.envelope(t).Error.Code != "PLAN_GONE" {
		t.Errorf("a plan that is not there: %s", r.out)
	}
	if got := c.agent(t, "call", "rebuild.apply", "--input", `{"resource":"users","plan":"`+report.Resources[0].Plan+`"}`).called(t); !strings.Contains(got, `"updated":1`) {
		t.Errorf("rebuild.apply: %s", got)
	}
	c.equal(t, "users")
}

func TestAHeldRebuildIsResolvedByAChoice(t *testing.T) {
	c := withAgents(t, agent.Writing()...)
	for _, id := range c.xiaoqu.IDs("users") {
		c.xiaoqu.Purge("users", id)
	}
	c.xiaoqu.ExpireTokens()
	if got := c.agent(t, "call", "sync.run", "--input", `{"resources":["users"]}`).called(t); !strings.Contains(got, `"outcome":"held"`) {
		t.Fatalf("sync.run: %s", got)
	}
	if got := c.agent(t, "call", "mirror.status", "--input", `{"resources":["users"]}`).called(t); !strings.Contains(got, `"deletes":150`) {
		t.Errorf("mirror.status: %s", got)
	}
	r := c.agent(t, "call", "rebuild.resolve", "--input", `{"resource":"users"}`)
	if r.exit != exitUsage || r.envelope(t).Error.Code != "CHOICE_REQUIRED" {
		t.Errorf("without a choice: %s", r.out)
	}
	var asked struct {
		Choices []struct{ About string }
	}
	if err := json.Unmarshal(r.envelope(t).Error.Details, &asked); err != nil || len(asked.Choices) != 3 {
		t.Fatalf("%v: %s", err, r.out)
	}
	c.agent(t, "call", "rebuild.resolve", "--input", `{"resource":"users","choice":"accept_all","plan":"`+asked.Choices[0].About+`"}`).called(t)
	if live := c.read(t, "select count(*) from xiaoqu.users_live"); live[0][0] != "0" {
		t.Errorf("%s rows are live", live[0][0])
	}
}

func TestWhatTheRemoteSaysIsNotAboutTheCaller(t *testing.T) {
	c := withAgents(t, "sync.run")
	c.xiaoqu.RotateKey("xqok-another-key-0123456789abcdef")
	c.xiaoqu.RevokeTokens()
	r := c.agent(t, "call", "sync.run")
	if w := r.envelope(t); r.exit == 0 || strings.HasPrefix(strings.ToLower(w.Error.Code), "unauthenticated") {
		t.Errorf("exit %d\n%s", r.exit, r.out)
	}
}

func TestAgentCheckSaysWhatIsWrong(t *testing.T) {
	c := withAgents(t, agent.Writing()...)
	if r := c.agent(t, "check"); r.exit != 0 {
		t.Errorf("exit %d\n%s%s", r.exit, r.out, r.err)
	}
	c.set(config.RelaySecretVariable, "")
	c.set(config.XiaoyaCredentialVariable, "")
	if r := c.agent(t, "check"); r.exit != exitUsage || !strings.Contains(r.out, config.RelaySecretVariable) || !strings.Contains(r.out, "opened); agents.relay") {
		t.Errorf("without two secrets: exit %d\n%s", r.exit, r.out)
	}
}

func TestVerbsForAgentsLeaveTheReadersViews(t *testing.T) {
	c := withAgents(t)
	plain := c.configured(t, "resources: {users: {}}")
	for _, args := range [][]string{
		{"agent", "token", "list"},
		{"agent", "token", "add", "someone"},
		{"agent", "relay", "bind-code", "li.si"},
		{"agent", "call", "mirror.status"},
	} {
		c.must(t, append(args, "--config", plain)...)
		if rows := c.read(t, "select count(name), to_regclass('xiaoqu.users_masked') is not null from xiaoqu.users_live"); rows[0][0] != "150" || rows[0][1] != "t" {
			t.Errorf("after %v: %v", args, rows)
		}
	}
}

func TestACallFromTheCommandLineNeedsNoDoor(t *testing.T) {
	c := withAgents(t)
	for _, secret := range []string{config.XiaoyaKeyVariable, config.XiaoyaCredentialVariable, config.RelaySecretVariable} {
		c.set(secret, "")
	}
	if got := c.agent(t, "call", "mirror.status").called(t); !strings.Contains(got, `"live_rows":150`) {
		t.Error(got)
	}
	if r := c.agent(t, "serve"); r.exit != exitUsage || !strings.Contains(r.out, config.RelaySecretVariable) {
		t.Errorf("serve: exit %d\n%s", r.exit, r.out)
	}
}

func TestAgentCheckMakesNoTables(t *testing.T) {
	c := newCLI(t)
	if r := c.run(t, "agent", "check"); r.exit == 0 {
		t.Errorf("exit %d\n%s", r.exit, r.out)
	}
	if rows := c.read(t, "select to_regnamespace('xiaoqu') is null"); rows[0][0] != "t" {
		t.Error("there is a schema now")
	}
}

func TestAgentCheckNamesResourcesWithoutAMaskedView(t *testing.T) {
	c := withAgents(t)
	text, err := os.ReadFile(c.lookup("XIAOQU_CONFIG_FOR_TEST"))
	if err != nil {
		t.Fatal(err)
	}
	c.set("XIAOQU_CONFIG_FOR_TEST", c.configured(t, strings.Replace(string(text), "masked: false", "masked: true", 1)))
	r := c.agent(t, "check")
	if r.exit != exitUsage || !strings.Contains(r.out, "resources.properties.masked") || strings.Contains(r.out, "resources.users.masked") {
		t.Errorf("exit %d\n%s", r.exit, r.out)
	}
}

func TestManifestsHoldTheirRules(t *testing.T) {
	c := withAgents(t, agent.Writing()...)
	for _, door := range []string{config.DoorXiaoya, config.DoorRelay, "openapi"} {
		r := c.agent(t, "manifest", door)
		if r.exit != 0 || !json.Valid(r.envelope(t).Data) {
			t.Errorf("%s: exit %d\n%s%s", door, r.exit, r.out, r.err)
		}
	}
	reviewed := filepath.Join(t.TempDir(), "reviewed.json")
	r := c.run(t, "agent", "--config", c.lookup("XIAOQU_CONFIG_FOR_TEST"), "manifest", config.DoorXiaoya)
	if err := os.WriteFile(reviewed, []byte(r.out), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := c.agent(t, "check", "--reviewed", reviewed); r.exit != 0 || !strings.Contains(r.out, "nothing changed") {
		t.Errorf("exit %d\n%s", r.exit, r.out)
	}
	if err := os.WriteFile(reviewed, []byte(strings.ReplaceAll(r.out, `"records_get"`, `"records_got"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := c.agent(t, "check", "--reviewed", reviewed); r.exit != exitUsage || !strings.Contains(r.out, "records_got") {
		t.Errorf("a tool that is gone: exit %d\n%s", r.exit, r.out)
	}
}

// SKILL.md is written by agent skill with everything allowed.
func TestTheSkillTellsOfTheWholeCatalogue(t *testing.T) {
	cfg := &config.Config{}
	cfg.Agents.Allow = agent.Writing()
	all, err := catalogueOf(cfg)
	if err != nil {
		t.Fatal(err)
	}
	got := api.Skill(all, skillVersion)
	const path = "../../SKILL.md"
	if golden() {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run this test with -update: %s", diff)
	}
	var ids []string
	for _, c := range all {
		ids = append(ids, c.ID)
	}
	both := append(agent.Reading(), agent.Writing()...)
	slices.Sort(both)
	if diff := cmp.Diff(both, ids); diff != "" {
		t.Error(diff)
	}
}
