package main

import (
	"errors"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/config"
)

// hands are the worker of a process of its own, as agents know it.
func (c *cli) hands(t *testing.T) hands {
	t.Helper()
	p := newProgram(c.env, t.Output(), t.Output())
	p.configPath = c.lookup("XIAOQU_CONFIG_FOR_TEST")
	cfg, err := p.load(config.Input{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	w, err := a.hands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return w.(hands)
}

// planned makes a plan and returns its name.
func (h hands) planned(t *testing.T) string {
	t.Helper()
	r, err := h.Work(t.Context(), agent.Job{Kind: agent.JobPlan, Resources: []string{"users"}})
	if err != nil || r.Resources[0].Plan == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	return r.Resources[0].Plan
}

func refusedWith(t *testing.T, r agent.Report, err error, code string) {
	t.Helper()
	if f := agent.AsFailure(err); err == nil || f.Code != code {
		t.Errorf("%+v, %v; want %s", r, err, code)
	}
}

// Whoever waits for the lease must look at the plan again when it has it.
func TestAPlanThatIsReplacedMeanwhileIsNotApplied(t *testing.T) {
	t.Parallel()
	c := withAgents(t, agent.Writing()...)
	h := c.hands(t)
	c.read(t, "update xiaoqu.users set content_hash = '' where id = (select min(id) from xiaoqu.users)")
	plan := h.planned(t)
	began := c.read(t, "select clock_timestamp()")[0][0]
	lease, err := h.app.mirror.Lease(t.Context(), "users", h.app.holder())
	if err != nil {
		t.Fatal(err)
	}
	type end struct {
		agent.Report
		error
	}
	ended := make(chan end, 1)
	go func() {
		r, err := h.Work(t.Context(), agent.Job{Kind: agent.JobApply, Resources: []string{"users"}, Plan: plan, Since: time.Now()})
		ended <- end{r, err}
	}()
	eventually(t, "it has looked at the plan, and waits for the lease", func() bool {
		return len(c.read(t, "select 1 from pg_stat_activity where query like '%from xiaoqu_sync.passes where resource%' and query_start > '"+began+"'")) > 0
	})
	c.read(t, "update xiaoqu_sync.passes set started_at = started_at + interval '1 second'")
	lease.Release(t.Context())
	e := <-ended
	refusedWith(t, e.Report, e.error, "plan_gone")
	if rows := c.read(t, "select count(*) from xiaoqu_sync.passes"); rows[0][0] != "1" {
		t.Error("the other plan was applied")
	}
}

// What somebody else did meanwhile is not what this task was to do.
func TestAnotherPlansEndIsNotThisOnes(t *testing.T) {
	t.Parallel()
	c := withAgents(t, agent.Writing()...)
	h := c.hands(t)
	since := time.Now().Add(-time.Second)
	yesterday := h.planned(t)
	plan := h.planned(t)
	apply := func(plan string) (agent.Report, error) {
		return h.Work(t.Context(), agent.Job{Kind: agent.JobApply, Resources: []string{"users"}, Plan: plan, Since: since})
	}
	if _, err := apply(plan); err != nil {
		t.Fatal(err)
	}
	r, err := apply(yesterday)
	refusedWith(t, r, err, "plan_gone")
	if r, err := apply(plan); err != nil || r.Resources[0].Outcome != "done" {
		t.Errorf("the same after its process died: %+v, %v", r, err)
	}
	// A clock that goes wrong takes nothing away from what was done.
	if r, err := h.Work(t.Context(), agent.Job{Kind: agent.JobApply, Resources: []string{"users"}, Plan: plan, Since: time.Now().Add(time.Hour)}); err != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// A person chose by what they were shown. Another rebuild is another question.
func TestAChoiceIsForTheRebuildThatWasShown(t *testing.T) {
	t.Parallel()
	c := withAgents(t, agent.Writing()...)
	h := c.hands(t)
	hold := func() string {
		t.Helper()
		c.xiaoqu.ExpireTokens()
		if r, err := h.Work(t.Context(), agent.Job{Kind: agent.JobSync, Resources: []string{"users"}}); err != nil || r.Resources[0].Outcome != "held" {
			t.Fatalf("%+v, %v", r, err)
		}
		s, err := window{app: h.app}.Status(t.Context(), []string{"users"})
		if err != nil || s[0].Held == nil || s[0].Held.Plan == "" {
			t.Fatalf("%+v, %v", s, err)
		}
		return s[0].Held.Plan
	}
	resolve := func(choice agent.Choice, plan string) (agent.Report, error) {
		return h.Work(t.Context(), agent.Job{Kind: agent.JobResolve, Resources: []string{"users"}, Choice: choice, Plan: plan, Since: time.Now()})
	}
	ids := c.xiaoqu.IDs("users")
	for _, id := range ids[:100] {
		c.xiaoqu.Purge("users", id)
	}
	shown := hold()
	c.read(t, "update xiaoqu_sync.passes set started_at = started_at + interval '1 second'") // another takes its place
	for _, choice := range []agent.Choice{agent.AcceptAll, agent.WithoutDeletes, agent.Abort} {
		r, err := resolve(choice, shown)
		refusedWith(t, r, err, "plan_gone")
	}
	s, err := window{app: h.app}.Status(t.Context(), []string{"users"})
	if err != nil || s[0].Held == nil || s[0].LiveRows != 150 {
		t.Fatalf("%+v, %v", s, err)
	}
	c.must(t, "rebuild", "--config", c.lookup("XIAOQU_CONFIG_FOR_TEST"), "users", "--accept-deletes")
	if r, err := resolve(agent.AcceptAll, s[0].Held.Plan); err != nil || r.Resources[0].Outcome != "done" {
		t.Errorf("what was decided so already: %+v, %v", r, err)
	}
	for _, choice := range []agent.Choice{agent.WithoutDeletes, agent.Abort} {
		if r, err := resolve(choice, s[0].Held.Plan); !errors.As(err, new(*agent.Failure)) {
			t.Errorf("%s was said to be done, and it was not: %+v", choice, r)
		}
	}
}
