package main

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// example is a reader of docs/examples: how it is started, and what it needs here.
type example struct {
	args  []string
	probe []string                // fails where the reader cannot run
	lacks string                  // what to install then
	url   func(url string) string // the database's, as its driver takes it; nil takes it as it is
}

func examples(t *testing.T) map[string]example {
	jar := os.Getenv("XIAOQU_TEST_JDBC")
	if jar == "" {
		jar = "/usr/share/java/postgresql.jar"
	}
	return map[string]example{
		"go": {args: []string{"sh", "-c", `go build -o "$0" ./docs/examples/go && exec "$0" users`, t.TempDir() + "/follow"}, probe: []string{"go", "version"}},
		"typescript": {
			args:  []string{"sh", "-c", "cd docs/examples/typescript && exec node --import ts-blank-space/register follow.ts users"},
			probe: []string{"node", "-e", "require('./docs/examples/typescript/node_modules/ts-blank-space')"},
			lacks: "Node.js 20 or later, and `npm ci` in docs/examples/typescript",
		},
		"python": {
			args:  []string{"/usr/bin/python3", "-u", "docs/examples/python/follow.py", "users"},
			probe: []string{"/usr/bin/python3", "-c", "import psycopg"},
			lacks: "Debian's python3-psycopg",
		},
		"java": {
			args:  []string{"sh", "-c", `test -f "$0/Follow.class" || javac -cp "$1" -d "$0" docs/examples/java/Follow.java && exec java -cp "$1:$0" Follow users`, t.TempDir(), jar},
			probe: []string{"sh", "-c", "javac --version && test -f " + jar},
			lacks: "a JDK of 17 or later, and PostgreSQL's JDBC driver (Debian's libpostgresql-jdbc-java)",
			url:   jdbc,
		},
	}
}

// jdbc is an address as Java's driver takes it.
func jdbc(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	password, _ := u.User.Password()
	return fmt.Sprintf("jdbc:postgresql://%s%s?%s", u.Host, u.Path, url.Values{"user": {u.User.Username()}, "password": {password}}.Encode())
}

// command starts the reader on the installation's database.
func (e example) command(ctx context.Context, c *cli, env ...string) *exec.Cmd {
	address := c.url
	if e.url != nil {
		address = e.url(address)
	}
	run := exec.CommandContext(ctx, e.args[0], e.args[1:]...)
	run.Dir = "../.."
	run.Env = append(append(os.Environ(), "DATABASE_URL="+address), env...)
	return run
}

// The readers in docs/examples follow the mirror as docs/reading.md says.
func TestTheExamplesFollowChanges(t *testing.T) {
	for name, e := range examples(t) {
		t.Run(name, func(t *testing.T) {
			probe := exec.CommandContext(t.Context(), e.probe[0], e.probe[1:]...)
			probe.Dir = "../.."
			if probe.Run() != nil {
				t.Skipf("it needs %s", e.lacks)
			}
			c := newCLI(t)
			c.xiaoqu.Seed(3, 0, 0)
			c.must(t, "sync", "users")
			follow := func() string {
				out, err := e.command(t.Context(), c, "ONCE=1").CombinedOutput()
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
			e.isWoken(t, c)
		})
	}
}

// isWoken lets the reader wait and holds that a commit's notice wakes it, long
// before it would look by itself.
func (e example) isWoken(t *testing.T, c *cli) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	run := e.command(ctx, c)
	run.WaitDelay = time.Second
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	run.Stderr = &said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for i := range 2 { // the first may be read at the start, the second only when woken
		id := c.xiaoqu.IDs("users")[0]
		c.xiaoqu.Delete("users", id)
		c.must(t, "sync", "users")
		if !lines.Scan() || lines.Text() != "users "+id+" deleted" {
			t.Errorf("change %d: %q\n%s", i+1, lines.Text(), said.String())
			break
		}
	}
	cancel()
	for lines.Scan() {
	}
	_ = run.Wait() // it was ended
}
