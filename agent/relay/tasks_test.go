package relay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// eventually polls the task until it says so.
func eventually(w *world, order, task, status string) (r reply) {
	w.t.Helper()
	until(w.t, "the task is "+status, func() bool {
		r = w.relay.about("task.poll", order, task, "")
		return r.Status == status
	})
	return r
}

func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("it never comes that %s", what)
		}
	}
}

func accepted(w *world, order, action, input string) string {
	w.t.Helper()
	r := w.relay.invoke(order, action, input)
	if r.Status != "accepted" || r.TaskID == "" {
		w.t.Fatal(r.Raw)
	}
	return r.TaskID
}

func TestATaskIsAcceptedPolledAndToldOf(t *testing.T) {
	w := open(t, nil)
	task := accepted(w, "ord_1", "verify_run", `{}`)
	<-w.worker.begun
	if r := w.relay.about("task.poll", "ord_1", task, ""); r.Status != "pending" {
		t.Errorf("in the middle: %s", r.Raw)
	}
	if r := w.relay.invoke("ord_1", "verify_run", `{}`); r.Status != "accepted" || r.TaskID != task {
		t.Errorf("the order again: %s", r.Raw)
	}
	w.worker.done("drift")
	c := w.relay.next()
	if c.Order != "ord_1" || c.Body.Type != "completed" || c.Body.EventID == "" || time.Since(time.Unix(c.Body.OccurredAt, 0)) > time.Minute {
		t.Errorf("told: %s", c.Raw)
	}
	if strings.Contains(string(c.Body.Output.Data), "proposal_id") {
		t.Errorf("there was nothing to choose: %s", c.Raw)
	}
	var kinds []any
	for _, p := range c.Body.Output.Parts {
		kinds = append(kinds, p["type"])
		if p["type"] == "file" && !strings.HasPrefix(p["url"].(string), "https://mirror.example.com/documents/") {
			t.Errorf("a file: %v", p)
		}
	}
	if fmt.Sprint(kinds) != "[markdown file file]" {
		t.Errorf("parts: %v", kinds)
	}
	r := eventually(w, "ord_1", task, "completed")
	if string(r.Output.Data) != string(c.Body.Output.Data) {
		t.Errorf("polled %s\ntold %s", r.Raw, c.Raw)
	}
	if r := w.relay.invoke("ord_1", "verify_run", `{}`); r.Status != "accepted" || r.TaskID != task {
		t.Errorf("the order after its end: %s", r.Raw)
	}
}

// Our key at the remote has nothing to do with the user's binding here.
func TestARefusalOfTheRemoteIsPermanent(t *testing.T) {
	w := open(t, nil)
	task := accepted(w, "ord_1", "sync_run", `{}`)
	w.worker.ends <- end{err: &agent.Failure{Class: agent.Permanent, Code: "UNAUTHENTICATED", Message: "the remote takes our key no more", RequestID: "r_7"}}
	c := w.relay.next()
	if c.Body.Type != "failed" || c.Body.Error.Code != "permanent" || c.Body.Error.Details.Reason != "UNAUTHENTICATED" {
		t.Errorf("told: %s", c.Raw)
	}
	if r := eventually(w, "ord_1", task, "failed"); r.Error.Code != "permanent" {
		t.Errorf("polled: %s", r.Raw)
	}
	if r := w.relay.invoke("ord_1", "sync_run", `{}`); r.Status != "accepted" || r.TaskID != task {
		t.Errorf("the order again: %s", r.Raw)
	}
}

func TestATaskIsCancelledOnlyWhileNobodyWorksOnIt(t *testing.T) {
	w := open(t, nil)
	var tasks []string
	for i := range 3 { // two are worked on, the third waits
		tasks = append(tasks, accepted(w, fmt.Sprintf("ord_%d", i), "sync_run", `{}`))
	}
	<-w.worker.begun
	<-w.worker.begun
	states := map[string]int{}
	for i, task := range tasks {
		r := w.relay.about("task.cancel", fmt.Sprintf("ord_%d", i), task, `,"reason":"user"`)
		states[r.Status]++
		if r.Status == "cancelled" {
			if again := w.relay.about("task.cancel", fmt.Sprintf("ord_%d", i), task, ""); again.Status != "cancelled" {
				t.Errorf("cancelled twice: %s", again.Raw)
			}
			if poll := w.relay.about("task.poll", fmt.Sprintf("ord_%d", i), task, ""); poll.Status != "failed" || poll.Error.Code != "permanent" {
				t.Errorf("polled after it: %s", poll.Raw)
			}
		}
	}
	if states["cancelled"] != 1 || states["cancel_failed"] != 2 {
		t.Errorf("%v", states)
	}
	w.worker.done("done")
	w.worker.done("done")
	c := w.relay.next()
	w.relay.next()
	for i, task := range tasks {
		if order := fmt.Sprintf("ord_%d", i); order == c.Order {
			if r := w.relay.about("task.cancel", order, task, ""); r.Status != "cancel_failed" || r.Reason == "" {
				t.Errorf("cancelled after its end: %s", r.Raw)
			}
		}
	}
}

