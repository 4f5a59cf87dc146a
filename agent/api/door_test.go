package api_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

var update = flag.Bool("update", false, "write golden files anew")

func TestWithoutATokenNothingIsTold(t *testing.T) {
	w := setUp(t)
	good := w.token(t, "good", "read")
	for _, token := range []string{"", "nonsense", good + "x", strings.ToUpper(good)} {
		for _, path := range []string{"/api/v1/capabilities", "/api/v1/openapi.json", "/api/v1/tasks/task_x", "/api/v1/nowhere"} {
			r := w.call(t, "GET", path, token, "").sound(t)
			if r.status != 401 || r.Error.Code != "unauthenticated" || r.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: %d %s", path, r.status, r.text)
			}
		}
	}
	if gone, err := w.store.RevokeToken(t.Context(), "good"); !gone || err != nil {
		t.Fatal(gone, err)
	}
	if r := w.call(t, "GET", "/api/v1/capabilities", good, ""); r.status != 401 {
		t.Errorf("a revoked token: %d", r.status)
	}
}

func TestARecordComesWithEveryDigit(t *testing.T) {
	w := setUp(t)
	token := w.token(t, "reader", "read")
	r := w.call(t, "POST", "/api/v1/capabilities/records.get", token, `{"resource":"users","id":"1"}`).sound(t)
	if r.status != 200 || !strings.Contains(string(r.Data), `1.10`) || !strings.Contains(string(r.Data), "王") {
		t.Errorf("%d %s", r.status, r.text)
	}
	if r.header.Get("Cache-Control") != "no-store" || r.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", r.header)
	}
	r = w.call(t, "POST", "/api/v1/capabilities/records.get", token, `{"resource":"users","id":"2"}`).sound(t)
	if string(r.Data) != `{"found":false,"record":null}` {
		t.Errorf("%s", r.text)
	}
}

