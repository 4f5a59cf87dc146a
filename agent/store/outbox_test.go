package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// proposed is a task that has three events: its proposals.
func (f fixture) proposed(t testing.TB, key string) agent.Task {
	t.Helper()
	f.begun(t, newTask(key))
	task := f.claimed(t)
	must(f.Finish(t.Context(), task, agent.Outcome{State: agent.Choosing, Tell: true, Proposals: []agent.Proposal{{ID: "c"}, {ID: "a"}, {ID: "b"}}}))(t)
	return task
}

func (f fixture) event(t testing.TB) (agent.Event, agent.Task) {
	t.Helper()
	e, task, err := f.ClaimEvent(t.Context(), []string{"api"}, time.Minute)
	if err != nil || e == nil || task == nil {
		t.Fatal(e, err)
	}
	return *e, *task
}

func (f fixture) noEvent(t testing.TB, why string) {
	t.Helper()
	if e, _, err := f.ClaimEvent(t.Context(), []string{"api"}, time.Minute); err != nil || e != nil {
		t.Fatalf("%s: %+v, %v", why, e, err)
	}
}

func (f fixture) settle(t testing.TB, e agent.Event, v agent.Verdict, wait time.Duration) {
	t.Helper()
	if err := f.SettleEvent(t.Context(), e, v, wait, "why"); err != nil {
		t.Fatal(err)
	}
}

func TestEventsComeInOrderOneByOne(t *testing.T) {
	f := setUp(t)
	task := f.proposed(t, "k")
	if e, _, err := f.ClaimEvent(t.Context(), []string{"mcp"}, time.Minute); e != nil || err != nil {
		t.Errorf("another door's: %+v, %v", e, err)
	}
	ids := map[string]bool{}
	for i, ref := range []string{"c", "a", "b"} {
		e, of := f.event(t)
		if e.Kind != agent.EventProposal || e.Ref != ref || e.Task != task.ID || of.ID != task.ID || e.Attempts != 0 || e.At.IsZero() {
			t.Fatalf("%d: %+v", i, e)
		}
		ids[e.ID] = true
		f.noEvent(t, "one is in flight")
		f.settle(t, e, agent.Delivered, 0)
	}
	f.noEvent(t, "all are delivered")
	must(f.Choose(t.Context(), task.ID, "a"))(t)
	must(f.Finish(t.Context(), f.claimed(t), agent.Outcome{State: agent.Completed, Result: &agent.Result{}, Tell: true}))(t)
	e, of := f.event(t)
	if e.Kind != agent.EventCompleted || of.State != agent.Completed || of.Chosen != "a" || ids[e.ID] {
		t.Errorf("%+v %+v", e, of)
	}
}

func TestAnEventKeepsItsIDOverAttempts(t *testing.T) {
	f := setUp(t)
	f.proposed(t, "k")
	first, _ := f.event(t)
	f.settle(t, first, agent.Again, time.Hour)
	f.noEvent(t, "it is to wait")
	f.expire(t)
	second, _ := f.event(t)
	if second.ID != first.ID || second.Attempts != 1 {
		t.Errorf("%+v", second)
	}
	f.expire(t) // the process that delivers died
	third, _ := f.event(t)
	if third.ID != first.ID || third.Attempts != 2 {
		t.Errorf("%+v", third)
	}
	f.settle(t, second, agent.Delivered, 0) // what comes too late changes nothing
	if state := value[string](t, f, "select state from xiaoqu_sync.agent_events where id = $1", first.ID); state != "due" {
		t.Error(state)
	}
}

func TestWhatIsRefusedIsKeptForPeople(t *testing.T) {
	f := setUp(t)
	f.proposed(t, "k")
	e, _ := f.event(t)
	if err := f.SettleEvent(t.Context(), e, agent.Refused, 0, strings.Repeat("某", 400)+"\x00\xff"); err != nil {
		t.Fatal(err)
	}
	if got := value[string](t, f, "select state || ' ' || (why like '某%某') || ' ' || (octet_length(why) <= 500) from xiaoqu_sync.agent_events where id = $1", e.ID); got != "refused true true" {
		t.Error(got)
	}
	if next, _ := f.event(t); next.Ref != "a" {
		t.Errorf("the next is %+v", next)
	}
	if err := f.SettleEvent(t.Context(), e, "shrug", 0, ""); err == nil {
		t.Error("any verdict will do")
	}
}

func TestAWaitingEventIsDueWhenItsTaskHasChanged(t *testing.T) {
	for name, change := range map[string]func(fixture, *testing.T, agent.Task){
		"a choice":     func(f fixture, t *testing.T, task agent.Task) { must(f.Choose(t.Context(), task.ID, "a"))(t) },
		"a withdrawal": func(f fixture, t *testing.T, task agent.Task) { must(f.Cancel(t.Context(), task.ID))(t) },
	} {
		for _, before := range []bool{false, true} { // the verdict
			t.Run(fmt.Sprintf("%s, before the verdict %v", name, before), func(t *testing.T) {
				f := setUp(t)
				task := f.proposed(t, "k")
				e, _ := f.event(t)
				if before {
					change(f, t, task)
				}
				f.settle(t, e, agent.Waiting, 0)
				if !before {
					f.noEvent(t, "nothing has changed")
					change(f, t, task)
				}
				again, _ := f.event(t)
				if again.ID != e.ID || again.Attempts != 1 {
					t.Fatalf("%+v", again)
				}
				f.settle(t, again, agent.Waiting, 0)
				f.noEvent(t, "it was tried since")
			})
		}
	}
}

func TestEveryEventIsInOneHandAtATime(t *testing.T) {
	f := setUp(t)
	for i := range 5 {
		f.proposed(t, fmt.Sprint(i))
	}
	other := f.open(t)
	var g errgroup.Group
	got := make(chan agent.Event, 100)
	for i := range 8 {
		s := f.Store
		if i%2 == 1 {
			s = other
		}
		g.Go(func() error {
			ctx := context.WithoutCancel(t.Context())
			for {
				e, _, err := s.ClaimEvent(ctx, []string{"api"}, time.Minute)
				if err != nil || e == nil {
					return err
				}
				got <- *e
				if err := s.SettleEvent(ctx, *e, agent.Delivered, 0, ""); err != nil {
					return err
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for { // whoever met only tasks with one in flight has gone home
		e, _, err := f.ClaimEvent(t.Context(), []string{"api"}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			break
		}
		got <- *e
		f.settle(t, *e, agent.Delivered, 0)
	}
	close(got)
	seen, order := map[string]int{}, map[string]string{}
	for e := range got {
		seen[e.ID]++
		order[e.Task] += e.Ref
	}
	if len(seen) != 15 {
		t.Errorf("%d events", len(seen))
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s came %d times", id, n)
		}
	}
	for task, refs := range order {
		if refs != "cab" {
			t.Errorf("%s: %s", task, refs)
		}
	}
}
