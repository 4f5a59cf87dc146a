package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

func TestAnswersInJSON(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(5, 4, 3)
	for _, step := range []struct{ golden, args string }{
		{"check-before.json", "check"},
		{"migrate-dry-run.json", "migrate --dry-run"},
		{"migrate.json", "migrate"},
		{"sync-first.json", "sync"},
		{"sync-again.json", "sync"},
		{"status.json", "status"},
		{"check.json", "check"},
		{"config-validate.json", "config validate"},
		{"config-show.json", "config show"},
	} {
		r := c.must(t, append(strings.Fields(step.args), "--output", "json")...)
		if w := r.envelope(t); !w.OK || w.Meta.SchemaVersion != "1.0" {
			t.Errorf("%s: %s", step.args, r.out)
		}
		sameAsGolden(t, step.golden, r.out)
	}
}

func TestFailuresInJSON(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(5, 4, 3)
	c.xiaoqu.HideTool("contracts.changes.list")
	r := c.run(t, "sync", "--output", "json")
	if r.exit != exitRefused {
		t.Fatalf("exit %d\n%s", r.exit, r.err)
	}
	sameAsGolden(t, "sync-missing-tool.json", r.out)

	r = (&cli{env: []string{"XIAOQU_BASE_URL=http://xiaoqu.example/mcp", "XIAOQU_LOG_LEVEL=loud"}}).run(t, "sync", "--output", "json")
	if r.exit != exitUsage {
		t.Fatalf("exit %d\n%s", r.exit, r.err)
	}
	sameAsGolden(t, "config-invalid.json", r.out)
}

func TestTextForPeople(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(5, 4, 3)
	out := c.must(t, "sync").out
	for _, line := range []string{"RESOURCE", "users", "properties", "contracts", "synced"} {
		if !strings.Contains(out, line) {
			t.Errorf("sync does not say %q:\n%s", line, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("escape sequences in a pipe")
	}
	if out := c.must(t, "status").out; !strings.Contains(out, "incremental") {
		t.Errorf("status:\n%s", out)
	}
	if out := c.must(t, "sync", "--help").out; !strings.Contains(out, "Exit codes:") || !strings.Contains(out, "Examples:") {
		t.Errorf("help lacks examples or exit codes:\n%s", out)
	}
}

func TestExitCodes(t *testing.T) {
	cases := map[string]struct {
		prepare func(*cli)
		args    string
		exit    int
		says    string
	}{
		"no such verb":       {func(*cli) {}, "snyc", exitUsage, "sync"},
		"no such flag":       {func(*cli) {}, "sync --fast", exitUsage, "--fast"},
		"no such resource":   {func(*cli) {}, "sync userz", exitUsage, "userz"},
		"no such output":     {func(*cli) {}, "sync --output xml", exitUsage, "xml"},
		"no key":             {func(c *cli) { c.env = c.env[:3]; c.set("XIAOQU_DATABASE_URL", c.url) }, "sync", exitUsage, "XIAOQU_OPEN_KEY"},
		"a token as the key": {func(c *cli) { c.set("XIAOQU_OPEN_KEY", "xqak-0123456789") }, "sync", exitUsage, "token"},
		"a key nobody knows": {func(c *cli) { c.set("XIAOQU_OPEN_KEY", "xqok-0123456789") }, "sync", exitCredentials, "refused"},
		"database down":      {func(c *cli) { c.set("XIAOQU_DATABASE_URL", "postgres://u:hush-hush@127.0.0.1:1/x") }, "sync", exitBackend, "127.0.0.1"},
		"personal token":     {func(c *cli) { c.xiaoqu.SetContext(remotetest.Context{PrincipalType: "user_delegated"}) }, "sync", exitRefused, "user_delegated"},
		"status, no schema":  {func(*cli) {}, "status", exitSchema, "migrate"},
		"no automatic migration": {
			func(c *cli) { c.set("XIAOQU_DATABASE_SCHEMA", "elsewhere") }, "status", exitSchema, "migrate",
		},
	}
	for name, k := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCLI(t)
			k.prepare(c)
			r := c.run(t, strings.Fields(k.args)...)
			if r.exit != k.exit || !strings.Contains(r.err, k.says) {
				t.Errorf("exit %d, want %d, saying %q:\n%s%s", r.exit, k.exit, k.says, r.out, r.err)
			}
			if strings.Contains(r.out+r.err, "hush-hush") || strings.Contains(r.out+r.err, "0123456789") {
				t.Errorf("a secret got out:\n%s%s", r.out, r.err)
			}
		})
	}
}

