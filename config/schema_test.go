package config_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	b, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// document is YAML as a JSON Schema sees it.
func document(t *testing.T, content []byte) any {
	t.Helper()
	var v any
	if err := yaml.Load(content, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func example(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheExampleLoadsAndSatisfiesTheSchema(t *testing.T) {
	load(t, config.Input{Path: "example.yaml"})
	if err := compiled(t).Validate(document(t, example(t))); err != nil {
		t.Error(err)
	}
}

func TestTheExampleHasEveryKey(t *testing.T) {
	c := load(t, config.Input{Path: "example.yaml"})
	for _, s := range c.Effective() {
		if s.Origin == "default" && !strings.HasPrefix(s.Name, "resources.") {
			t.Errorf("%s is not in the example", s.Name)
		}
	}
}

func TestTheSchemaAgreesWithLoad(t *testing.T) {
	s := compiled(t)
	for extra, ok := range map[string]bool{
		"":                                 true,
		"log:":                             true,
		"resources: {users: }":             true,
		"page_limit: 200":                  true,
		"page_limit: 201":                  false,
		"page_limit: ten":                  false,
		"request_timeout: 1m30s":           true,
		"request_timeout: soon":            false,
		"log: {level: loud}":               false,
		"colour: blue":                     false,
		"http: {port: 1}":                  false,
		"resources: {Users: {}}":           false,
		"resources: {users: {columns: }}":  true,
		"resources: {users: {fields: {}}}": false,
		"resources: {users: {columns: {a: {path: $.a, type: text}}}}":             true,
		"resources: {users: {columns: {a: {path: $.a, type: text, index: yes}}}}": false,
		"resources: {users: {columns: {a: {path: $.a}}}}":                         false,
		"resources: {users: {columns: {a: text}}}":                                false,
		"resources: {users: {columns: [a]}}":                                      false,
		"resources: {users: {columns: {a: {path: $.a, type: text, kind: x}}}}":    false,
		"resources: {users: {masked: [$.a]}}":                                     true,
		"resources: {users: {masked: $.a}}":                                       false,
		"resources: {users: {masked: [1]}}":                                       false,
		"resources: {}":                                                           false,
		"resources: [users]":                                                      false,
		"database: {auto_migrate: 'true'}":                                        false,
		"rebuild: {max_delete_ratio: 2}":                                          false,
		"credentials: {source: keychain}":                                         false,
		"credentials: {source: vault, vault: {path: crm/xiaoqu}}":                 true,
		"credentials: {vault: {auth: password}}":                                  false,
		"credentials: {vault: {secret_id: x}}":                                    false,
		"credentials: {vault: {wait: soon}}":                                      false,
		"credentials: {vault: {mount: a b}}":                                      false,
	} {
		agree(t, s, extra, ok)
	}
}

// agree holds the schema and Load to the same verdict on a file with this added.
func agree(t *testing.T, s *jsonschema.Schema, extra string, ok bool) {
	t.Helper()
	content := []byte("base_url: https://crm.example.com\nservice_name: crm\n" + extra + "\n")
	if err := s.Validate(document(t, content)); (err == nil) != ok {
		t.Errorf("schema on %q: %v", extra, err)
	}
	ps := problems(t, config.Input{File: content, Env: environment()})
	if (len(ps) == 0) != ok {
		t.Errorf("Load on %q: %v", extra, ps)
	}
}

func TestTheSchemaIsClosedEverywhere(t *testing.T) {
	b, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	objects := bytes.Count(b, []byte(`"properties": {`))
	closed := bytes.Count(b, []byte(`"additionalProperties": false`))
	if objects != closed || objects < 7 {
		t.Errorf("%d objects, %d of them closed", objects, closed)
	}
	if !bytes.Contains(b, []byte("draft/2020-12/schema")) {
		t.Error("no draft named")
	}
}

func TestEffectiveSaysWhereEachValueComesFrom(t *testing.T) {
	c := load(t, config.Input{
		Path: "c.yaml", File: []byte(minimal + "resources: {users: {list_key: rows}}\nalerts: {targets: [{kind: wecom, url_env: ALERT, events: [halt, stale]}, {kind: json, url: 'https://a.example/x'}]}\n"),
		Env: []string{"XIAOQU_SERVICE_NAME=other", "XIAOQU_VAULT_PATH=/crm/xiaoqu/", "XIAOQU_DATABASE_URL=postgres://app:pw@db/crm"}, Flags: map[string]string{"page-limit": "10"},
	})
	want := []config.Setting{
		{Name: "base_url", Value: "https://crm.example.com", Origin: "c.yaml:1"},
		{Name: "service_name", Value: "other", Origin: "environment XIAOQU_SERVICE_NAME"},
		{Name: "database.url", Value: "postgres://app:[redacted]@db/crm", Origin: "environment XIAOQU_DATABASE_URL"},
		{Name: "database.schema", Value: "xiaoqu", Origin: "default"},
		{Name: "database.auto_migrate", Value: "true", Origin: "default"},
		{Name: "credentials.source", Value: "env", Origin: "default"},
		{Name: "credentials.file", Value: "", Origin: "default"},
		{Name: "database.vault_path", Value: "", Origin: "default"},
		{Name: "database.vault_field", Value: "password", Origin: "default"},
		{Name: "credentials.vault.mount", Value: "secret", Origin: "default"},
		{Name: "credentials.vault.path", Value: "crm/xiaoqu", Origin: "environment XIAOQU_VAULT_PATH"},
		{Name: "credentials.vault.field", Value: "open_key", Origin: "default"},
		{Name: "credentials.vault.auth", Value: "token", Origin: "default"},
		{Name: "credentials.vault.role_id", Value: "", Origin: "default"},
		{Name: "credentials.vault.secret_id_file", Value: "", Origin: "default"},
		{Name: "credentials.vault.role", Value: "", Origin: "default"},
		{Name: "credentials.vault.token_file", Value: "", Origin: "default"},
		{Name: "credentials.vault.wait", Value: "1m0s", Origin: "default"},
		{Name: "request_timeout", Value: "30s", Origin: "default"},
		{Name: "page_limit", Value: "10", Origin: "flag --page-limit"},
		{Name: "time_zone", Value: "Asia/Shanghai", Origin: "default"},
		{Name: "schedule_jitter", Value: "30s", Origin: "default"},
		{Name: "rebuild.max_delete_ratio", Value: "0.3", Origin: "default"},
		{Name: "http.listen", Value: "127.0.0.1:9464", Origin: "default"},
		{Name: "log.level", Value: "auto", Origin: "default"},
		{Name: "log.format", Value: "text", Origin: "default"},
		{Name: "alerts.stale_after", Value: "2h0m0s", Origin: "default"},
		{Name: "alerts.remind_after", Value: "4h0m0s", Origin: "default"},
		{Name: "alerts.language", Value: "zh", Origin: "default"},
		{Name: "alerts.name", Value: "", Origin: "default"},
		{Name: "agents.doors", Value: "", Origin: "default"},
		{Name: "alerts.targets", Value: "wecom env ALERT (halt, stale); json https://a.example/x", Origin: "c.yaml:6"},
		{Name: "resources", Value: "users", Origin: "c.yaml:5"},
		{Name: "resources.users.schedule", Value: "@every 5m", Origin: "default"},
		{Name: "resources.users.list_key", Value: "rows", Origin: "c.yaml:5"},
	}
	if diff := cmp.Diff(want, c.Effective()); diff != "" {
		t.Error(diff)
	}
}

var wellFormed = regexp.MustCompile(`^\S.*\S$`)

func FuzzLoad(f *testing.F) {
	many, err := os.ReadFile("testdata/many.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(many))
	f.Add(minimal)
	for _, s := range []string{"", "- a", "a: *x", "<<: {a: 1}", "? [a]\n: b", "%YAML 3.0\n---\na: 1", "---\n---\n", "a: !x y", "\"\\x00\": 1", "xqok-FUZZED: 1", "a: *xqok-FUZZED", "database: {url: 'postgres://a:FUZZED@h/d?a=b#c'}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, file string) {
		c, err := config.Load(config.Input{Path: "c.yaml", File: []byte(file), Env: environment()})
		if (c == nil) == (err == nil) {
			t.Fatalf("config %v with error %v", c != nil, err)
		}
		if err == nil {
			return
		}
		for _, p := range problems(t, config.Input{Path: "c.yaml", File: []byte(file), Env: environment()}) {
			if p.Message == "" || (p.Line == 0) != (p.Column == 0) || !wellFormed.MatchString(p.String()) {
				t.Errorf("%+v", p)
			}
			if strings.Contains(p.String(), "xqok-FUZZED") {
				t.Errorf("a key is repeated: %s", p)
			}
		}
	})
}
