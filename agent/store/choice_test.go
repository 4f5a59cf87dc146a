package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

func TestCancelEndsWhatNobodyWorksOn(t *testing.T) {
	f := setUp(t)
	waiting := f.begun(t, newTask("waiting"))
	if got := must(f.Cancel(t.Context(), waiting.ID))(t); got.State != agent.Cancelled || got.EndedAt == nil {
		t.Errorf("%+v", got)
	}
	running := f.begun(t, newTask("running"))
	claim := f.claimed(t)
	if got := must(f.Cancel(t.Context(), running.ID))(t); got.State != agent.Running {
		t.Errorf("%+v", got)
	}
	must(f.Finish(t.Context(), claim, agent.Outcome{State: agent.Choosing, Proposals: []agent.Proposal{{ID: "a"}}}))(t)
	if got := must(f.Cancel(t.Context(), running.ID))(t); got.State != agent.Cancelled {
		t.Errorf("%+v", got)
	}
	if got := must(f.Cancel(t.Context(), "task_x"))(t); got != nil {
		t.Errorf("%+v", got)
	}
	if c := must(f.Claim(t.Context(), agent.Writing(), time.Minute))(t); c != nil {
		t.Errorf("%+v", c)
	}
	if n := value[int](t, f, "select count(*) from xiaoqu_sync.agent_events"); n != 0 {
		t.Errorf("%d events", n)
	}
}

// Either it is cancelled and nobody works on it, or it runs and stays.
func TestCancelAndClaimRace(t *testing.T) {
	f := setUp(t)
	for i := range 20 {
		task := f.begun(t, newTask(fmt.Sprint(i)))
		var g errgroup.Group
		var claim, cancelled *agent.Task
		ctx := context.WithoutCancel(t.Context())
		g.Go(func() (err error) { claim, err = f.Claim(ctx, agent.Writing(), time.Minute); return err })
		g.Go(func() (err error) { cancelled, err = f.Cancel(ctx, task.ID); return err })
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		if (claim != nil) == (cancelled.State == agent.Cancelled) {
			t.Fatalf("claimed %v, and it is %s", claim != nil, cancelled.State)
		}
	}
}

func TestTheFirstChoiceStands(t *testing.T) {
	f := setUp(t)
	task := newTask("k")
	task.Choose = true
	f.begun(t, task)
	if got := must(f.Choose(t.Context(), task.ID, "a"))(t); got.Chosen != "" || got.State != agent.Accepted {
		t.Errorf("before there is anything to choose: %+v", got)
	}
	proposals := []agent.Proposal{{ID: "a", Title: "A", Summary: "s", Data: json.RawMessage(`{"x":1}`)}, {ID: "b"}, {ID: "c"}}
	must(f.Finish(t.Context(), f.claimed(t), agent.Outcome{State: agent.Choosing, Proposals: proposals, Tell: true}))(t)
	got := must(f.Task(t.Context(), task.ID))(t)
	if got.State != agent.Choosing || got.EndedAt != nil || len(got.Proposals) != 3 || got.Proposals[0].Title != "A" {
		t.Fatalf("%+v", got)
	}
	var g errgroup.Group
	chosen := make(chan string, 12)
	for i := range cap(chosen) {
		g.Go(func() error {
			now, err := f.Choose(context.WithoutCancel(t.Context()), task.ID, proposals[i%3].ID)
			if err == nil {
				chosen <- now.Chosen
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	first := <-chosen
	for range cap(chosen) - 1 {
		if c := <-chosen; c != first || c == "" {
			t.Errorf("chosen %q and %q", first, c)
		}
	}
	run := f.claimed(t)
	if run.Chosen != first || run.Attempt != 2 || len(run.Proposals) != 3 || run.StartedAt.Before(got.CreatedAt) {
		t.Errorf("%+v", run)
	}
}

// The hours that a person takes to choose are not the task's.
func TestTheTimeOfAChoiceIsNotCounted(t *testing.T) {
	f := setUp(t)
	task := f.begun(t, newTask("k"))
	must(f.Finish(t.Context(), f.claimed(t), agent.Outcome{State: agent.Choosing}))(t)
	f.exec(t, "update xiaoqu_sync.agent_tasks set started_at = now() - interval '1 day'")
	must(f.Choose(t.Context(), task.ID, "a"))(t)
	if run := f.claimed(t); time.Since(*run.StartedAt) > time.Hour {
		t.Errorf("it began at %v", run.StartedAt)
	}
}