func TestClassify(t *testing.T) {
	of := func(err error) sync.Outcome { return sync.Outcome{Resource: "r", Result: sync.Failed, Err: err} }
	many := func(errs ...error) error {
		var r syncReport
		for _, err := range errs {
			r.Resources = append(r.Resources, of(err))
		}
		return r.err(false)
	}
	code := func(c remote.Code) error { return &remote.Error{Code: c} }
	kind := func(k mirror.Kind) error { return fmt.Errorf("x: %w", &mirror.Error{Kind: k}) }
	cases := []struct {
		err       error
		exit      int
		retryable bool
	}{
		{errors.New("x"), 1, false},
		{config.Problems{{Message: "x"}}, 2, false},
		{&credentials.Error{Kind: credentials.BadKey}, 2, false},
		{&credentials.Error{Kind: credentials.Refused}, 4, false},
		{&credentials.Error{Kind: credentials.Unreachable}, 7, true},
		{&credentials.Error{Kind: credentials.Limited}, 7, true},
		{&credentials.Error{Kind: credentials.Malformed}, 6, false},
		{kind(mirror.KindUnreachable), 3, true},
		{kind(mirror.KindTransient), 3, true},
		{kind(mirror.KindConfig), 2, false},
		{kind(mirror.KindDenied), 2, false},
		{kind(mirror.KindSchema), 10, false},
		{kind(mirror.KindData), 1, false},
		{kind(mirror.KindInternal), 1, false},
		{&sync.Refusal{Reason: sync.ReasonTenant}, 5, false},
		{sync.ErrHeld, 8, false},
		{&mirror.FuseError{}, 8, false},
		{sync.ErrDrift, 6, false},
		{sync.ErrNothingHeld, 2, false},
		{mirror.ErrMoved, 2, false},
		{&mirror.HeldError{}, 3, true},
		{sync.ErrLeaseLost, 3, true},
		{code(remote.Unauthenticated), 4, false},
		{code(remote.PermissionDenied), 5, false},
		{code(remote.RateLimited), 7, true},
		{code(remote.Unreachable), 7, true},
		{code(remote.SessionLost), 7, true},
		{code(remote.CursorExpired), 6, false},
		{code(remote.InvalidArgument), 6, false},
		{code(remote.Malformed), 6, false},
		{interruption{2}, 130, true},
		{interruption{15}, 143, true},
		{quarantinedError{n: 3}, 9, false},
		{many(code(remote.RateLimited), kind(mirror.KindUnreachable)), 3, true},
		{many(code(remote.RateLimited), code(remote.Malformed), code(remote.PermissionDenied)), 5, false},
		{many(code(remote.Malformed), code(remote.Unauthenticated)), 4, false},
		{many(code(remote.Unauthenticated), errors.New("x")), 1, false},
		{many(nil, code(remote.RateLimited), nil), 7, true},
	}
	for _, c := range cases {
		f := classify(c.err)
		if f.exit != c.exit || f.retryable != c.retryable {
			t.Errorf("%v: exit %d retryable %v, want %d %v", c.err, f.exit, f.retryable, c.exit, c.retryable)
		}
		// The status page has the code alone.
		if passes(f.code) != f.retryable {
			t.Errorf("%s passes: %v, but %v is retryable: %v", f.code, passes(f.code), c.err, f.retryable)
		}
	}
}

func TestOneResourceFailingStillReportsTheOthers(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(5, 4, 3)
	c.xiaoqu.Inject(remotetest.Fault{
		Match: remotetest.OnTool("users.changes.list", 1), Times: -1,
		Do: remotetest.Fail(remotetest.Failure{Code: remotetest.InvalidArgument, Message: "no such person 13812345678"}),
	})
	r := c.run(t, "sync", "--output", "json")
	w := r.envelope(t)
	if r.exit != exitContract || w.Error.Code != "INVALID_ARGUMENT" || w.Error.RequestID == "" {
		t.Errorf("exit %d: %s", r.exit, r.out)
	}
	if strings.Contains(r.out+r.err, "13812345678") {
		t.Errorf("a mobile number got out:\n%s\n%s", r.out, r.err)
	}
	var details struct {
		Resources []struct {
			Resource, Result, Code string
		}
	}
	if err := json.Unmarshal(w.Error.Details, &details); err != nil {
		t.Fatal(err)
	}
	results := map[string]string{}
	for _, d := range details.Resources {
		results[d.Resource] = d.Result
	}
	if results["users"] != "failed" || results["contracts"] != "synced" {
		t.Errorf("results %v", results)
	}
}

func TestStrictExitsNineForQuarantinedRecords(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(2, 0, 0)
	c.xiaoqu.PutRaw("users", "x", `{"name":"no id"}`)
	if r := c.must(t, "sync", "users"); !strings.Contains(r.err, "quarantined") {
		t.Errorf("no warning:\n%s", r.err)
	}
	c.xiaoqu.PutRaw("users", "y", `{"name":"no id either"}`)
	if r := c.run(t, "sync", "users", "--strict"); r.exit != exitQuarantined {
		t.Errorf("exit %d\n%s%s", r.exit, r.out, r.err)
	}
}

func TestAMistakeInTheCommandLineSaysWhatIsWanted(t *testing.T) {
	c := newCLI(t)
	c.must(t, "migrate")
	c.must(t, "agent", "token", "add", "taken")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"agent", "call"}, "agent call CAPABILITY"},
		{[]string{"agent", "token", "add"}, "add NAME"},
		{[]string{"agent", "token", "revoke"}, "revoke NAME"},
		{[]string{"agent", "relay", "bind-code"}, "bind-code USER"},
		{[]string{"agent", "manifest"}, "xiaoya|relay|openapi"},
		{[]string{"agent", "manifest", "door"}, "it takes xiaoya, relay, openapi"},
		{[]string{"agent", "token", "add", "taken"}, "revoke it first"},
		{[]string{"agent", "token", "add", "two words"}, "a token's name"},
		{[]string{"agent", "relay", "bind-code", ""}, "USER"},
		{[]string{"agent", "relay", "bind-code", strings.Repeat("x", 300)}, "USER"},
		{[]string{"config", "validate", "--config", c.configured(t, `resources: {users: {schedule: "@evry 1m"}}`)}, `is not a schedule: unrecognized descriptor`},
		{[]string{"rebuild", "users", "--apply"}, "--dry-run"},
		{[]string{"rebuild", "users", "--accept-deletes"}, "says what is held"},
	} {
		if r := c.run(t, tt.args...); r.exit != exitUsage || !strings.Contains(r.err, tt.want) || strings.Contains(r.err, "agent/store") {
			t.Errorf("%.60v: exit %d, wanted %q\n%s", tt.args, r.exit, tt.want, r.err)
		}
	}
}
