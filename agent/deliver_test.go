package agent_test

import (
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// delivered runs a task and lets its platform answer each attempt in turn.
func (h house) delivered(t *testing.T, answers ...agent.Verdict) (s *agent.Service, ids chan string) {
	t.Helper()
	ids = make(chan string, 20)
	n := 0
	s = h.service(t, func(o *agent.Options) {
		o.Couriers = map[string]agent.Courier{"api": courier(func(_ agent.Task, e agent.Event) agent.Verdict {
			ids <- e.ID
			n++
			if n > len(answers) {
				return agent.Delivered
			}
			return answers[n-1]
		})}
	})
	do(t, s, call("sync.run", ``, "k"))
	return s, ids
}

func (h house) event(t *testing.T, want string) {
	t.Helper()
	until(t, "the event is "+want, func() bool {
		return h.text(t, "select concat_ws(' ', state, attempts, nullif(why, '')) from xiaoqu_sync.agent_events") == want
	})
}

func TestAnEventIsDeliveredAgainWithTheSameID(t *testing.T) {
	h := newHouse(t)
	s, ids := h.delivered(t, agent.Again)
	run(t, s)
	h.event(t, "due 1 not now")
	if got := h.text(t, "select due_at > now() from xiaoqu_sync.agent_events"); got != "true" {
		t.Error(got)
	}
	h.exec(t, "update xiaoqu_sync.agent_events set due_at = now()")
	h.event(t, "delivered 2")
	if a, b := <-ids, <-ids; a != b {
		t.Errorf("%s and %s", a, b)
	}
}

func TestAnEventThatIsNeverTakenIsGivenUp(t *testing.T) {
	h := newHouse(t)
	s, _ := h.delivered(t, agent.Again, agent.Again)
	run(t, s)
	h.event(t, "due 1 not now")
	h.exec(t, "update xiaoqu_sync.agent_events set due_at = now(), at = now() - interval '73 hours'")
	h.event(t, "refused 2 not now")
}

func TestAnEventThatWaitsIsNotTriedAgain(t *testing.T) {
	h := newHouse(t)
	s, ids := h.delivered(t, agent.Waiting)
	stop := run(t, s)
	h.event(t, "waiting 1 not now")
	stop()
	h.exec(t, "update xiaoqu_sync.agent_tasks set changes = changes + 1")
	run(t, s)
	h.event(t, "delivered 2")
	if len(ids) != 2 {
		t.Errorf("%d attempts", len(ids))
	}
}

// Killed between the platform's answer and the note of it: told twice, under one id.
func TestAnEventOfADeadProcessIsDeliveredByTheNext(t *testing.T) {
	h := newHouse(t)
	s, ids := h.delivered(t)
	stop := run(t, s)
	h.event(t, "delivered 1")
	stop()
	h.exec(t, "update xiaoqu_sync.agent_events set state = 'due', due_at = now()")
	run(t, s)
	h.event(t, "delivered 2")
	if a, b := <-ids, <-ids; a != b {
		t.Errorf("%s and %s", a, b)
	}
}

func TestTheReportsDocumentsAreAsPromised(t *testing.T) {
	var text strings.Builder
	for _, kind := range []agent.JobKind{agent.JobVerify, agent.JobPlan} {
		for _, d := range drift.Documents(kind) {
			text.WriteString("== " + d.Name + " " + d.Type + " " + d.Title + "\n" + string(d.Body) + "\n")
		}
	}
	golden(t, "testdata/documents.txt", []byte(text.String()))
}
