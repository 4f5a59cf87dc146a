package sync_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

const (
	// modelApplication tells the program's connections from those who watch.
	modelApplication = "model"
	// modelPace takes the place of the contract's second before a retry.
	modelPace = time.Millisecond
)

// act is a task of the engine.
type act = func(*sync.Engine, context.Context, []string) []sync.Outcome

// once does a task, sometimes under faults and blows, and checks what must
// hold after every run.
func (h *history) once(name string, do act) {
	h.t.Helper()
	resources := h.some()
	clear := h.faults(resources)
	ctx, stop := context.WithCancel(h.t.Context())
	defer stop()
	blow := "in peace"
	var after func()
	if h.odds(0.45) {
		blow, after = h.peril(stop)
	}
	h.limit, h.together = 1+h.rng.IntN(20), 1<<h.rng.IntN(5)
	h.tell("%s %v by %d, %s", name, resources, h.limit, blow)
	outcomes := h.task(ctx, do, resources...)
	if after != nil {
		after()
	}
	clear()
	for _, r := range resources {
		o := outcomes[r]
		h.tell("  %s: %s %v", r, o.Result, o.Err)
		h.sane(o)
	}
	h.claims()
}

// task does it at the model's pace.
func (h *history) task(ctx context.Context, do act, resources ...string) map[string]sync.Outcome {
	by := map[string]sync.Outcome{}
	for _, o := range do(h.engine(h.mirror), ctx, resources) {
		by[o.Resource] = o
	}
	return by
}

func (h *history) engine(m sync.Mirror) *sync.Engine {
	e := sync.NewEngine(h.client, m, sync.Options{
		TimeZone: shanghai(), Limit: h.limit, Wait: h.wait, MaxDeleteRatio: 0.3, Logger: h.log,
		Clean: func(s string) string { return s }, Holder: mirror.Holder{Host: "model", PID: os.Getpid(), Since: time.Now()},
	})
	sync.Hurry(e, modelPace)
	sync.Together(e, max(h.together, 1))
	return e
}

func shanghai() *time.Location { return time.FixedZone("CST", 8*60*60) }

// sane holds for a run under whatever faults: it ends by a reason that has a
// name, and a bug has none.
func (h *history) sane(o sync.Outcome) {
	h.t.Helper()
	var e *mirror.Error
	switch {
	case errors.As(o.Err, new(*sync.PanicError)):
		h.t.Fatalf("%s: %v", o.Resource, o.Err)
	case errors.As(o.Err, &e) && (e.Kind == mirror.KindInternal || e.Kind == mirror.KindData || e.Kind == mirror.KindDenied):
		h.t.Fatalf("%s: %s error %v", o.Resource, e.Kind, o.Err)
	case o.Result == sync.Failed && o.Err == nil, o.Result == sync.Synced && o.Err != nil, o.Result == "":
		h.t.Fatalf("%s: result %q with error %v", o.Resource, o.Result, o.Err)
	}
}

// peril arms a blow against a run. after ends it: a program that died is alive
// again.
func (h *history) peril(stop func()) (name string, after func()) {
	kind := h.pick("a stop", "a crash", "a crash", "one connection cut", "all connections cut", "backends ended", "state deleted")
	if h.cluster != nil && h.odds(0.3) {
		kind = "PostgreSQL killed"
	}
	do := func(c net.Conn) { h.strike(kind, c, stop) }
	if h.odds(0.25) {
		n := 1 + h.rng.Int64N(14)
		h.ambush.armed.Store(newBlow(n, do))
		name = fmt.Sprintf("%s at request %d", kind, n)
	} else {
		n := int64(1) << (8 + h.rng.IntN(8)) // 256 bytes to 32 KiB
		n += h.rng.Int64N(n)
		h.line.armed.Store(newBlow(n, do))
		name = fmt.Sprintf("%s after %d bytes", kind, n)
	}
	return name, func() {
		for _, b := range []*blow{h.ambush.armed.Swap(nil), h.line.armed.Swap(nil)} {
			if b != nil && b.callOff() {
				h.tell("  it struck")
			}
		}
		if h.line.down.Swap(false) {
			h.reopen(h.t)
		}
	}
}

