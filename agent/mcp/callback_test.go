package mcp_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/mcp"
)

const callbacks = "/api/v1/open-agent-tools/callbacks/"

func TestATaskEndsWithACallback(t *testing.T) {
	s := open(t)
	s.run(t)
	p := newPlatform(s).shake(t)
	schema := outputs(t, p)["rebuild_plan"]
	p.call(t, "inv_01", "rebuild_plan", `{"resources":["users"]}`).outcome(t)
	if job := s.work(t, nil); job.Kind != agent.JobPlan || cmp.Diff(job.Resources, []string{"users"}) != "" {
		t.Errorf("job %+v", job)
	}
	got := wait(t, s.platform.told)
	if got.method != http.MethodPost || got.path != callbacks+"inv_01" || got.header.Get("Authorization") != "Bearer "+credential || got.header.Get("Idempotency-Key") == "" || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s %v", got.method, got.path, got.header)
	}
	fits(t, schema, got.body)
	var last outcome
	if err := json.Unmarshal([]byte(`{"structuredContent":`+string(got.body)+`}`), &last); err != nil {
		t.Fatal(err)
	}
	if last.Body.Status != "completed" || !strings.Contains(string(last.Body.Data), `"plan":"p-1"`) || len(last.Body.Artifacts) != 2 {
		t.Fatalf("%s", got.body)
	}
	for i, want := range []string{"markdown", "json"} {
		a := last.Body.Artifacts[i]
		r := fetch(t, http.MethodGet, a.URL)
		sum := sha256.Sum256(r.body)
		if a.Type != want || r.status != 200 || len(r.body) != a.Size || hex.EncodeToString(sum[:]) != a.SHA256 || r.header.Get("Content-Type") != a.MimeType+"; charset=utf-8" {
			t.Errorf("%+v: %d %v %q", a, r.status, r.header, r.body)
		}
	}
}

func TestADecisionIsAPersons(t *testing.T) {
	s := open(t, func(st *stage) {
		st.held = &agent.Difference{Inserts: 1, Updates: 2, Deletes: 6, Sample: []string{"u-1"}, Plan: "p-1"}
	})
	s.run(t)
	p := newPlatform(s).shake(t)
	schema := outputs(t, p)["rebuild_resolve"]
	p.call(t, "i1", "rebuild_resolve", `{"resource":"users"}`).outcome(t)
	got := wait(t, s.platform.told)
	fits(t, schema, got.body)
	for _, want := range []string{`"status":"failed"`, `"errorCode":"choice_required"`, `"accept_all"`, `"without_deletes"`, `"abort"`, `"deletes":6`} {
		if !strings.Contains(string(got.body), want) {
			t.Errorf("%s is not in %s", want, got.body)
		}
	}
	if again := p.call(t, "i1", "rebuild_resolve", `{"resource":"users"}`); string(again.envelope(t)) != string(got.body) {
		t.Errorf("the same invocation: %s", again.body)
	}
	p.call(t, "i2", "rebuild_resolve", `{"resource":"users","choice":"abort","plan":"p-1"}`).outcome(t)
	if job := s.work(t, nil); job.Choice != agent.Abort {
		t.Errorf("job %+v", job)
	}
	if got := wait(t, s.platform.told); got.path != callbacks+"i2" || !strings.Contains(string(got.body), `"status":"completed"`) {
		t.Errorf("%s %s", got.path, got.body)
	}
}

// A process that dies between accepted and done, and another between done and told,
// lose nothing: a third tells it, as the same event.
func TestAnotherProcessCarriesOn(t *testing.T) {
	s := open(t)
	p := newPlatform(s).shake(t)
	p.call(t, "i1", "verify_run", `{"resources":["users"]}`).outcome(t)

	stop := s.run(t)
	wait(t, s.worker.begun)
	stop() // at work

	s.platform.script <- 503
	stop = s.other(t)
	s.work(t, nil)
	first := wait(t, s.platform.told)
	stop() // not told: 503

	s.other(t)
	second := wait(t, s.platform.told)
	if first.path != callbacks+"i1" || first.path != second.path || string(first.body) != string(second.body) || first.header.Get("Idempotency-Key") != second.header.Get("Idempotency-Key") {
		t.Errorf("%+v\nand then\n%+v", first, second)
	}
	if !strings.Contains(string(second.body), `"status":"completed"`) {
		t.Errorf("%s", second.body)
	}
}