func TestBrokenRequestsAreAnsweredInTheEnvelope(t *testing.T) {
	w := setUp(t)
	token := w.token(t, "reader", "read")
	const get = "/api/v1/capabilities/records.get"
	tests := []struct {
		name, method, path, body string
		header                   []string
		status                   int
		code, details            string
	}{
		{"no JSON", "POST", get, `{"resource":`, nil, 400, "invalid_input", `{}`},
		{"a field is missing", "POST", get, `{"resource":"users"}`, nil, 400, "invalid_input", `{"field":"id"}`},
		{"a field is wrong", "POST", get, `{"resource":"users","id":7}`, nil, 400, "invalid_input", `{"field":"id"}`},
		{"an unknown resource", "POST", get, `{"resource":"pg_user","id":"1"}`, nil, 400, "invalid_input", `{"field":"resource"}`},
		{"an unknown field", "POST", get, `{"resource":"users","id":"1","tenant_id":"t"}`, nil, 400, "invalid_input", `{"field":"tenant_id"}`},
		{"too large", "POST", get, `{"resource":"users","id":"` + strings.Repeat("a", 400<<10) + `"}`, nil, 413, "input_too_large", `{}`},
		{"no JSON by its type", "POST", get, `x=1`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 400, "invalid_request", `{"field":"Content-Type"}`},
		{"an unknown capability", "POST", "/api/v1/capabilities/records.drop", `{}`, nil, 404, "unknown_capability", `{}`},
		{"an unknown path", "GET", "/api/v1/nowhere", ``, nil, 404, "not_found", `{}`},
		{"the wrong method", "DELETE", get, ``, nil, 405, "method_not_allowed", `{}`},
		{"a long key", "POST", get, `{}`, []string{"Idempotency-Key", strings.Repeat("k", 200)}, 400, "invalid_request", `{"field":"Idempotency-Key"}`},
		{"not allowed", "POST", "/api/v1/capabilities/sync.run", `{}`, nil, 403, "not_allowed", `{}`},
		{"an unknown task", "GET", "/api/v1/tasks/task_x", ``, nil, 404, "unknown_task", `{}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := w.call(t, tt.method, tt.path, token, tt.body, tt.header...).sound(t)
			if r.status != tt.status || r.Error.Code != tt.code || string(r.Error.Details) != tt.details {
				t.Errorf("%d %s", r.status, r.text)
			}
		})
	}
}

func TestATaskIsBegunOnceAndSeenByItsCallerAlone(t *testing.T) {
	w := setUp(t)
	token, other := w.token(t, "operator", "sync.run"), w.token(t, "other", "*")
	begin := func(token string) reply {
		return w.call(t, "POST", "/api/v1/capabilities/sync.run", token, `{"resources":["users"]}`, "Idempotency-Key", "k1").sound(t)
	}
	first, again := begin(token), begin(token)
	if first.status != 202 || first.header.Get("Location") == "" || first.header.Get("Location") != again.header.Get("Location") {
		t.Fatalf("%d %s\n%s", first.status, first.text, again.text)
	}
	if strange := begin(other); strange.header.Get("Location") == first.header.Get("Location") {
		t.Error("two callers have the same key, and one task")
	}
	r := w.call(t, "POST", "/api/v1/capabilities/sync.run", token, `{}`, "Idempotency-Key", "k1").sound(t)
	if r.status != 400 || r.Error.Code != "key_reused" {
		t.Errorf("another request with the same key: %s", r.text)
	}
	path := first.header.Get("Location")
	if r := w.call(t, "GET", path, other, "").sound(t); r.status != 404 {
		t.Errorf("a stranger's task is shown: %s", r.text)
	}
	w.run(t)
	<-w.jobs
	<-w.jobs
	task := w.state(t, path, token, "completed")
	if !strings.Contains(task, `"inserted":2`) {
		t.Error(task)
	}
	if r := w.call(t, "POST", path+"/cancel", token, "").sound(t); r.status != 422 || r.Error.Code != "not_cancellable" {
		t.Errorf("%s", r.text)
	}
	if done := begin(token); done.status != 200 || !strings.Contains(done.text, `"inserted":2`) {
		t.Errorf("the same key after the end: %d %s", done.status, done.text)
	}
}

func TestATaskThatNobodyWorksOnIsCancelled(t *testing.T) {
	w := setUp(t)
	token := w.token(t, "operator", "*")
	path := w.call(t, "POST", "/api/v1/capabilities/verify.run", token, "").sound(t).header.Get("Location")
	if r := w.call(t, "POST", path+"/cancel", token, "").sound(t); r.status != 200 || !strings.Contains(r.text, `"cancelled"`) {
		t.Errorf("%s", r.text)
	}
}

// state waits until a task is in a state.
func (w *world) state(t testing.TB, path, token, want string) string {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	deadline := time.After(20 * time.Second)
	for {
		r := w.call(t, "GET", path, token, "").sound(t)
		if strings.Contains(r.text, `"state":"`+want+`"`) {
			return r.text
		}
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("never %s: %s", want, r.text)
		}
	}
}

func TestEveryClassOfFailureHasItsAnswer(t *testing.T) {
	w := setUp(t)
	token := w.token(t, "reader", "read")
	var b strings.Builder
	classes := []agent.Class{agent.Invalid, agent.Forbidden, agent.NotFound, agent.Busy, agent.Limited, agent.Temporary, agent.Permanent, agent.Internal}
	for _, c := range classes {
		w.fail = &agent.Failure{Class: c, Code: "of_" + string(c), Message: "as it is", RequestID: "r_1", RetryAfter: 1500 * time.Millisecond, Suggestions: []string{"do this"}}
		r := w.call(t, "POST", "/api/v1/capabilities/mirror.status", token, "").sound(t)
		fmt.Fprintf(&b, "%s %d Retry-After %q %s\n", c, r.status, r.header.Get("Retry-After"), plain(r.text))
	}
	w.fail = errors.New("dial tcp: password=hunter2 of mobile 13800001234")
	r := w.call(t, "POST", "/api/v1/capabilities/mirror.status", token, "").sound(t)
	fmt.Fprintf(&b, "an error that nobody named: %d %s\n", r.status, plain(r.text))
	golden(t, "failures.golden", b.String())
}

// plain takes out what is another one each time.
func plain(text string) string {
	text = regexp.MustCompile(`op-[0-9a-f]+`).ReplaceAllString(text, "op-…")
	return strings.TrimSpace(regexp.MustCompile(`"timestamp":"[^"]+"`).ReplaceAllString(text, `"timestamp":"…"`))
}

func TestTheDescriptionIsAsItWas(t *testing.T) {
	w := setUp(t)
	token := w.token(t, "reader", "read")
	golden(t, "openapi.json", w.call(t, "GET", "/api/v1/openapi.json", token, "").text)
	r := w.call(t, "GET", "/api/v1/capabilities", token, "").sound(t)
	var list struct {
		Capabilities []map[string]json.RawMessage `json:"capabilities"`
	}
	if err := json.Unmarshal(r.Data, &list); err != nil || len(list.Capabilities) != len(w.service.Capabilities()) {
		t.Fatalf("%v %s", err, r.text)
	}
	for _, c := range list.Capabilities {
		for _, part := range []string{"id", "description", "input", "output", "auth", "risk", "result"} {
			if len(c[part]) == 0 {
				t.Errorf("%s has no %s", c["id"], part)
			}
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// Nothing of a record, an input or a token may be in a log.
func TestNothingPersonalIsLogged(t *testing.T) {
	w := setUp(t)
	token := w.token(t, "reader", "*")
	w.fail = errors.New("a mistake")
	w.call(t, "POST", "/api/v1/capabilities/records.get", token, `{"resource":"users","id":"1"}`)
	w.call(t, "POST", "/api/v1/capabilities/records.get", token, `{"resource":"users","id":"13900009999"}`)
	w.call(t, "POST", "/api/v1/capabilities/mirror.status", token, `{}`)
	if w.log.Len() == 0 {
		t.Error("a mistake is not logged")
	}
	for _, e := range w.log.All() {
		text := fmt.Sprintf("%s %v", e.Message, e.ContextMap())
		for _, canary := range []string{"13800001234", "13900009999", "王", token} {
			if strings.Contains(text, canary) {
				t.Errorf("%q is in the log: %s", canary, text)
			}
		}
	}
}
