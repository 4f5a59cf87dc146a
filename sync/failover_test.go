package sync_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// logged gives for each message a channel that holds something from its first
// line on.
func (w *world) logged(t *testing.T, messages ...string) map[string]chan struct{} {
	t.Helper()
	lines := map[string]chan struct{}{}
	for _, m := range messages {
		lines[m] = make(chan struct{}, 1)
	}
	w.log = zaptest.NewLogger(t, zaptest.Level(zap.InfoLevel), zaptest.WrapOptions(zap.Hooks(func(e zapcore.Entry) error {
		select {
		case lines[e.Message] <- struct{}{}:
		default: // of no interest, or told before
		}
		return nil
	})))
	return lines
}

// await waits for a line, but not for ever. It is for any goroutine.
func await(t *testing.T, lines map[string]chan struct{}, message string) {
	t.Helper()
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	select {
	case <-lines[message]:
	case <-timeout.C:
		t.Errorf("not logged in time: %s", message)
	}
}

const (
	logRetry   = "the mirror could not be written; waiting to try again"
	logBroke   = "the database connection that held the lease broke; taking the lease again"
	logRetaken = "the lease is taken again"
	logLost    = "the lease could not be taken again; the run ends"
)

// atPage calls f behind the n-th page that the next run commits.
func (w *world) atPage(n int64, f func()) {
	before := w.watch
	w.watch = func(p sync.Progress) {
		switch {
		case p.Pages == n:
			f()
		case before != nil:
			before(p)
		}
	}
}

// primary is a PostgreSQL server of its own with a world in it, behind a proxy.
type primary struct {
	*world
	dir     string
	cluster *localpg.Cluster
	proxy   *localpg.Proxy
}

