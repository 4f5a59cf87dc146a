package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

var drift = agent.Report{Resources: []agent.ResourceReport{
	{Resource: "contracts", Outcome: "drift", Difference: &agent.Difference{Inserts: 1, Updates: 2, Deletes: 3, Sample: []string{"a", "b"}}},
	{Resource: "users", Outcome: "done", Unchanged: 4, Pages: 1},
}}

func TestATaskIsDoneAndToldOnce(t *testing.T) {
	h := newHouse(t)
	told := make(chan agent.Event, 10)
	s := h.service(t, func(o *agent.Options) {
		o.Worker = worker(func(context.Context, agent.Job) (agent.Report, error) { return drift, nil })
		o.Couriers = map[string]agent.Courier{"api": courier(func(task agent.Task, e agent.Event) agent.Verdict {
			if task.State == agent.Completed && string(task.ReplyTo) == `{"to":1}` && len(task.Links) == 2 {
				told <- e
			}
			return agent.Delivered
		})}
	})
	c := call("verify.run", ``, "k")
	c.ReplyTo = json.RawMessage(`{"to":1}`)
	begun := do(t, s, c)
	if begun.Task == nil || begun.Task.State != agent.Accepted || begun.Result != nil {
		t.Fatalf("%+v", begun)
	}
	stop := run(t, s)
	if e := <-told; e.Kind != agent.EventCompleted || e.Task != begun.Task.ID {
		t.Errorf("%+v", e)
	}
	again := do(t, s, c)
	if again.Task.ID != begun.Task.ID || again.Result == nil || again.Result.Summary != "contracts: drift (1 new, 2 changed, 3 deleted); users: done" {
		t.Errorf("%+v", again.Result)
	}
	until(t, "the event is settled", func() bool { return h.text(t, "select state from xiaoqu_sync.agent_events") == "delivered" })
	stop()
	if len(told) != 0 {
		t.Error("told twice")
	}
	mine, err := s.Task(t.Context(), "api", "crm", begun.Task.ID)
	if err != nil || mine.State != agent.Completed {
		t.Errorf("%+v, %v", mine, err)
	}
	for _, of := range [][2]string{{"api", "somebody"}, {"mcp", "crm"}} {
		_, err := s.Task(t.Context(), of[0], of[1], begun.Task.ID)
		failure(t, err, agent.NotFound, "unknown_task")
	}
	if _, err := s.TaskOf(t.Context(), "api", "", "k"); err != nil {
		t.Error(err)
	}
}

