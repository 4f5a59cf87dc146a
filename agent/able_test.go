package agent_test

import (
	"context"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// A process that may do less than another must not end the other's tasks.
func TestAProcessLeavesWhatItMayNotDoToThoseThatMay(t *testing.T) {
	h := newHouse(t)
	narrow := h.service(t, func(o *agent.Options) { o.Allow = []string{"verify.run"} })
	wide := h.service(t, nil)
	run(t, narrow)
	id := do(t, wide, call("sync.run", ``, "k")).Task.ID
	// What narrow may do comes after it, so narrow has met both.
	h.state(t, do(t, narrow, call("verify.run", ``, "mine")).Task.ID, agent.Completed)
	h.state(t, id, agent.Accepted)
	stop := run(t, wide)
	h.state(t, id, agent.Completed)
	stop()
	// When nobody has taken it for as long as a task may last, anybody ends it.
	orphan := do(t, wide, call("sync.run", ``, "orphan")).Task.ID
	h.exec(t, "update xiaoqu_sync.agent_tasks set due_at = now() - interval '61 minutes' where id = $1", orphan)
	h.state(t, orphan, agent.Failed)
}

// What is no longer mirrored is not worked on because a task of before says so.
func TestATaskIsCheckedAgainstWhatIsMirroredNow(t *testing.T) {
	h := newHouse(t)
	id := do(t, h.service(t, nil), call("sync.run", `{"resources":["users"]}`, "k")).Task.ID
	jobs := make(chan agent.Job, 1)
	less := h.service(t, func(o *agent.Options) {
		o.Resources = resources[1:]
		o.Worker = worker(func(_ context.Context, job agent.Job) (agent.Report, error) { jobs <- job; return agent.Report{}, nil })
	})
	run(t, less)
	h.state(t, id, agent.Failed)
	task, err := less.Task(t.Context(), "api", "crm", id)
	if err != nil || task.Failure.Code != "invalid_input" || len(jobs) != 0 {
		t.Errorf("%+v, %v", task.Failure, err)
	}
}