func TestAPersonChoosesWhatBecomesOfAHeldRebuild(t *testing.T) {
	w := open(t, nil)
	w.mirror.held = held()
	task := accepted(w, "ord_1", "rebuild_resolve", `{"resource":"users"}`)
	offered := map[string]bool{}
	for range 3 {
		c := w.relay.next()
		if c.Body.Type != "proposal.add" || c.Body.Proposal == nil {
			t.Fatal(c.Raw)
		}
		offered[c.Body.Proposal.ID] = true
	}
	r := w.relay.about("task.poll", "ord_1", task, "")
	if r.Status != "proposals" || len(r.Proposals) != 3 || !strings.Contains(string(r.Proposals[0].Content.Data), `"deletes":60`) {
		t.Fatalf("polled: %s", r.Raw)
	}
	for _, p := range r.Proposals {
		if !offered[p.ID] {
			t.Errorf("%s was not told of", p.ID)
		}
	}
	choose := func(id string) reply {
		return w.relay.about("proposal.select", "ord_1", task, fmt.Sprintf(`,"proposal_id":%q`, id))
	}
	if r := choose("accept_some"); r.Error == nil || r.Error.Code != "invalid_input" {
		t.Errorf("an unknown one: %s", r.Raw)
	}
	if r := choose("without_deletes"); r.Status != "selected" {
		t.Fatalf("chosen: %s", r.Raw)
	}
	job := <-w.worker.begun
	if job.Choice != agent.WithoutDeletes {
		t.Errorf("the worker does %q", job.Choice)
	}
	if r := choose("without_deletes"); r.Status != "selected" {
		t.Errorf("chosen again: %s", r.Raw)
	}
	if r := choose("accept_all"); r.Error == nil || r.Error.Code != "permanent" {
		t.Errorf("chosen anew: %s", r.Raw)
	}
	if r := w.relay.about("task.poll", "ord_1", task, ""); r.Status != "pending" {
		t.Errorf("polled after it: %s", r.Raw)
	}
	w.worker.done("done")
	c := w.relay.next()
	if c.Body.Type != "completed" || !strings.Contains(string(c.Body.Output.Data), `"proposal_id":"without_deletes"`) {
		t.Errorf("told: %s", c.Raw)
	}
	if r := choose("without_deletes"); r.Status != "completed" || !strings.Contains(string(r.Output.Data), `"proposal_id":"without_deletes"`) {
		t.Errorf("chosen after the end: %s", r.Raw)
	}
}

func TestNothingCanBeChosenAfterACancel(t *testing.T) {
	w := open(t, nil)
	w.mirror.held = held()
	w.relay.answers(func(callback) (int, string) { return 503, "" })
	task := accepted(w, "ord_1", "rebuild_resolve", `{"resource":"users"}`)
	w.relay.next()
	if r := w.relay.about("task.cancel", "ord_1", task, `,"reason":"not_selected"`); r.Status != "cancelled" {
		t.Fatal(r.Raw)
	}
	if r := w.relay.about("proposal.select", "ord_1", task, `,"proposal_id":"abort"`); r.Status != "failed" || r.Error.Code != "permanent" {
		t.Errorf("chosen after it: %s", r.Raw)
	}
}

func TestNothingHeldIsNothingToChoose(t *testing.T) {
	w := open(t, nil)
	accepted(w, "ord_1", "rebuild_resolve", `{"resource":"users"}`)
	if c := w.relay.next(); c.Body.Type != "failed" || c.Body.Error.Details.Reason != "nothing_held" {
		t.Error(c.Raw)
	}
}