// startIn starts a server on a directory and returns it with the URL of a login
// that every copy of the directory knows.
func startIn(t *testing.T, dir string) (*localpg.Cluster, string) {
	t.Helper()
	c, err := localpg.Start(t.Context(), localpg.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	u, err := url.Parse(c.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("worker", "x")
	return c, u.String()
}

func newPrimary(t *testing.T) *primary {
	t.Helper()
	p := &primary{world: newWorld(t), dir: t.TempDir()}
	p.cluster, p.url = startIn(t, p.dir)
	if _, _, err := localpg.Query(t.Context(), p.cluster.URL("postgres"), "create role worker superuser login password 'x'"); err != nil {
		t.Fatal(err)
	}
	p.door = p.url
	p.proxy = p.behindProxy(t)
	if _, err := p.mirror.Migrate(t.Context(), all, false); err != nil {
		t.Fatal(err)
	}
	p.xiaoqu.Seed(60, 0, 0)
	return p
}

// promote crashes the primary and leads everybody to a server on dir.
func (p *primary) promote(t *testing.T, dir string) {
	t.Helper()
	if err := p.cluster.Kill(); err != nil {
		t.Error(err)
		return
	}
	p.cluster, p.url = startIn(t, dir)
	if err := p.proxy.Retarget(p.url); err != nil {
		t.Error(err)
	}
}

func TestARunSurvivesAFailoverAndKeepsItsLease(t *testing.T) {
	p := newPrimary(t)
	lines := p.logged(t, logRetaken)
	var aside sync.Outcome
	p.atPage(2, func() { p.promote(t, p.dir) })
	p.atPage(4, func() {
		await(t, lines, logRetaken)
		other := *p.world
		other.watch = nil
		aside = other.run(t.Context(), "users")["users"]
	})
	o := p.run(t.Context(), "users")["users"]
	if o.Result != sync.Synced || o.Pages != 6 || o.Counts.Inserted != 60 {
		t.Fatalf("%+v, %v", o, o.Err)
	}
	p.equal(t, "users")
	if aside.Result != sync.SteppedAside || aside.Holder == nil || aside.Holder.PID != p.holder.PID {
		t.Errorf("another worker behind the failover: %+v, %v", aside, aside.Err)
	}
	if got := p.read(t, "select mode, outcome, ended_at is not null from xiaoqu_sync.runs"); len(got) != 1 || got[0][1] != "synced" {
		t.Errorf("runs: %v", got)
	}
	if n := p.count(t, "select count(*) from xiaoqu_sync.leases"); n != 0 {
		t.Error("the lease was not given back")
	}
}

func TestAFailoverThatLostTheLastPagesEndsTheRunAndTheNextGoesOn(t *testing.T) {
	p := newPrimary(t)
	ctx, stop := context.WithCancel(t.Context())
	p.atPage(1, stop)
	if o := p.run(ctx, "users")["users"]; o.Result != sync.Interrupted {
		t.Fatalf("%s, %v", o.Result, o.Err)
	}
	if err := p.cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	lagging := t.TempDir() // a standby that has the first page only
	if err := os.CopyFS(filepath.Join(lagging, "data"), os.DirFS(filepath.Join(p.dir, "data"))); err != nil {
		t.Fatal(err)
	}
	p.likeData(t, lagging)
	if err := p.cluster.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.reopen(t)
	p.watch = nil
	p.atPage(2, func() { p.promote(t, lagging) })
	o := p.run(t.Context(), "users")["users"]
	var e *mirror.Error
	if o.Result != sync.Failed || !errors.As(o.Err, &e) || e.Kind != mirror.KindFenced || e.Name() != "SUPERSEDED" {
		t.Fatalf("%s, %v", o.Result, o.Err)
	}
	if n := p.count(t, "select count(*) from xiaoqu.users"); n != 10 {
		t.Errorf("%d rows, want the first page alone", n)
	}
	p.watch = nil
	if o := p.mustRun(t, "users")["users"]; o.Mode != "resumed" {
		t.Errorf("mode %s", o.Mode)
	}
	p.equal(t, "users")
}

// likeData gives a copy of the data to whom the data belongs.
func (p *primary) likeData(t *testing.T, dir string) {
	t.Helper()
	uid, gid := owner(t, p.cluster.Dir())
	err := filepath.WalkDir(filepath.Join(dir, "data"), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return errors.Join(err, os.Lchown(path, uid, gid))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// away runs a world that loses its database behind the first page, and finds it
// again when meanwhile has been done by somebody who still reaches it. The second
// page waits for the line that tells what became of the lease.
func away(t *testing.T, end string, meanwhile func(w *world, direct *mirror.Mirror)) (*world, sync.Outcome) {
	t.Helper()
	w := newWorld(t)
	direct := w.mirror
	w.xiaoqu.Seed(100, 0, 0)
	p := w.behindProxy(t)
	lines := w.logged(t, logBroke, end)
	w.atPage(1, func() {
		if err := p.Retarget("postgres://127.0.0.1:1/"); err != nil {
			t.Error(err)
		}
		await(t, lines, logBroke)
		meanwhile(w, direct)
		if err := p.Retarget(w.door); err != nil {
			t.Error(err)
		}
	})
	w.atPage(2, func() { await(t, lines, end) })
	w.door = w.url
	o := w.run(t.Context(), "users")["users"]
	w.watch = nil
	return w, o
}

// seize takes the lease as soon as the server has noticed that its holder is cut off.
func seize(t *testing.T, m *mirror.Mirror, h mirror.Holder) *mirror.Lease {
	t.Helper()
	for {
		lease, err := m.Lease(t.Context(), "users", h)
		if err == nil {
			return lease
		}
		if held := new(mirror.HeldError); !errors.As(err, &held) {
			t.Fatal(err)
		}
	}
}

func TestALeaseThatAnotherWorkerTookEndsTheRun(t *testing.T) {
	w, o := away(t, logLost, func(_ *world, direct *mirror.Mirror) {
		lease := seize(t, direct, mirror.Holder{Host: "other", PID: 7})
		t.Cleanup(func() { lease.Release(context.WithoutCancel(t.Context())) })
	})
	if o.Result != sync.Failed || !errors.Is(o.Err, sync.ErrLeaseLost) {
		t.Fatalf("%s, %v", o.Result, o.Err)
	}
	if got := w.read(t, "select host from xiaoqu_sync.leases"); len(got) != 1 || got[0][0] != "other" {
		t.Errorf("the lease is %v's", got)
	}
	if got := w.read(t, "select outcome, code from xiaoqu_sync.runs"); len(got) != 1 || got[0][0] != "failed" || got[0][1] != "LEASE_LOST" {
		t.Errorf("runs: %v", got)
	}
}

func TestALeaseThatTheServerStillHoldsForUsIsWaitedFor(t *testing.T) {
	w, o := away(t, logRetaken, func(w *world, direct *mirror.Mirror) {
		// As a server has it that has not noticed the broken connection.
		ghost := seize(t, direct, w.holder)
		time.AfterFunc(300*time.Millisecond, func() { ghost.Release(context.WithoutCancel(t.Context())) })
	})
	if o.Result != sync.Synced || o.Pages != 10 {
		t.Errorf("%s, %d pages, %v", o.Result, o.Pages, o.Err)
	}
	w.equal(t, "users")
}
