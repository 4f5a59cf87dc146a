package config_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
)

// minimal is the least that loads.
const minimal = "base_url: https://crm.example.com\nservice_name: crm\ndatabase:\n  url: postgres://app@db/crm\n"

func load(t *testing.T, in config.Input) *config.Config {
	t.Helper()
	c, err := config.Load(in)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// problems are the mistakes of a file added to the least that loads.
func problems(t *testing.T, in config.Input) config.Problems {
	t.Helper()
	_, err := config.Load(in)
	if err == nil {
		return nil
	}
	var ps config.Problems
	if !errors.As(err, &ps) {
		t.Fatalf("error is a %T: %v", err, err)
	}
	return ps
}

func environment() []string {
	return []string{"XIAOQU_BASE_URL=https://crm.example.com", "XIAOQU_SERVICE_NAME=crm", "XIAOQU_DATABASE_URL=postgres://app@db/crm"}
}

func TestDefaults(t *testing.T) {
	c := load(t, config.Input{Env: environment()})
	type view struct {
		Names            []string
		Users            config.Resource
		Schema, TimeZone string
		AutoMigrate      bool
		Ratio            float64
		PageLimit        int
		Timeout          time.Duration
		Log              config.Log
		Source, Listen   string
	}
	got := view{
		c.Names(), c.Resources["users"], c.Database.Schema, c.TimeZone.String(), c.Database.AutoMigrate,
		c.Rebuild.MaxDeleteRatio, c.PageLimit, c.RequestTimeout, c.Log, c.Credentials.Source, c.HTTP.Listen,
	}
	want := view{
		[]string{"users", "properties", "contracts"},
		config.Resource{Schedule: "@every 5m"},
		"xiaoqu", "Asia/Shanghai", true,
		0.3, 200, 30 * time.Second,
		config.Log{Level: "auto", Format: "text"},
		"env", "127.0.0.1:9464",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(c.Warnings()) != 0 {
		t.Errorf("warnings: %v", c.Warnings())
	}
}

func TestTheStrongerSourceWins(t *testing.T) {
	in := config.Input{
		File:  []byte(minimal + "log: {level: debug, format: json}\nrequest_timeout: 2m\npage_limit: 50\n"),
		Env:   []string{"XIAOQU_LOG_LEVEL= warn ", "XIAOQU_REQUEST_TIMEOUT=5s", "XIAOQU_DATABASE_SCHEMA="},
		Flags: map[string]string{"log-level": "error", "base-url": "http://127.0.0.1:8080/"},
	}
	c := load(t, in)
	if c.Log.Level != "error" || c.Log.Format != "json" || c.RequestTimeout != 5*time.Second || c.PageLimit != 50 || c.Database.Schema != "xiaoqu" {
		t.Errorf("got %+v", c)
	}
	if c.BaseURL != "http://127.0.0.1:8080" {
		t.Errorf("base url %q", c.BaseURL)
	}
}

func TestAnEmptyListenAddressInTheEnvironmentTurnsItOff(t *testing.T) {
	in := config.Input{File: []byte(minimal + "http: {listen: '127.0.0.1:9464'}\n")}
	if got := load(t, in).HTTP.Listen; got != "127.0.0.1:9464" {
		t.Fatalf("listen %q", got)
	}
	in.Env = []string{"XIAOQU_HTTP_LISTEN="}
	if got := load(t, in).HTTP.Listen; got != "" {
		t.Errorf("listen %q", got)
	}
}

func TestResourcesReplaceTheSetAndKeepWhatTheFileSays(t *testing.T) {
	file := []byte(minimal + "resources:\n  payments: {schedule: '@hourly', list_key: rows}\n  users:\n")
	for name, tt := range map[string]struct {
		env   []string
		flags map[string]string
		want  map[string]config.Resource
		order []string
	}{
		"file": {
			order: []string{"payments", "users"},
			want:  map[string]config.Resource{"payments": {Schedule: "@hourly", ListKey: "rows"}, "users": {Schedule: "@every 5m"}},
		},
		"environment": {
			env:   []string{"XIAOQU_RESOURCES=contracts, payments,"},
			order: []string{"contracts", "payments"},
			want:  map[string]config.Resource{"payments": {Schedule: "@hourly", ListKey: "rows"}, "contracts": {Schedule: "@every 5m"}},
		},
		"flag": {
			env: []string{"XIAOQU_RESOURCES=payments"}, flags: map[string]string{"resources": "users"},
			order: []string{"users"},
			want:  map[string]config.Resource{"users": {Schedule: "@every 5m"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := load(t, config.Input{File: file, Env: tt.env, Flags: tt.flags})
			if diff := cmp.Diff(tt.want, c.Resources); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.order, c.Names()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEverythingMissingIsReportedAtOnce(t *testing.T) {
	got := problems(t, config.Input{}).Error()
	want := `base_url: is missing (set XIAOQU_BASE_URL, or base_url in the file given by --config)
database.url: is missing (set XIAOQU_DATABASE_URL, or database.url in the file given by --config)
service_name: is missing (set XIAOQU_SERVICE_NAME, or service_name in the file given by --config)`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnUnreadVariableIsAWarningThatExplainsAMistake(t *testing.T) {
	typo := "XIAOQU_BASEURL=https://crm.example.com"
	want := config.Problem{
		Source: "environment", Field: "XIAOQU_BASEURL", Message: "is not read by anything",
		Hint: "did you mean XIAOQU_BASE_URL?", Warning: true,
	}
	c := load(t, config.Input{Env: append(environment(), typo, "XIAOQU_OPEN_KEY=xqok-1", "OTHER=1")})
	if diff := cmp.Diff([]config.Problem{want}, c.Warnings()); diff != "" {
		t.Error(diff)
	}
	ps := problems(t, config.Input{Env: append(environment()[1:], typo)})
	if len(ps) != 2 || ps[0] != want || ps[1].Field != "base_url" {
		t.Errorf("got %v", ps)
	}
}

func TestSchedulesAreJudgedByTheCaller(t *testing.T) {
	in := config.Input{File: []byte(minimal + "resources: {users: {schedule: nope}}\n"), CheckSchedule: func(s string) error {
		if s == "nope" {
			return errors.New("expected five fields")
		}
		return nil
	}}
	ps := problems(t, in)
	if len(ps) != 1 || ps[0].Field != "resources.users.schedule" || !strings.Contains(ps[0].Message, "expected five fields") {
		t.Errorf("got %v", ps)
	}
}

// update writes the golden files anew.
var update = flag.Bool("update", false, "write golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestEveryMistakeOfAFileIsReportedAtOnce(t *testing.T) {
	ps := problems(t, config.Input{
		Path:          "testdata/many.yaml",
		Env:           []string{"XIAOQU_LOG_FORMAT=xml", "XIAOQU_LOGLEVEL=info", "XIAOQU_RESOURCES=users,users,a b", "XIAOQU_SERVICE_NAME=xqok-s3cr3t"},
		Flags:         map[string]string{"no-such": "1", "page-limit": "201"},
		CheckSchedule: func(string) error { return errors.New("expected five fields") },
	})
	got := []byte(ps.Error() + "\n")
	if bytes.Contains(got, []byte("s3cr3t")) {
		t.Errorf("a secret is in the report:\n%s", got)
	}
	golden(t, "many.golden", got)
}

func TestAFileThatIsNoDocument(t *testing.T) {
	for name, tt := range map[string]struct {
		content      string
		want         string
		line, column int
	}{
		"empty":               {"", "is empty", 0, 0},
		"only a comment":      {"# nothing\n", "is empty", 0, 0},
		"several documents":   {"base_url: x\n---\nservice_name: y\n", "several documents", 2, 1},
		"not UTF-8":           {"a: 1\nb: \"caf\xe9\"\n", "not UTF-8", 2, 8},
		"UTF-16":              {"\xff\xfea\x00", "not UTF-8", 1, 1},
		"a control character": {"a: 1\x00", "not UTF-8", 1, 5},
		"too large":           {strings.Repeat("#", 1<<20) + "\n", "larger than 1 MiB", 0, 0},
		"a tab for indenting": {"log:\n\tlevel: info\n", "cannot be read as YAML", 2, 1},
		"an open quote":       {"base_url: 'x\n", "cannot be read as YAML", 2, 1},
		"an unknown alias":    {"base_url: *s3cr3t\n", "cannot be read as YAML", 1, 11},
		"very deep":           {strings.Repeat("[", 20000), "cannot be read as YAML", 1, 10001},
		"a list":              {"- a\n", "want keys with values, found a list", 1, 1},
		"a text":              {"hello\n", "want keys with values, found text", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ps := problems(t, config.Input{Path: "c.yaml", File: []byte(tt.content), Env: environment()})
			if len(ps) != 1 {
				t.Fatalf("got %v", ps)
			}
			p := ps[0]
			if p.Source != "c.yaml" || p.Line != tt.line || p.Column != tt.column || !strings.Contains(p.Message, tt.want) || strings.Contains(p.String(), "s3cr3t") {
				t.Errorf("got %+v, want %q at %d:%d", p, tt.want, tt.line, tt.column)
			}
		})
	}
}

func TestAFileThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{filepath.Join(dir, "none.yaml"): "no such file", dir: "is a directory"} {
		ps := problems(t, config.Input{Path: path})
		if len(ps) != 1 || ps[0].Source != path || !strings.Contains(ps[0].Message, want) {
			t.Errorf("got %v, want %q", ps, want)
		}
	}
}
