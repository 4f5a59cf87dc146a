package sync_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// behindProxy leads the mirror's own connections through a proxy.
func (w *world) behindProxy(t testing.TB) *localpg.Proxy {
	t.Helper()
	p := localpg.StartProxy(t, w.door)
	w.door = p.URL()
	w.reopen(t)
	return p
}

// cutting is a mirror of three pages of users whose connections will be cut.
type cutting struct {
	*world
	proxy *localpg.Proxy
	work  work
	wrote int // the last change's number
}

// work is what each of its runs has to do.
type work int

const (
	increment work = iota
	rebuild
	first
)

func newCutting(t *testing.T, do work) *cutting {
	t.Helper()
	c := &cutting{world: newWorld(t), work: do}
	c.limit = 4
	c.wait = leaseNoticed
	c.xiaoqu.Seed(12, 0, 0)
	c.mustRun(t, "users")
	c.wrote = c.sequence(t)
	c.proxy = c.behindProxy(t)
	return c
}

// leaseNoticed is time enough for a server to notice that the holder of a lease
// was cut off.
const leaseNoticed = 10e9

// change makes every user another one upstream, and the next run the work.
func (c *cutting) change(t *testing.T, n int) {
	t.Helper()
	for _, id := range c.xiaoqu.IDs("users") {
		c.xiaoqu.Edit("users", id, fmt.Sprintf(`{"n":%d}`, n))
	}
	switch c.work {
	case rebuild:
		c.xiaoqu.ExpireTokens("users")
	case first:
		c.reset(t)
		c.wrote = 0
	case increment:
	}
}

// cutAt runs once with a cut at the n-th event, and again when that run failed.
// It reports whether the run came to the event at all.
func (c *cutting) cutAt(t *testing.T, e localpg.Event, n int) (o sync.Outcome, came bool) {
	t.Helper()
	c.change(t, n)
	c.proxy.Cut(e, n)
	o = c.run(t.Context(), "users")["users"]
	if c.proxy.Armed() {
		c.proxy.Cut(e, 0)
		return o, false
	}
	var failed *mirror.Error
	switch {
	case o.Result == sync.Synced: // which is no false success, as is seen next
	case errors.As(o.Err, &failed) && failed.Kind == mirror.KindUnreachable:
		c.mustRun(t, "users")
	default:
		t.Fatalf("cut %d: %s, %v", n, o.Result, o.Err)
	}
	c.equal(t, "users")
	before := c.wrote
	c.wrote = c.sequence(t)
	if c.wrote-before != 12 {
		t.Errorf("cut %d: %d changes for 12 changed records: lost or doubled", n, c.wrote-before)
	}
	return o, true
}

// sequence is the last change's number, which no two rows share and the
// greatest row has.
func (c *cutting) sequence(t *testing.T) int {
	t.Helper()
	return c.count(t, `select case when count(*) = count(distinct u.change_seq) and max(u.change_seq) = max(s.change_seq)
		then max(s.change_seq) else -1 end from xiaoqu.users u, xiaoqu_sync.state s where s.resource = 'users'`)
}

// closed wants every run to have an end: the next start closes what a cut left
// open.
func (c *cutting) closed(t *testing.T) {
	t.Helper()
	c.mustRun(t, "users")
	if open := c.count(t, "select count(*) from xiaoqu_sync.runs where ended_at is null"); open != 0 {
		t.Errorf("%d runs are still open", open)
	}
}

func TestAConnectionCutAtAnyStatementLosesAndDoublesNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		work  work
		event localpg.Event
	}{
		{"an increment, before a statement reaches the server", increment, localpg.Statement},
		{"an increment, before its answer is heard", increment, localpg.Answer},
		{"a rebuild, before a statement reaches the server", rebuild, localpg.Statement},
		{"a rebuild, before its answer is heard", rebuild, localpg.Answer},
		{"a first sync, before its answer is heard", first, localpg.Answer},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newCutting(t, c.work)
			n := 1
			for came := true; came; n++ {
				_, came = w.cutAt(t, c.event, n)
			}
			w.closed(t)
			if n < 12 { // signing in and out, three pages, three commits
				t.Errorf("only %d cuts: the proxy does not see the statements", n)
			}
		})
	}
}

func TestARunRecoversByItselfFromACutAtCommit(t *testing.T) {
	for _, c := range []struct {
		name  string
		work  work
		event localpg.Event
	}{
		{"an increment, before the server committed", increment, localpg.Commit},
		{"an increment, after the server committed", increment, localpg.Committed},
		{"a rebuild, before the server committed", rebuild, localpg.Commit},
		{"a rebuild, after the server committed", rebuild, localpg.Committed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newCutting(t, c.work)
			n := 1
			for came := true; came; n++ {
				var o sync.Outcome
				if o, came = w.cutAt(t, c.event, n); came && (o.Result != sync.Synced || o.Retries != 1 || o.Pages != 3) {
					t.Errorf("commit %d: %s after %d retries and %d pages, %v", n, o.Result, o.Retries, o.Pages, o.Err)
				}
			}
			w.closed(t)
			if n < 4 {
				t.Errorf("only %d commits", n-1)
			}
		})
	}
}
