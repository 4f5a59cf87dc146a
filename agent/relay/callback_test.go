package relay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/relay"
)

// courier makes a door whose callbacks go to address.
func courier(t *testing.T, address string, tune func(*relay.Options)) *relay.Door {
	t.Helper()
	service, err := agent.New(agent.Options{Resources: []agent.Resource{{Name: "users"}}})
	if err != nil {
		t.Fatal(err)
	}
	o := relay.Options{Service: service, Secrets: func() [][]byte { return [][]byte{[]byte(secret), []byte("whsec_before")} }, CallbackURL: address}
	if tune != nil {
		tune(&o)
	}
	door, err := relay.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return door
}

func completed(order string) (agent.Task, agent.Event) {
	now := time.Unix(1761058800, 0)
	t := agent.Task{
		ID: "task_1", Door: "relay", Key: order, State: agent.Completed,
		Result: &agent.Result{Summary: "done", Data: json.RawMessage(`{"n":1.10}`)}, EndedAt: &now,
	}
	return t, agent.Event{ID: "evt_1", Task: "task_1", Kind: agent.EventCompleted, At: now}
}

func TestEveryAnswerToACallbackHasItsVerdict(t *testing.T) {
	const code = `{"error":{"code":%q,"message":"13800001234"},"state":"x"}`
	for name, x := range map[string]struct {
		status     int
		body       string
		late, soon agent.Verdict
	}{
		"taken":               {200, `{}`, agent.Delivered, agent.Delivered},
		"taken before":        {200, `{"duplicate":true}`, agent.Delivered, agent.Delivered},
		"taken, no JSON":      {200, `<html>`, agent.Delivered, agent.Delivered},
		"not said to be":      {204, ``, agent.Again, agent.Again},
		"a redirect":          {302, ``, agent.Refused, agent.Refused},
		"a bad request":       {400, ``, agent.Refused, agent.Refused},
		"a bad signature":     {401, ``, agent.Refused, agent.Refused},
		"forbidden":           {403, ``, agent.Refused, agent.Refused},
		"an unknown order":    {404, ``, agent.Refused, agent.Refused},
		"slow":                {408, ``, agent.Again, agent.Again},
		"an order at its end": {409, fmt.Sprintf(code, "order_final"), agent.Refused, agent.Refused},
		"a proposal again":    {409, fmt.Sprintf(code, "proposal_exists"), agent.Refused, agent.Refused},
		"too large":           {413, ``, agent.Refused, agent.Refused},
		"nothing chosen yet":  {422, fmt.Sprintf(code, "selection_required"), agent.Waiting, agent.Again},
		"another was chosen":  {422, fmt.Sprintf(code, "proposal_mismatch"), agent.Refused, agent.Refused},
		"words of its own":    {422, `{"error":{"code":"1380 <html>"}}`, agent.Refused, agent.Again},
		"not in this state":   {422, fmt.Sprintf(code, "invalid_event"), agent.Refused, agent.Again},
		"too much":            {429, ``, agent.Again, agent.Again},
		"broken":              {500, `<html>`, agent.Again, agent.Again},
		"away":                {503, ``, agent.Again, agent.Again},
	} {
		t.Run(name, func(t *testing.T) {
			elsewhere := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v1/callbacks/ord_1" {
					elsewhere++
					return
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(x.status)
				_, _ = io.WriteString(w, x.body)
			}))
			defer server.Close()
			door := courier(t, server.URL+"/v1/callbacks/", nil)
			task, event := completed("ord_1")
			for at, want := range map[time.Time]agent.Verdict{time.Now().Add(-2 * time.Minute): x.late, time.Now(): x.soon} {
				event.At = at
				verdict, err := door.Deliver(t.Context(), task, event)
				if verdict != want || (err == nil) != (want == agent.Delivered) {
					t.Errorf("%s, %v; want %s", verdict, err, want)
				}
				if err != nil && (strings.Contains(err.Error(), "1380") || strings.Contains(err.Error(), "html")) {
					t.Errorf("the error tells what came: %v", err)
				}
			}
			if elsewhere > 0 {
				t.Error("the event went to another address")
			}
		})
	}
}

func TestACallbackIsSignedAndSaysTheSameEachTime(t *testing.T) {
	var bodies, orders, signatures []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		bodies, orders = append(bodies, string(raw)), append(orders, r.URL.EscapedPath())
		signatures = append(signatures, r.Header.Get("X-Relay-Signature"))
	}))
	defer server.Close()
	door := courier(t, server.URL+"/v1/callbacks", nil)
	task, event := completed("ord/1?x#y")
	for range 2 {
		if verdict, err := door.Deliver(t.Context(), task, event); verdict != agent.Delivered {
			t.Fatal(verdict, err)
		}
	}
	const want = `{"type":"completed","rsp":"1.0","order_id":"ord/1?x#y","event_id":"evt_1","occurred_at":1761058800,` +
		`"output":{"data":{"n":1.10},"parts":[{"type":"markdown","text":"done"}]}}`
	if bodies[0] != want || bodies[1] != want {
		t.Errorf("%s\n%s", bodies[0], bodies[1])
	}
	if orders[0] != "/v1/callbacks/ord%2F1%3Fx%23y" {
		t.Errorf("posted to %s", orders[0])
	}
	var at int64
	if _, err := fmt.Sscanf(signatures[0], "t=%d,", &at); err != nil || signatures[0] != header(secret, time.Unix(at, 0), want) {
		t.Errorf("signed %s", signatures[0])
	}
}