func TestACallbacksStatusDecides(t *testing.T) {
	for status, want := range map[int]agent.Verdict{
		200: agent.Delivered, 202: agent.Delivered, 204: agent.Delivered, 409: agent.Delivered,
		408: agent.Again, 425: agent.Again, 429: agent.Again, 500: agent.Again, 502: agent.Again, 503: agent.Again,
		301: agent.Refused, 307: agent.Refused, 400: agent.Refused, 401: agent.Refused, 403: agent.Refused, 404: agent.Refused, 413: agent.Refused, 422: agent.Refused,
	} {
		to := receive(t)
		to.script <- status
		c := courier(t, to.url)
		task := agent.Task{State: agent.Completed, Result: &agent.Result{Summary: "s", Data: json.RawMessage(`{}`)}, ReplyTo: json.RawMessage(`{"invocation":"i1"}`)}
		got, err := c.Deliver(t.Context(), task, agent.Event{ID: "evt_1"})
		if got != want || (err == nil) != (want == agent.Delivered) {
			t.Errorf("%d: %s, %v", status, got, err)
		}
		if err != nil && (strings.Contains(err.Error(), credential) || strings.Contains(err.Error(), "i1")) {
			t.Errorf("%d: the error tells %v", status, err)
		}
		if wait(t, to.told); len(to.told) > 0 {
			t.Errorf("%d: a redirect was followed", status)
		}
	}
}

func TestACallbackThatCannotArriveIsTriedAgain(t *testing.T) {
	c := courier(t, "http://127.0.0.1:1/callbacks")
	task := agent.Task{State: agent.Failed, ReplyTo: json.RawMessage(`{"invocation":"canary-1"}`)}
	got, err := c.Deliver(t.Context(), task, agent.Event{ID: "evt_1"})
	if got != agent.Again || err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("%s, %v", got, err)
	}
	task.ReplyTo = json.RawMessage(`{}`) // a call of a developer, without an invocation
	if got, err := c.Deliver(t.Context(), task, agent.Event{}); got != agent.Delivered || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

func TestCallbacksGoToExactPlacesOnly(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://api.example.com/cb": true, "http://127.0.0.1:8080/cb": true, "http://localhost/cb": true,
		"http://api.example.com/cb": false, "https://*.example.com/cb": false, "https://u:p@api.example.com/cb": false,
		"https://api.example.com/cb?to=x": false, "https://api.example.com/cb#x": false, "/cb": false, "": false, "ftp://127.0.0.1/cb": false, "https://api.example.com/{id}": false,
	} {
		if _, err := mcp.NewCourier(mcp.CourierOptions{CallbackURL: address, Credential: credential}); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := mcp.NewCourier(mcp.CourierOptions{CallbackURL: "https://api.example.com/cb"}); err == nil {
		t.Error("a courier without a credential")
	}
}

func courier(t testing.TB, to string) *mcp.Courier {
	t.Helper()
	c, err := mcp.NewCourier(mcp.CourierOptions{CallbackURL: to, Credential: credential, PublicURL: "https://mirror.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func fetch(t testing.TB, method, address string) reply {
	t.Helper()
	p := &platform{url: address, accept: "*/*"}
	return p.send(t, method, "", map[string]string{"Content-Type": "-"})
}

func TestArtifactsAreForReadingOnly(t *testing.T) {
	s := open(t)
	s.run(t)
	p := newPlatform(s).shake(t)
	p.call(t, "i1", "verify_run", `{"resources":["users"]}`).outcome(t)
	s.work(t, nil)
	var last struct{ Artifacts []struct{ URL string } }
	if err := json.Unmarshal(wait(t, s.platform.told).body, &last); err != nil || len(last.Artifacts) != 2 {
		t.Fatal(err, last)
	}
	address := last.Artifacts[0].URL
	head, get := fetch(t, http.MethodHead, address), fetch(t, http.MethodGet, address)
	if head.status != 200 || len(head.body) > 0 || head.header.Get("Content-Length") != get.header.Get("Content-Length") {
		t.Errorf("HEAD: %d %v", head.status, head.header)
	}
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'",
		"Content-Disposition": "attachment; filename=drift.md", "Referrer-Policy": "no-referrer",
	} {
		if got := get.header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		if r := fetch(t, method, address); r.status != 405 {
			t.Errorf("%s: %d", method, r.status)
		}
	}
	if _, err := s.sql.Exec(t.Context(), "update xiaoqu_sync.agent_documents set expires_at = now() - interval '1 second'"); err != nil {
		t.Fatal(err)
	}
	expired, unknown, bad := fetch(t, http.MethodGet, address), fetch(t, http.MethodGet, s.url+"/artifacts/"+strings.Repeat("A", 43)), fetch(t, http.MethodGet, s.url+"/artifacts/..%2f..%2fetc")
	for _, r := range []reply{expired, unknown, bad} {
		if r.status != 404 || string(r.body) != string(unknown.body) {
			t.Errorf("%d %q", r.status, r.body)
		}
	}
	if len(s.platform.told) > 0 {
		t.Error("told twice")
	}
}
