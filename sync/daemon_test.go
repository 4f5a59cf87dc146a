package sync_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"runtime"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// tick is one moment of a timetable for the resources.
func tick(t testing.TB, e *sync.Engine, resources ...string) map[string]sync.Outcome {
	t.Helper()
	var due []sync.Due
	for _, r := range resources {
		due = append(due, sync.Due{Resource: r, Moment: time.Now()})
	}
	by := map[string]sync.Outcome{}
	for _, o := range e.SyncDue(t.Context(), due, nil) {
		by[o.Resource] = o
	}
	return by
}

// requests counts what the remote was asked, by tool or kind.
func requests(x *remotetest.Server, before map[string]int) (n int, by map[string]int) {
	by = maps.Clone(x.Stats().Calls)
	for k := range by {
		by[k] -= before[k]
		n += by[k]
	}
	return n, by
}

func TestASteadyTickCostsFourRequests(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(25, 25, 25)
	e := w.engine()
	tick(t, e, all...)
	for range 3 {
		before := w.xiaoqu.Stats()
		tick(t, e, all...)
		n, by := requests(w.xiaoqu, before.Calls)
		if n > 4 || by["integration.context.get"] != 1 || w.xiaoqu.Stats().Handshakes != before.Handshakes {
			t.Errorf("%d requests for three resources without changes: %v", n, by)
		}
	}
	w.equal(t, all...)
}

func TestWhoTheTokenBelongsToIsAskedBeforeEveryTick(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(3, 3, 3)
	e := w.engine()
	w.xiaoqu.SetContext(remotetest.Context{Tenant: json.RawMessage(`"1001"`), TenantForm: remotetest.TenantSnake})
	tick(t, e, all...)
	w.xiaoqu.SetContext(remotetest.Context{Tenant: json.RawMessage(`"1002"`), TenantForm: remotetest.TenantSnake})
	before := maps.Clone(w.xiaoqu.Stats().Pages)
	for _, o := range tick(t, e, all...) {
		var r *sync.Refusal
		if !errors.As(o.Err, &r) || r.Reason != sync.ReasonTenant {
			t.Errorf("%s: %v, want %s", o.Resource, o.Err, sync.ReasonTenant)
		}
	}
	if after := w.xiaoqu.Stats().Pages; !maps.Equal(before, after) {
		t.Errorf("another tenant's token scanned: %v, then %v", before, after)
	}
}

func TestAToolThatGoesAndComesBackIsNoticed(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(3, 3, 3)
	e := w.engine()
	tick(t, e, all...)
	w.xiaoqu.HideTool("contracts.changes.list")
	if o := tick(t, e, all...)["contracts"]; o.Result != sync.Failed {
		t.Errorf("the tool is gone, and the run is %s", o.Result)
	}
	var r *sync.Refusal
	if o := tick(t, e, all...); !errors.As(o["contracts"].Err, &r) || r.Reason != sync.ReasonTool || o["users"].Result != sync.Synced {
		t.Errorf("the next tick: %v, users %s", o["contracts"].Err, o["users"].Result)
	}
	w.xiaoqu.HideTool()
	for range 2 {
		if o := tick(t, e, all...)["contracts"]; o.Result != sync.Synced {
			t.Errorf("the tool is back, and the run is %s, %v", o.Result, o.Err)
		}
	}
}

func TestOfSeveralWorkersOneHasTheMoment(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(25, 25, 25)
	one, other := w.engine(), w.engine()
	moment := time.Now()
	due := []sync.Due{{Resource: "users", Moment: moment}, {Resource: "contracts", Moment: moment}}
	for _, o := range one.SyncDue(t.Context(), due, nil) {
		if o.Result != sync.Synced {
			t.Fatalf("%+v, %v", o, o.Err)
		}
	}
	calls := w.xiaoqu.Stats().Calls
	told := make(chan sync.Outcome, 2)
	for _, o := range other.SyncDue(t.Context(), due, func(o sync.Outcome) { told <- o }) {
		if o.Result != sync.SteppedAside || o.Err != nil {
			t.Errorf("the other worker: %+v, %v", o, o.Err)
		}
	}
	if n, by := requests(w.xiaoqu, calls); n > 0 || len(told) != 2 {
		t.Errorf("it asked for %v and told of %d outcomes", by, len(told))
	}
	if n := w.count(t, "select count(*) from xiaoqu_sync.runs"); n != 2 {
		t.Errorf("%d runs in the log, want 2", n)
	}
	if o := tick(t, other, "users")["users"]; o.Result != sync.Synced {
		t.Errorf("at the next moment: %+v, %v", o, o.Err)
	}
}

