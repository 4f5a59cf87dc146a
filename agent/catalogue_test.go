package agent_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s differs; if that is meant: go test ./agent -update\n%s", file, diff)
	}
}

func everyCapability(t testing.TB) *agent.Service {
	t.Helper()
	s, err := agent.New(agent.Options{Resources: resources, Allow: agent.Writing(), Worker: worker(nil)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Platforms have reviewed it: every change of it shows in review here too.
func TestTheCatalogueIsAsPromised(t *testing.T) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	if err := e.Encode(everyCapability(t).Capabilities()); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/catalogue.json", text.Bytes())
}

func TestWhatWritesIsOffUntilItIsAllowed(t *testing.T) {
	ids := func(o agent.Options) string {
		s, err := agent.New(o)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, c := range s.Capabilities() {
			if c.Write {
				ids = append(ids, c.ID)
			}
		}
		return strings.Join(ids, " ")
	}
	if got := ids(agent.Options{Worker: worker(nil)}); got != "" {
		t.Error(got)
	}
	if got := ids(agent.Options{Worker: worker(nil), Allow: []string{"sync.run", "verify.run"}}); got != "sync.run verify.run" {
		t.Error(got)
	}
	if got := ids(agent.Options{Allow: []string{"sync.run"}}); got != "" { // there is nobody to do it
		t.Error(got)
	}
	for _, id := range []string{"records.get", "everything", "sync_run", ""} {
		if _, err := agent.New(agent.Options{Allow: []string{id}}); err == nil {
			t.Errorf("%q can be allowed", id)
		}
	}
}

func TestScopesSayWhatACallerMayUse(t *testing.T) {
	s := everyCapability(t)
	for _, tt := range []struct {
		scopes               string
		get, sync, writesAll bool
	}{
		{"", false, false, false},
		{"read", true, false, false},
		{"*", true, true, true},
		{"sync.run", false, true, false},
		{"sync_run", false, false, false},
		{"records.get sync.run", true, true, false},
		{"records", false, false, false},
	} {
		c := agent.Caller{Scopes: strings.Fields(tt.scopes)}
		if c.May(s.Capability("records.get")) != tt.get || c.May(s.Capability("sync_run")) != tt.sync || c.May(s.Capability("rebuild.apply")) != tt.writesAll {
			t.Errorf("%q", tt.scopes)
		}
	}
}
