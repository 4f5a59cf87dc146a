package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// inProcess is a daemon within the test, with the hooks that a test wants. It
// tells how it ended.
func (c *cli) inProcess(t testing.TB, schedule string, h hooks) (d *daemon, stop func(), ended chan error) {
	t.Helper()
	p := newProgram(c.env, t.Output(), t.Output())
	p.configPath = configured(t, schedule, "")
	cfg, err := p.load(config.Input{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	if d, err = newDaemon(a, h); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended = make(chan error, 1)
	go func() { ended <- d.run(ctx, nil) }()
	return d, func() { cancel(errStopped) }, ended
}

var errStopped = errors.New("stopped by the test")

func TestWhatStandsBesideTheTimetableIsToldAndStopped(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.xiaoqu.Seed(30, 30, 30)
	c.xiaoqu.Inject(remotetest.Fault{Match: remotetest.OnPage("users", 1), Do: remotetest.Hang(true)})
	c.set("XIAOQU_REQUEST_TIMEOUT", "4s")
	observed, skipped := make(chan sync.Outcome, 1000), make(chan string, 1000)
	background := make(chan string, 2)
	d, stop, ended := c.inProcess(t, "@every 1s", hooks{
		observe: func(os []sync.Outcome) {
			for _, o := range os {
				observed <- o
			}
		},
		skipped: func(r string) { skipped <- r },
		background: []func(context.Context) error{func(ctx context.Context) error {
			background <- "began"
			<-ctx.Done()
			background <- "stopped"
			return nil
		}},
	})
	<-background
	for r := range skipped { // until it is the one that hangs
		if r == "users" {
			break
		}
	}
	seen := map[string]int{}
	for seen["users"] < 2 {
		o := <-observed
		seen[o.Resource]++
		if o.Result != sync.Synced {
			t.Errorf("%s: %s, %v", o.Resource, o.Result, o.Err)
		}
	}
	if seen["contracts"] < 3 {
		t.Errorf("while users hung, contracts had %d runs", seen["contracts"])
	}
	if next := d.next(); len(next) != 3 || time.Until(next["users"]) > 2*time.Second {
		t.Errorf("next: %v", next)
	}
	stop()
	if err := <-ended; !errors.Is(err, errStopped) {
		t.Errorf("it ended with %v", err)
	}
	if <-background != "stopped" {
		t.Error("the background was not stopped")
	}
}

func TestReadyIsWhatAPersonNeedNotMend(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.xiaoqu.Seed(3, 3, 3)
	direct, door := c.url, newDoor(t, c.url)
	c.set("XIAOQU_DATABASE_URL", door.URL())
	d, stop, ended := c.inProcess(t, "@every 1s", hooks{})
	ready := func() bool { return d.ready(t.Context()) == nil }
	if ready() {
		t.Error("ready without a database")
	}
	door.unlock(t)
	eventually(t, "ready", func() bool { c.url = direct; return ready() && c.migrated(t) && c.rounds(t, "users") > 0 })
	c.xiaoqu.SetContext(remotetest.Context{PrincipalType: "user_delegated"})
	eventually(t, "not ready with a personal token", func() bool {
		var r *sync.Refusal
		return errors.As(d.ready(t.Context()), &r)
	})
	c.xiaoqu.SetContext(remotetest.Context{})
	eventually(t, "ready again", ready)
	door.shut(t)
	if ready() {
		t.Error("ready while the database is away")
	}
	stop()
	if err := <-ended; !errors.Is(err, errStopped) {
		t.Errorf("it ended with %v", err)
	}
}

func TestABackgroundThatFailsEndsTheDaemon(t *testing.T) {
	t.Parallel()
	broken := errors.New("the port is taken")
	c := newCLI(t)
	_, _, ended := c.inProcess(t, "@every 1h", hooks{background: []func(context.Context) error{
		func(context.Context) error { return broken },
	}})
	if err := <-ended; !errors.Is(err, broken) {
		t.Errorf("it ended with %v", err)
	}
}

func TestAPanicInARunIsCountedOnce(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	p := newProgram(c.env, t.Output(), t.Output())
	cfg, err := p.load(config.Input{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	h, err := a.watchers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDaemon(a, h)
	if err != nil {
		t.Fatal(err)
	}
	d.observe(sync.Outcome{Resource: "users", Result: sync.Failed, Err: &sync.PanicError{Value: "x"}})
	rec := httptest.NewRecorder()
	a.metrics.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if body := rec.Body.String(); !strings.Contains(body, "\nxiaoqu_sync_panics_total 1\n") {
		t.Error(regexp.MustCompile(`(?m)^xiaoqu_sync_panics_total.*$`).FindString(body))
	}
}
