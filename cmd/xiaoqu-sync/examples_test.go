package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The readers in docs/examples follow the mirror as docs/reading.md says.
func TestTheExamplesFollowChanges(t *testing.T) {
	for name, program := range map[string]struct {
		args []string
		need func() string // why it cannot run here
	}{
		"go": {[]string{"go", "run", "./docs/examples/go", "users"}, func() string { return "" }},
		"typescript": {[]string{"node", "docs/examples/typescript/follow.ts", "users"}, func() string {
			if _, err := os.Stat("../../docs/examples/typescript/node_modules/pg"); err != nil {
				return "npm install in docs/examples/typescript first"
			}
			out, err := exec.CommandContext(t.Context(), "node", "-p", "process.features.typescript ?? ''").Output()
			if err != nil || strings.TrimSpace(string(out)) == "" {
				return "no Node.js that runs TypeScript (22.18 or later)"
			}
			return ""
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if why := program.need(); why != "" {
				t.Skip(why)
			}
			c := newCLI(t)
			c.xiaoqu.Seed(3, 0, 0)
			c.must(t, "sync", "users")
			follow := func() string {
				run := exec.CommandContext(t.Context(), program.args[0], program.args[1:]...)
				run.Dir = "../.."
				run.Env = append(os.Environ(), "ONCE=1", "DATABASE_URL="+c.url)
				out, err := run.CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				return string(out)
			}
			if out := follow(); strings.Count(out, " changed\n") != 3 {
				t.Errorf("at first:\n%s", out)
			}
			id := c.xiaoqu.IDs("users")[0]
			c.xiaoqu.Delete("users", id)
			c.must(t, "sync", "users")
			if out := follow(); out != "users "+id+" deleted\n" {
				t.Errorf("then:\n%s", out)
			}
			if out := follow(); out != "" {
				t.Errorf("at last:\n%s", out)
			}
		})
	}
}
