package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// locked keeps everybody from writing the readers' table until the test ends.
func (c *cli) locked(t testing.TB, resource string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	if _, err := conn.Exec(t.Context(), "begin; lock table xiaoqu."+resource+" in share mode"); err != nil {
		t.Fatal(err)
	}
}

// blocked waits until a statement waits for a lock.
func (c *cli) blocked(t testing.TB) {
	t.Helper()
	eventually(t, "a statement that waits for the lock", func() bool {
		return len(c.read(t, "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")) > 0
	})
}

// phase brings a daemon, which start starts with a schedule, to where it is
// to be stopped.
type phase func(t *testing.T, c *cli, start func(schedule string) *process) *process

// called is told of the requests that match.
func (c *cli) called(match func(remotetest.Call) bool) chan struct{} {
	seen := make(chan struct{}, 100)
	c.xiaoqu.OnCall(func(call remotetest.Call) {
		if match(call) {
			seen <- struct{}{}
		}
	})
	return seen
}

func phases() map[string]phase {
	return map[string]phase{
		"waiting for the next moment": func(t *testing.T, _ *cli, start func(schedule string) *process) *process {
			p := start("@every 1h")
			p.logs(t, "run done", 3)
			return p
		},
		"fetching a page that never comes": func(_ *testing.T, c *cli, start func(schedule string) *process) *process {
			seen := c.called(remotetest.OnPage("users", 2))
			c.xiaoqu.Inject(remotetest.Fault{Match: remotetest.OnPage("users", 2), Times: -1, Do: remotetest.Hang(true)})
			p := start("@every 1h")
			<-seen
			return p
		},
		"committing a page": func(t *testing.T, c *cli, start func(schedule string) *process) *process {
			c.locked(t, "users")
			p := start("@every 1h")
			c.blocked(t)
			return p
		},
		"merging a rebuild": func(t *testing.T, c *cli, start func(schedule string) *process) *process {
			c.must(t, "sync")
			c.xiaoqu.ExpireTokens("users")
			c.xiaoqu.Edit("users", c.xiaoqu.IDs("users")[0], `{"name":"changed"}`)
			c.locked(t, "users")
			p := start("@every 1s")
			c.blocked(t)
			return p
		},
		"waiting to ask again": func(t *testing.T, c *cli, start func(schedule string) *process) *process {
			c.xiaoqu.Inject(remotetest.Fault{
				Match: remotetest.OnPage("users", 1), Times: -1,
				Do: remotetest.Fail(remotetest.Failure{Place: remotetest.HTTPBare, Status: 429, RetryAfter: "50"}),
			})
			p := start("@every 1h")
			p.logs(t, "waiting to ask again", 1)
			return p
		},
		"waiting for the database": func(t *testing.T, c *cli, start func(schedule string) *process) *process {
			c.set("XIAOQU_DATABASE_URL", newDoor(t, c.url).URL())
			p := start("@every 1h")
			p.logs(t, "waiting to try again", 1)
			return p
		},
	}
}

func TestAStopTakesLessThanTenSecondsInEveryPhase(t *testing.T) {
	binary := build(t)
	for name, reach := range phases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCLI(t)
			c.set("XIAOQU_LOG_LEVEL", "info")
			c.xiaoqu.Seed(1000, 3, 3)
			c.must(t, "migrate")
			p := reach(t, c, func(schedule string) *process { return c.daemon(t, binary, configured(t, schedule, "")) })
			exit, took := p.stop(t, syscall.SIGTERM)
			t.Logf("SIGTERM while %s: %v", name, took.Round(10*time.Millisecond))
			if exit != 143 || took > 10*time.Second {
				t.Errorf("exit %d after %v, want 143 within 10s", exit, took)
			}
			if open := c.read(t, "select count(*) from xiaoqu_sync.runs where ended_at is null"); open[0][0] != "0" {
				t.Errorf("%s runs left open", open[0][0])
			}
		})
	}
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	binary := build(t)
	t.Parallel()
	c := newCLI(t)
	c.xiaoqu.Seed(10, 0, 0)
	c.must(t, "migrate")
	c.locked(t, "users")
	p := c.daemon(t, binary, configured(t, "@every 1h", ""))
	c.blocked(t)
	_ = p.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		t.Fatal("the first signal did not wait for the page in hand")
	case <-time.After(500 * time.Millisecond):
	}
	if exit, took := p.stop(t, syscall.SIGINT); exit != 130 || took > time.Second {
		t.Errorf("exit %d after %v", exit, took)
	}
}
