package xiaoqusync_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The drawing of the house. A room's doors are the rooms that its code may
// import; its tests may import the test tools and what tests adds as well.
func house() drawing {
	all := []string{
		"agent", "agent/api", "agent/mcp", "agent/relay", "agent/store", "cmd/xiaoqu-sync/alert", "cmd/xiaoqu-sync/board", "cmd/xiaoqu-sync/metrics", "config", "credentials",
		"credentials/vault", "migrations", "mirror", "mirror/localpg", "mirror/views",
		"remote", "remote/remotetest", "sync",
	}
	windows := []string{"cmd/xiaoqu-sync/board", "cmd/xiaoqu-sync/metrics"}
	return drawing{
		module: "github.com/xiaoqu-sync/xiaoqu-sync",
		rooms: map[string]room{
			"": {tests: all},
			"cmd/xiaoqu-sync": {doors: []string{
				"cmd/xiaoqu-sync/alert", "cmd/xiaoqu-sync/board", "cmd/xiaoqu-sync/metrics",
				"config", "credentials", "credentials/vault", "migrations", "remote", "mirror", "mirror/views", "sync",
				"agent", "agent/api", "agent/mcp", "agent/relay", "agent/store",
			}, tests: all},
			"cmd/xiaoqu-sync/alert": {doors: []string{"credentials", "mirror", "sync"}},
			// Where the daemon is looked at.
			"cmd/xiaoqu-sync/board":   {doors: []string{"mirror"}, tests: windows},
			"cmd/xiaoqu-sync/metrics": {doors: []string{"remote", "mirror", "sync"}},
			"cmd/demo":                {doors: all, tests: all},
			// Measures all of it, as a program and not as a test.
			"bench":         {doors: append(slices.Clone(all), "bench/figures")},
			"bench/figures": {},
			"config":        {},
			"credentials":   {},
			// Next door, so that who wants only a key or a redactor links no client of
			// Vault; what it gives are the types of credentials.
			"credentials/vault":           {doors: []string{"credentials"}},
			"credentials/vault/vaulttest": {},
			"remote":                      {tests: []string{"credentials"}},
			"remote/remotetest":           {},
			"sync":                        {doors: []string{"remote", "mirror"}, tests: []string{"credentials", "migrations"}},
			"mirror":                      {doors: []string{"migrations", "mirror/views"}},
			"mirror/views":                {doors: []string{"migrations"}},
			"mirror/localpg":              {},
			"migrations":                  {},
			"docs/examples/go":            {},
			// The doors for agents. The core learns nothing of them; only cmd puts both
			// together.
			"agent":       {tests: []string{"agent/store", "migrations"}},
			"agent/api":   {doors: []string{"agent"}, tests: []string{"agent/store", "migrations"}},
			"agent/mcp":   {doors: []string{"agent"}, tests: []string{"agent/store", "migrations", "mirror/views"}},
			"agent/relay": {doors: []string{"agent"}, tests: []string{"agent/store", "migrations"}},
			"agent/store": {doors: []string{"agent", "migrations"}, tests: []string{"mirror", "mirror/views"}},
			"deploy":      {tests: []string{"config"}},
		},
		testTools: []string{"remote/remotetest", "mirror/localpg", "credentials/vault/vaulttest"},
		// The simulator and what checks it are written from the contract alone, so
		// that one misreading can't cancel itself out.
		toolless: []string{"remote/remotetest", "mirror/localpg"},
		confined: []confinement{
			{"github.com/jackc/pgx", []string{"mirror", "mirror/localpg", "mirror/views", "migrations", "agent/store", "bench", "docs/examples/go"}, []string{"agent", "agent/api", "agent/mcp", "agent/relay", "sync", "cmd/xiaoqu-sync", "cmd/xiaoqu-sync/alert", "cmd/demo"}},
			{"github.com/modelcontextprotocol/go-sdk", []string{"remote", "agent/mcp"}, []string{"remote/remotetest"}},
			{"github.com/hashicorp/vault", []string{"credentials/vault"}, nil},
			{"github.com/robfig/cron", []string{"sync"}, nil},
		},
	}
}

func TestRoomsKeepTheirDoors(t *testing.T) {
	files, err := parseTree(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("only %d files found: is this the root?", len(files))
	}
	for _, breach := range inspect(house(), files) {
		t.Error(breach)
	}
}

func TestRoomsOfTheBinaryHoldNoTestTool(t *testing.T) {
	if _, err := os.Stat("cmd/xiaoqu-sync"); err != nil {
		t.Skip("there is no binary yet")
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/xiaoqu-sync")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if len(linked) < 10 {
		t.Fatalf("go list gives %q", linked)
	}
	for _, path := range linked {
		if name, ours := strings.CutPrefix(path, house().module+"/"); ours {
			for _, tool := range house().testTools {
				if name == tool {
					t.Errorf("cmd/xiaoqu-sync links %s, which is for tests and the demo", tool)
				}
			}
		}
	}
}