func TestASilentRelayIsAskedAgain(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	task, event := completed("ord_1")
	verdict, err := courier(t, gone.URL, nil).Deliver(t.Context(), task, event)
	if verdict != agent.Again || err == nil || strings.Contains(err.Error(), "ord_1") {
		t.Errorf("nobody there: %s, %v", verdict, err)
	}
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer hangs.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if verdict, err := courier(t, hangs.URL, nil).Deliver(ctx, task, event); verdict != agent.Again || err == nil {
		t.Errorf("no answer: %s, %v", verdict, err)
	}
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	if verdict, err := courier(t, endless.URL, nil).Deliver(t.Context(), task, event); verdict != agent.Delivered {
		t.Errorf("an endless answer: %s, %v", verdict, err)
	}
}

func TestWhatIsTooLongIsAFailureThatSaysSo(t *testing.T) {
	var body callback
	size := 0
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		size = len(raw)
		_ = json.Unmarshal(raw, &body.Body)
	}))
	defer server.Close()
	door := courier(t, server.URL, nil)
	task, event := completed("ord_1")
	for over, kind := range map[int]string{1 << 10: "completed", 1 << 20: "failed"} {
		task.Result = &agent.Result{Summary: "done", Data: json.RawMessage(`{"x":"` + strings.Repeat("x", over) + `"}`)}
		if verdict, err := door.Deliver(t.Context(), task, event); verdict != agent.Delivered {
			t.Fatal(verdict, err)
		}
		if body.Body.Type != kind || size > 1<<20 {
			t.Errorf("%d bytes of data are told of as %s in %d bytes", over, body.Body.Type, size)
		}
		if kind == "failed" && (body.Body.Error.Code != "permanent" || body.Body.Error.Details.Reason != "answer_too_large") {
			t.Errorf("it says %+v", body.Body.Error)
		}
	}
}

func TestWithoutASecretOrAnAddressNothingIsSent(t *testing.T) {
	task, event := completed("ord_1")
	door := courier(t, "http://127.0.0.1:1", func(o *relay.Options) { o.Secrets = func() [][]byte { return [][]byte{nil} } })
	if verdict, err := door.Deliver(t.Context(), task, event); verdict != agent.Again || err == nil {
		t.Errorf("no secret: %s, %v", verdict, err)
	}
	if verdict, err := courier(t, "", nil).Deliver(t.Context(), task, event); verdict != agent.Waiting || err == nil {
		t.Errorf("no address: %s, %v", verdict, err)
	}
}

func TestNobodyIsToldOfATaskThatWasCancelled(t *testing.T) {
	told := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told++ }))
	defer server.Close()
	task, event := completed("ord_1")
	task.State, task.Proposals = agent.Cancelled, []agent.Proposal{{ID: "abort", Data: json.RawMessage(`{}`)}}
	event.Kind, event.Ref = agent.EventProposal, "abort"
	if verdict, err := courier(t, server.URL, nil).Deliver(t.Context(), task, event); verdict != agent.Delivered || err != nil || told > 0 {
		t.Errorf("%s, %v, told %d times", verdict, err, told)
	}
}

func TestEveryKindOfEventHasItsForm(t *testing.T) {
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(raw))
	}))
	defer server.Close()
	door := courier(t, server.URL, nil)
	task, event := completed("ord_1")
	task.Proposals = []agent.Proposal{{ID: "abort", Title: "Drop the rebuild", Summary: "nothing changes", Data: json.RawMessage(`{"deletes":60}`)}}
	task.Chosen = "abort"
	for _, kind := range []agent.EventKind{agent.EventProposal, agent.EventCompleted, agent.EventCancelFailed, agent.EventFailed} {
		event.Kind, event.Ref = kind, "abort"
		if kind == agent.EventFailed {
			task.State, task.Failure = agent.Failed, &agent.Failure{Class: agent.Busy, Code: "timed_out", Message: "not in time", RetryAfter: time.Hour}
		}
		if verdict, err := door.Deliver(t.Context(), task, event); verdict != agent.Delivered {
			t.Fatal(kind, verdict, err)
		}
	}
	golden(t, "testdata/events.golden", strings.Join(bodies, "\n")+"\n")
	event.Kind, event.Ref = agent.EventProposal, "gone"
	if verdict, err := door.Deliver(t.Context(), task, event); verdict != agent.Refused || err == nil {
		t.Errorf("a proposal that is not there: %s, %v", verdict, err)
	}
}
