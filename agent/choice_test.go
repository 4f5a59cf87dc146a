package agent_test

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// held is a service with a held rebuild of users; its worker sends its jobs.
func (h house) held(t testing.TB, jobs chan<- agent.Job, with ...func(*agent.Options)) *agent.Service {
	return h.statusOf(t, func() ([]agent.Status, error) {
		return []agent.Status{{Resource: "users", LiveRows: 100, Held: &agent.Difference{Inserts: 1, Updates: 2, Deletes: 40, Sample: []string{"a"}, Plan: "p-1"}}}, nil
	}, append(with, func(o *agent.Options) {
		o.Worker = worker(func(_ context.Context, job agent.Job) (agent.Report, error) { jobs <- job; return agent.Report{}, nil })
	})...)
}

func resolve(key string) agent.Call {
	c := call("rebuild.resolve", `{"resource":"users"}`, key)
	c.Choose = true
	return c
}

func TestAPersonChoosesAndThatIsDone(t *testing.T) {
	h := newHouse(t)
	jobs, refs := make(chan agent.Job, 10), make(chan string, 10)
	s := h.held(t, jobs, func(o *agent.Options) {
		o.Couriers = map[string]agent.Courier{"api": courier(func(_ agent.Task, e agent.Event) agent.Verdict {
			refs <- string(e.Kind) + " " + e.Ref
			return agent.Delivered
		})}
	})
	run(t, s)
	id := do(t, s, resolve("k")).Task.ID
	for _, want := range []string{"proposal accept_all", "proposal without_deletes", "proposal abort"} {
		if got := <-refs; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	task, err := s.Task(t.Context(), "api", "crm", id)
	if err != nil || task.State != agent.Choosing || task.Proposals[0].Summary != "1 new, 2 changed, and 40 of 100 rows deleted" {
		t.Fatalf("%+v, %v", task, err)
	}
	_, err = s.Choose(t.Context(), task, "everything")
	failure(t, err, agent.Invalid, "unknown_proposal")
	h.exec(t, "update xiaoqu_sync.agent_tasks set started_at = now() - interval '1 day'") // a person takes their time
	// Several at once: one choice stands, and it alone is done.
	var g errgroup.Group
	stands := make(chan string, 9)
	for i := range 9 {
		g.Go(func() error {
			proposal := task.Proposals[i%3].ID
			if now, err := s.Choose(context.WithoutCancel(t.Context()), task, proposal); err == nil {
				stands <- now.Chosen
			} else if f := agent.AsFailure(err); f.Code != "not_choosable" {
				return err
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	close(stands)
	chosen := ""
	for c := range stands {
		if chosen != "" && c != chosen {
			t.Errorf("both %s and %s stand", chosen, c)
		}
		chosen = c
	}
	if got := <-refs; got != "completed " {
		t.Error(got)
	}
	if job := <-jobs; string(job.Choice) != chosen || job.Kind != agent.JobResolve || job.Plan != "p-1" || len(jobs) != 0 {
		t.Errorf("%+v, chosen was %s", job, chosen)
	}
}

func TestWithoutAPlatformThatAsksThereMustBeAChoice(t *testing.T) {
	h := newHouse(t)
	jobs := make(chan agent.Job, 1)
	s := h.held(t, jobs)
	run(t, s)
	none := resolve("none")
	none.Choose = false
	h.state(t, do(t, s, none).Task.ID, agent.Failed)
	_, err := s.Do(t.Context(), none)
	if f := failure(t, err, agent.Invalid, "choice_required"); f.Field != "choice" {
		t.Errorf("%+v", f)
	}
	h.state(t, do(t, s, call("rebuild.resolve", `{"resource":"users","choice":"abort","plan":"p-1"}`, "abort")).Task.ID, agent.Completed)
	if job := <-jobs; job.Choice != agent.Abort || job.Plan != "p-1" {
		t.Errorf("%+v", job)
	}
}

func TestWhatIsCancelledIsNotDone(t *testing.T) {
	h := newHouse(t)
	jobs := make(chan agent.Job, 1)
	s := h.held(t, jobs)
	a := do(t, s, call("sync.run", ``, "k"))
	now, err := s.Cancel(t.Context(), *a.Task)
	if err != nil || now.State != agent.Cancelled {
		t.Fatalf("%+v, %v", now, err)
	}
	stop := run(t, s)
	h.state(t, do(t, s, call("sync.run", ``, "next")).Task.ID, agent.Completed)
	stop()
	if len(jobs) != 1 || h.text(t, "select count(*) from xiaoqu_sync.agent_events where task = $1", a.Task.ID) != "0" {
		t.Error("it was done, or told")
	}
	again := do(t, s, call("sync.run", ``, "k"))
	if again.Task.State != agent.Cancelled || again.Result != nil {
		t.Errorf("%+v", again)
	}
	if now, err := s.Cancel(t.Context(), *again.Task); err != nil || now.State != agent.Cancelled || time.Since(now.CreatedAt) > time.Minute {
		t.Errorf("%+v, %v", now, err)
	}
}