// A process that is killed in the middle leaves a claim that runs out.
func TestATaskOfADeadProcessIsDoneByTheNext(t *testing.T) {
	h := newHouse(t)
	inside := make(chan struct{})
	dead := h.service(t, func(o *agent.Options) {
		o.Workers = 1
		o.Hold = time.Hour // it never prolongs its claim, and never writes an end
		o.Worker = worker(func(ctx context.Context, _ agent.Job) (agent.Report, error) {
			close(inside)
			<-ctx.Done()
			<-t.Context().Done()
			return agent.Report{}, ctx.Err()
		})
	})
	begun := do(t, dead, call("sync.run", ``, "k"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go dead.Run(ctx)
	<-inside
	h.exec(t, "update xiaoqu_sync.agent_tasks set due_at = now()")
	var runs atomic.Int64
	next := h.service(t, func(o *agent.Options) {
		o.Worker = worker(func(_ context.Context, job agent.Job) (agent.Report, error) {
			if job.Since.Equal(begun.Task.CreatedAt) {
				runs.Add(1)
			}
			return agent.Report{}, nil
		})
	})
	run(t, next)
	h.state(t, begun.Task.ID, agent.Completed)
	if got := h.text(t, "select concat_ws(' ', attempt, (select count(*) from xiaoqu_sync.agent_events)) from xiaoqu_sync.agent_tasks"); got != "2 1" || runs.Load() != 1 {
		t.Errorf("attempts and events %s, %d runs", got, runs.Load())
	}
}

func TestTwoProcessesShareTheTasks(t *testing.T) {
	h := newHouse(t)
	const tasks = 20
	runs, told := make(chan string, 2*tasks), make(chan string, 2*tasks)
	var stops []func()
	var s *agent.Service
	for range 2 {
		s = h.service(t, func(o *agent.Options) {
			o.Worker = worker(func(_ context.Context, job agent.Job) (agent.Report, error) {
				runs <- job.Plan
				return agent.Report{}, nil
			})
			o.Couriers = map[string]agent.Courier{"api": courier(func(task agent.Task, e agent.Event) agent.Verdict {
				told <- task.Key + " " + string(e.Kind)
				return agent.Delivered
			})}
		})
		stops = append(stops, run(t, s))
	}
	for i := range tasks {
		do(t, s, call("rebuild.apply", fmt.Sprintf(`{"resource":"users","plan":"p%d"}`, i), fmt.Sprint(i)))
	}
	until(t, "all are told", func() bool {
		return h.text(t, "select count(*) from xiaoqu_sync.agent_events where state = 'delivered'") == fmt.Sprint(tasks)
	})
	for _, stop := range stops {
		stop()
	}
	close(runs)
	close(told)
	seen := map[string]int{}
	for r := range runs {
		seen[r]++
	}
	for e := range told {
		seen[e]++
	}
	for what, n := range seen {
		if n != 1 {
			t.Errorf("%s: %d times", what, n)
		}
	}
	if len(seen) != 2*tasks {
		t.Errorf("%d runs and events", len(seen))
	}
}

func TestALostClaimEndsTheRun(t *testing.T) {
	h := newHouse(t)
	inside, ended := make(chan struct{}), make(chan error)
	core, logs := observer.New(zap.WarnLevel)
	s := h.service(t, func(o *agent.Options) {
		o.Logger = zap.New(core)
		o.Hold = 60 * time.Millisecond
		o.Worker = worker(func(ctx context.Context, _ agent.Job) (agent.Report, error) {
			close(inside)
			<-ctx.Done()
			ended <- ctx.Err()
			return agent.Report{}, ctx.Err()
		})
	})
	begun := do(t, s, call("sync.run", ``, "k"))
	stop := run(t, s)
	<-inside
	h.exec(t, "update xiaoqu_sync.agent_tasks set due_at = now() + interval '1 minute', attempt = attempt + 1")
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	stop()
	for _, l := range logs.All() {
		t.Errorf("to lose a claim is no mistake: %s %v", l.Message, l.ContextMap())
	}
	if got := h.text(t, "select concat_ws(' ', state, attempt, (select count(*) from xiaoqu_sync.agent_events)) from xiaoqu_sync.agent_tasks where id = $1", begun.Task.ID); got != "running 2 0" {
		t.Error(got)
	}
}

func TestAStopGivesTheTaskBack(t *testing.T) {
	h := newHouse(t)
	inside := make(chan struct{})
	first := h.service(t, func(o *agent.Options) {
		o.Worker = worker(func(ctx context.Context, _ agent.Job) (agent.Report, error) {
			close(inside)
			<-ctx.Done()
			return agent.Report{}, fmt.Errorf("sync: %w", ctx.Err())
		})
	})
	begun := do(t, first, call("sync.run", ``, "k"))
	stop := run(t, first)
	<-inside
	stop()
	if got := h.text(t, "select state || ' ' || (due_at <= now()) from xiaoqu_sync.agent_tasks"); got != "accepted true" {
		t.Error(got)
	}
	run(t, h.service(t, nil))
	h.state(t, begun.Task.ID, agent.Completed)
}

func TestAPassingFailureIsTriedAgainUntilTheTimeIsUp(t *testing.T) {
	h := newHouse(t)
	var runs atomic.Int64
	s := h.service(t, func(o *agent.Options) {
		o.Worker = worker(func(_ context.Context, job agent.Job) (agent.Report, error) {
			runs.Add(1)
			return agent.Report{}, &agent.Failure{Class: agent.Busy, Code: "lease_held", Message: "m", RetryAfter: 10 * time.Minute}
		})
	})
	begun := do(t, s, call("sync.run", ``, "k"))
	run(t, s)
	until(t, "it waits", func() bool {
		return h.text(t, "select state || ' ' || (due_at > now() + interval '9 minutes') from xiaoqu_sync.agent_tasks") == "accepted true"
	})
	// Not enough time is left for another wait.
	h.exec(t, "update xiaoqu_sync.agent_tasks set started_at = now() - interval '55 minutes', due_at = now()")
	h.state(t, begun.Task.ID, agent.Failed)
	_, err := s.Do(t.Context(), call("sync.run", ``, "k"))
	f := failure(t, err, agent.Permanent, "lease_held") // what is final does not pass
	if f.RetryAfter != 0 || runs.Load() != 2 {
		t.Errorf("%+v after %d runs", f, runs.Load())
	}
}

func TestATaskThatIsOutOfTimeIsNotBegun(t *testing.T) {
	h := newHouse(t)
	s := h.service(t, func(o *agent.Options) {
		o.Worker = worker(func(context.Context, agent.Job) (agent.Report, error) { panic("begun") })
	})
	begun := do(t, s, call("sync.run", ``, "k"))
	h.exec(t, "update xiaoqu_sync.agent_tasks set started_at = now() - interval '2 hours'")
	run(t, s)
	h.state(t, begun.Task.ID, agent.Failed)
	_, err := s.Do(t.Context(), call("sync.run", ``, "k"))
	failure(t, err, agent.Permanent, "timed_out")
}

func TestAPanicEndsTheTaskAndNotTheProcess(t *testing.T) {
	h := newHouse(t)
	s := h.service(t, func(o *agent.Options) {
		o.Worker = worker(func(context.Context, agent.Job) (agent.Report, error) { panic("at the worker") })
		w := o.Mirror.(world)
		w.status = func() ([]agent.Status, error) { panic("at the proposals") }
		o.Mirror = w
	})
	run(t, s)
	choose := call("rebuild.resolve", `{"resource":"users"}`, "choose")
	choose.Choose = true
	for _, c := range []agent.Call{call("sync.run", ``, "sync"), choose} {
		h.state(t, do(t, s, c).Task.ID, agent.Failed)
		_, err := s.Do(t.Context(), c)
		failure(t, err, agent.Internal, "internal_error")
	}
}
