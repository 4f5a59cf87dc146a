package relay_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// A process dies with a task in hand; the next one does it, and Relay hears once.
func TestATaskOutlivesItsProcess(t *testing.T) {
	w := open(t, nil)
	w.mirror.held = held()
	task := accepted(w, "ord_1", "sync_run", `{}`)
	<-w.worker.begun
	w.kill()
	w.begin(nil)
	if r := w.relay.about("task.poll", "ord_1", task, ""); r.Status != "pending" {
		t.Errorf("after the start: %s", r.Raw)
	}
	if r := w.relay.invoke("ord_1", "sync_run", `{}`); r.Status != "accepted" || r.TaskID != task {
		t.Errorf("the order again: %s", r.Raw)
	}
	<-w.worker.begun
	w.worker.done("done")
	if c := w.relay.next(); c.Body.Type != "completed" {
		t.Error(c.Raw)
	}
	if n := len(w.worker.begun); n != 0 {
		t.Errorf("begun %d times more", n)
	}
}

// A process dies between a proposal and the choice.
func TestAChoiceOutlivesTheProcessThatAskedForIt(t *testing.T) {
	w := open(t, nil)
	w.mirror.held = held()
	task := accepted(w, "ord_1", "rebuild_resolve", `{"resource":"users"}`)
	first := w.relay.next()
	w.kill()
	w.begin(nil)
	seen := map[string]string{first.Body.Proposal.ID: first.Body.EventID}
	for len(seen) < 3 {
		c := w.relay.next()
		if id, again := seen[c.Body.Proposal.ID]; again && id != c.Body.EventID {
			t.Errorf("the same proposal has another event id: %s", c.Raw)
		}
		seen[c.Body.Proposal.ID] = c.Body.EventID
	}
	if r := w.relay.about("proposal.select", "ord_1", task, `,"proposal_id":"abort"`); r.Status != "selected" {
		t.Fatal(r.Raw)
	}
	w.kill()
	w.begin(nil)
	if job := <-w.worker.begun; job.Choice != agent.Abort {
		t.Errorf("the worker does %q", job.Choice)
	}
}

func TestTheSameCallbackComesAgainUntilItIsTaken(t *testing.T) {
	w := open(t, nil)
	n := 0
	w.relay.answers(func(callback) (int, string) {
		if n++; n == 1 {
			return 500, "<html>"
		}
		return 0, ""
	})
	accepted(w, "ord_1", "sync_run", `{}`)
	w.worker.done("done")
	first := w.relay.next()
	then := w.relay.next()
	if first.Raw != then.Raw {
		t.Errorf("first %s\nthen %s", first.Raw, then.Raw)
	}
}

// Relay takes the event, and its answer is lost: the same comes again, and is known.
func TestAnEventThatWasTakenUnheardIsTakenOnce(t *testing.T) {
	w := open(t, nil)
	n := 0
	w.relay.answers(func(c callback) (int, string) {
		if n++; n == 1 {
			w.relay.seen[c.key()] = true
			panic(http.ErrAbortHandler)
		}
		return 0, ""
	})
	accepted(w, "ord_1", "sync_run", `{}`)
	w.worker.done("done")
	first, then := w.relay.next(), w.relay.next()
	if first.key() != then.key() {
		t.Errorf("first %s\nthen %s", first.Raw, then.Raw)
	}
	accepted(w, "ord_2", "sync_run", `{}`)
	w.worker.done("done")
	if c := w.relay.next(); c.Order != "ord_2" {
		t.Errorf("told a third time: %s", c.Raw)
	}
}

// Envelopes come twice, too early and after the end.
func TestEnvelopesOutOfOrderDoNoHarm(t *testing.T) {
	w := open(t, nil)
	w.mirror.held = held()
	if r := w.relay.about("task.cancel", "ord_1", "task_x", ""); r.Status != "failed" || r.Error.Code != "invalid_input" {
		t.Errorf("a cancel before the order: %s", r.Raw)
	}
	body := invocation("ord_1", "rebuild_resolve", `{"resource":"users"}`)
	signature := header(secret, time.Now(), body)
	first, again := w.relay.post(signature, body), w.relay.post(signature, body)
	if first.Status != "accepted" || again.Raw != first.Raw {
		t.Errorf("first %s\nagain %s", first.Raw, again.Raw)
	}
	eventually(w, "ord_1", first.TaskID, "proposals")
	choice := fmt.Sprintf(`{"type":"proposal.select","rsp":"1.0","issued_at":1,"order_id":"ord_1","task_id":%q,"proposal_id":"abort"}`, first.TaskID)
	signature = header(secret, time.Now(), choice)
	for range 2 {
		if r := w.relay.post(signature, choice); r.Status != "selected" {
			t.Errorf("chosen: %s", r.Raw)
		}
	}
	<-w.worker.begun
	w.worker.done("done")
	eventually(w, "ord_1", first.TaskID, "completed")
	if r := w.relay.post(signature, choice); r.Status != "completed" {
		t.Errorf("chosen after the end: %s", r.Raw)
	}
	if r := w.relay.about("task.cancel", "ord_1", first.TaskID, ""); r.Status != "cancel_failed" {
		t.Errorf("cancelled after the end: %s", r.Raw)
	}
	if r := w.relay.say(body); r.Raw != first.Raw {
		t.Errorf("the order after its end: %s", r.Raw)
	}
	if n := len(w.worker.begun); n != 0 {
		t.Errorf("begun %d times more", n)
	}
}

// A process dies with a call in hand that answers at once: the same order does it.
func TestAReadWhoseProcessDiedIsDoneByTheSameOrder(t *testing.T) {
	w := open(t, nil)
	w.mirror.block, w.mirror.reading = make(chan struct{}), make(chan struct{}, 9)
	body := invocation("ord_1", "mirror_freshness", `{}`)
	lost := make(chan error, 1)
	go func() {
		_, err := w.relay.try(header(secret, time.Now(), body), body)
		lost <- err
	}()
	<-w.mirror.reading
	w.kill()
	<-lost
	close(w.mirror.block)
	w.begin(nil)
	until(t, "the order is done", func() bool {
		r := w.relay.say(body)
		if r.Status == "failed" && r.Error.Code != "temporary" {
			t.Fatal(r.Raw)
		}
		return r.Status == "completed"
	})
}

// The process dies before a callback is taken.
func TestACallbackOutlivesItsProcess(t *testing.T) {
	w := open(t, nil)
	w.relay.answers(func(callback) (int, string) { return 502, "" })
	accepted(w, "ord_1", "sync_run", `{}`)
	w.worker.done("done")
	first := w.relay.next()
	w.kill()
	w.relay.answers(nil)
	w.begin(nil)
	if c := w.relay.next(); c.Raw != first.Raw {
		t.Errorf("first %s\nthen %s", first.Raw, c.Raw)
	}
}