func TestAFailureIsAnErrorOnceAndThenAWarning(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(3, 0, 0)
	core, logs := observer.New(zap.WarnLevel)
	w.log = zap.New(core)
	e := w.engine()
	w.xiaoqu.SetContext(remotetest.Context{PrincipalType: "user_delegated"})
	for range 3 {
		tick(t, e, "users")
	}
	loud, still := logs.FilterMessage("run failed"), logs.FilterMessage("run still fails")
	if loud.Len() != 1 || loud.All()[0].Level != zap.ErrorLevel || still.Len() != 2 || still.All()[0].Level != zap.WarnLevel {
		t.Errorf("logged %v", logs.All())
	}
	w.xiaoqu.SetContext(remotetest.Context{})
	tick(t, e, "users")
	w.xiaoqu.SetContext(remotetest.Context{PrincipalType: "user_delegated"})
	tick(t, e, "users")
	if n := logs.FilterMessage("run failed").Len(); n != 2 {
		t.Errorf("after a success in between it was an error %d times", n)
	}
}

// faulty panics where a test tells it to.
type faulty struct {
	*mirror.Mirror
	tenant, begin, end bool
}

func (f *faulty) Tenant(ctx context.Context) (string, error) {
	if f.tenant {
		panic("in the preflight")
	}
	return f.Mirror.Tenant(ctx)
}

func (f *faulty) BeginRun(ctx context.Context, r mirror.Run) (int64, error) {
	if f.begin {
		panic("while the run begins")
	}
	return f.Mirror.BeginRun(ctx, r)
}

func (f *faulty) EndRun(ctx context.Context, r mirror.Run) error {
	if f.end {
		panic("while the run ends")
	}
	return f.Mirror.EndRun(ctx, r)
}

func TestAPanicAnywhereLeavesTheResourceFree(t *testing.T) {
	w := newWorld(t)
	w.log = zap.NewNop()
	w.xiaoqu.Seed(3, 3, 3)
	for name, f := range map[string]*faulty{"preflight": {tenant: true}, "begin": {begin: true}, "end": {end: true}} {
		t.Run(name, func(t *testing.T) {
			f.Mirror = w.mirror
			broken := sync.NewEngine(w.client, f, sync.Options{
				TimeZone: time.UTC, Limit: 10, MaxDeleteRatio: 0.3, Clean: func(s string) string { return s }, Logger: w.log,
			})
			for _, o := range tick(t, broken, all...) {
				var p *sync.PanicError
				if !errors.As(o.Err, &p) || o.Result != sync.Failed {
					t.Errorf("%s: %s, %v", o.Resource, o.Result, o.Err)
				}
			}
			for _, o := range tick(t, w.engine(), all...) {
				if o.Result != sync.Synced {
					t.Errorf("the next run of %s: %s, %v, %+v", o.Resource, o.Result, o.Err, o.Holder)
				}
			}
		})
	}
}

func TestTwoHundredTicksLeaveNothingBehind(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(5, 5, 5)
	e := w.engine()
	counts := make(chan int, 1000) // of goroutines, at the end of each tick
	ctx, stop := context.WithCancel(t.Context())
	table := sync.NewTimetable(sync.TimetableOptions{
		Plan: sync.PlanEvery(all, 20*time.Millisecond), Logger: zap.NewNop(),
		Work: func(ctx context.Context, due []sync.Due, ended func(string)) {
			e.SyncDue(ctx, due, func(o sync.Outcome) { ended(o.Resource) })
			counts <- runtime.NumGoroutine()
		},
	})
	ended := make(chan error, 1)
	go func() { ended <- table.Run(ctx, nil) }()
	// The end of one tick may see the begin of the next, so the least of many counts.
	least := func(ticks int) int {
		n := <-counts
		for range ticks - 1 {
			n = min(n, <-counts)
		}
		return n
	}
	least(30) // while the pools of connections fill
	early := least(20)
	least(130)
	if late := least(20); late > early+2 {
		t.Errorf("%d goroutines in the first ticks, %d after 130 more", early, late)
	}
	stop()
	<-ended
	w.equal(t, all...)
}