// strike does what a peril is named after.
func (h *history) strike(name string, c net.Conn, stop func()) {
	switch name {
	case "a stop":
		stop()
	case "a crash": // nothing more reaches the database, not even a goodbye
		h.line.die()
		stop()
	case "one connection cut":
		if c != nil {
			_ = c.Close()
		}
	case "all connections cut":
		h.line.cut()
	case "backends ended":
		h.try(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = '` + modelApplication + `'`)
	case "state deleted":
		h.try(`delete from xiaoqu_sync.state where resource = 'users'`)
	case "PostgreSQL killed":
		ctx := context.WithoutCancel(h.t.Context())
		if err := errors.Join(h.cluster.Kill(), h.cluster.Restart(ctx)); err != nil {
			h.t.Errorf("PostgreSQL does not come back: %v", err)
		}
	default:
		panic("no such peril: " + name)
	}
}

func (h *history) runOnce() { h.once("sync", (*sync.Engine).Sync) }
func (h *history) rebuild() { h.once("rebuild", (*sync.Engine).Rebuild) }
func (h *history) verify()  { h.once("verify", (*sync.Engine).Verify) }
func (h *history) abort()   { h.once("abort", (*sync.Engine).Abort) }
func (h *history) accept()  { h.once("accept", (*sync.Engine).Accept) }

// planAndApply lets something happen between a dry run and its application.
func (h *history) planAndApply() {
	h.once("plan", (*sync.Engine).Plan)
	if h.odds(0.4) {
		h.change(h.resource())
	}
	if h.odds(0.3) {
		h.runOnce()
	}
	accept := h.odds(0.5)
	h.once("apply", func(e *sync.Engine, ctx context.Context, rs []string) []sync.Outcome { return e.Apply(ctx, rs, accept) })
}

// rude is a mirror whose leases keep nobody away: that two workers do no harm
// must not hang by them.
type rude struct{ *mirror.Mirror }

func (r rude) Lease(ctx context.Context, resource string, h mirror.Holder) (*mirror.Lease, error) {
	return r.Mirror.Lease(ctx, resource+"_rude", h)
}

// runTwice lets two workers at the same resources, while upstream changes.
func (h *history) runTwice() {
	h.limit = 1 + h.rng.IntN(10)
	clear := h.faults(all)
	defer clear()
	ctx, stop := context.WithCancel(h.t.Context())
	defer stop()
	name, after := "in peace", func() {}
	if h.odds(0.6) {
		name, after = h.peril(stop)
	}
	polite := h.odds(0.4)
	h.tell("two syncs at once by %d, %s, with leases: %v", h.limit, name, polite)
	second, err := mirror.Open(h.t.Context(), mirror.Options{URL: h.url, MaxConns: 4, Application: modelApplication})
	if err != nil {
		h.t.Fatal(err)
	}
	defer second.Close()
	var g errgroup.Group
	ends := make(chan sync.Outcome, 2*len(all))
	var other sync.Mirror = second
	if !polite {
		other = rude{second}
	}
	for _, m := range []sync.Mirror{h.mirror, other} {
		e := h.engine(m)
		g.Go(func() error {
			for range 2 {
				for _, o := range e.Sync(ctx, all) {
					select {
					case ends <- o:
					default: // of the second round only some are looked at
					}
				}
			}
			return nil
		})
	}
	_ = g.Wait()
	after()
	close(ends)
	for o := range ends {
		h.tell("  %s: %s %v", o.Resource, o.Result, o.Err)
		h.sane(o)
	}
	h.claims()
}

// purge removes old tombstones for good, as the operators' verb does.
func (h *history) purge() {
	r := h.resource()
	h.tell("purge tombstones of %s", r)
	lease, err := h.mirror.Lease(h.t.Context(), r, mirror.Holder{Host: "purge"})
	if err != nil {
		h.tell("  %v", err)
		return
	}
	defer lease.Release(context.WithoutCancel(h.t.Context()))
	at, err := h.mirror.Checkpoint(h.t.Context(), r)
	if err == nil {
		_, _, err = h.mirror.Purge(h.t.Context(), at, 0)
	}
	h.tell("  %v", err)
	h.stocks[r].purged = true
}

func (h *history) loseState() {
	r := h.resource()
	h.tell("the state row of %s is deleted", r)
	h.try("delete from xiaoqu_sync.state where resource = '" + r + "'")
}

func (h *history) loseStaging() {
	r := h.resource()
	how := h.pick("drop table if exists xiaoqu_sync.staging_%s", "delete from xiaoqu_sync.staging_%s", "delete from xiaoqu_sync.passes where resource = '%s'")
	h.tell(how, r)
	h.try(fmt.Sprintf(how, r))
}

// try is a person at the database who does not wait for locks.
func (h *history) try(sql string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.t.Context()), 10*time.Second)
	defer cancel()
	db, err := h.dial(ctx)
	if err != nil {
		return // it is just being killed
	}
	defer func() { _ = db.Close(ctx) }()
	_, _ = db.Exec(ctx, "set lock_timeout = '50ms'; "+strings.TrimSuffix(sql, ";"))
}
