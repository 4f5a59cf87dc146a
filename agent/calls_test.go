package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

const getOne = `{"resource":"contracts","id":"1"}`

// statusOf is a service whose mirror.status does what a test says.
func (h house) statusOf(t testing.TB, f func() ([]agent.Status, error), with ...func(*agent.Options)) *agent.Service {
	return h.service(t, func(o *agent.Options) {
		w := o.Mirror.(world)
		w.status = f
		o.Mirror = w
		for _, change := range with {
			change(o)
		}
	})
}

func TestARecordIsReadThroughTheCatalogue(t *testing.T) {
	h := newHouse(t)
	h.put(t, 1, "1", `{"status":"active","amount":12345678901234567890.10}`)
	s := h.service(t, nil)
	a := do(t, s, call("records.get", getOne, ""))
	for _, has := range []string{`"found":true`, `12345678901234567890.10`, `"columns":{"status":"active","amount":12345678901234567890.10`} {
		if !strings.Contains(string(a.Result.Data), has) {
			t.Errorf("%s lacks %s", a.Result.Data, has)
		}
	}
	if a.Task != nil {
		t.Error("a call without a key left a task")
	}
	if a := do(t, s, call("records_get", `{"resource":"contracts","id":"2"}`, "")); string(a.Result.Data) != `{"found":false,"record":null}` {
		t.Errorf("%s", a.Result.Data)
	}
}

func TestWhoMayNotAndWhatIsNotAreRefusedFirst(t *testing.T) {
	h := newHouse(t)
	s := h.service(t, func(o *agent.Options) { o.Allow = []string{"sync.run"} })
	for _, tt := range []struct {
		capability, scopes string
		class              agent.Class
		code               string
	}{
		{"no.such", "*", agent.NotFound, "unknown_capability"},
		{"rebuild.apply", "*", agent.NotFound, "unknown_capability"}, // switched off
		{"sync.run", "read", agent.Forbidden, "not_allowed"},
		{"records.get", "sync.run", agent.Forbidden, "not_allowed"},
		{"records.get", "", agent.Forbidden, "not_allowed"},
		{"records.get", "read", agent.Invalid, "invalid_input"},
	} {
		_, err := s.Do(t.Context(), agent.Call{Caller: agent.Caller{Door: "api", Scopes: strings.Fields(tt.scopes)}, Capability: tt.capability})
		failure(t, err, tt.class, tt.code)
	}
}

// To JSON Schema 2.0 is an integer, and some write every number so.
func TestAWholeNumberIsOneHoweverItIsWritten(t *testing.T) {
	h := newHouse(t)
	s := h.service(t, nil)
	for i := range 3 {
		h.put(t, int64(i+1), string(rune('a'+i)), `{}`)
	}
	for input, want := range map[string]string{
		`{"resource":"contracts","after":1.0,"limit":1.0}`:  "1 changes of contracts, and more",
		`{"resource":"contracts","after":1e0}`:              "2 changes of contracts",
		`{"resource":"contracts","after":9007199254740991}`: "0 changes of contracts",
	} {
		if got := do(t, s, call("changes.list", input, "")).Result.Summary; got != want {
			t.Errorf("%s: %s", input, got)
		}
	}
}

func TestTooManyCallsAtOnceAreTurnedAway(t *testing.T) {
	h := newHouse(t)
	in, out := make(chan struct{}), make(chan struct{})
	s := h.statusOf(t, func() ([]agent.Status, error) { in <- struct{}{}; <-out; return nil, nil }, func(o *agent.Options) { o.MaxCalls = 2 })
	ends := make(chan error, 2)
	for range cap(ends) {
		go func() {
			_, err := s.Do(context.WithoutCancel(t.Context()), call("mirror.status", ``, ""))
			ends <- err
		}()
		<-in
	}
	_, err := s.Do(t.Context(), call("records.get", getOne, ""))
	if f := failure(t, err, agent.Limited, "too_many_calls"); f.RetryAfter <= 0 {
		t.Error("it does not say when")
	}
	do(t, s, call("sync.run", ``, "")) // beginning a task takes no place
	close(out)
	for range cap(ends) {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	do(t, s, call("records.get", getOne, ""))
}

func TestACallEndsWithinItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := agent.New(agent.Options{Mirror: stuck{}, Resources: resources})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = s.Do(t.Context(), call("records.get", getOne, ""))
		failure(t, err, agent.Temporary, "timed_out")
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		given, giveUp := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, giveUp)
		_, err = s.Do(given, call("records.get", getOne, ""))
		failure(t, err, agent.Temporary, "interrupted")
	})
}

// stuck is a mirror that never answers.
type stuck struct{ agent.Mirror }

func (stuck) Record(ctx context.Context, _, _ string) (agent.Record, bool, error) {
	<-ctx.Done()
	return agent.Record{}, false, fmt.Errorf("read: %w", ctx.Err())
}

// What went wrong inside stays inside, but for the log; what was asked stays out of both.
func TestEveryErrorOfACallIsAFailure(t *testing.T) {
	h := newHouse(t)
	core, logs := observer.New(zap.DebugLevel)
	for name, tt := range map[string]struct {
		do    func() ([]agent.Status, error)
		class agent.Class
		code  string
	}{
		"a failure": {func() ([]agent.Status, error) {
			return nil, fmt.Errorf("x: %w", &agent.Failure{Class: agent.Permanent, Code: "c"})
		}, agent.Permanent, "c"},
		"any error":        {func() ([]agent.Status, error) { return nil, errors.New("hunter2") }, agent.Internal, "internal_error"},
		"a panic":          {func() ([]agent.Status, error) { panic("hunter2") }, agent.Internal, "internal_error"},
		"a failed request": {func() ([]agent.Status, error) { return nil, context.Canceled }, agent.Internal, "internal_error"},
	} {
		for _, key := range []string{"", "key of " + name} {
			s := h.statusOf(t, tt.do, func(o *agent.Options) { o.Logger = zap.New(core) })
			_, err := s.Do(t.Context(), call("mirror.status", `{"resources":["contracts"]}`, key))
			if f := failure(t, err, tt.class, tt.code); strings.Contains(f.Message, "hunter2") {
				t.Errorf("%s: %v", name, f)
			}
		}
	}
	if logs.Len() == 0 {
		t.Error("the operator's log has nothing")
	}
	for _, l := range logs.All() {
		if strings.Contains(fmt.Sprint(l.ContextMap()), `"contracts"`) {
			t.Errorf("the input is in the log: %v", l.ContextMap())
		}
	}
}

func TestAKeyGivesItsAnswerAgainAfterARestartToo(t *testing.T) {
	h := newHouse(t)
	h.put(t, 1, "1", `{"status":"active","text":"<&> 张"}`)
	first := do(t, h.service(t, nil), call("records.get", getOne, "k"))
	h.exec(t, `update xiaoqu.contracts set record = '{"status":"ended"}'`)
	s := h.service(t, nil)
	again := do(t, s, call("records.get", ` { "resource" : "contracts", "id":"1" }`, "k"))
	if string(again.Result.Data) != string(first.Result.Data) || again.Result.Summary != first.Result.Summary || again.Task.ID != first.Task.ID {
		t.Errorf("%s\n%s", first.Result.Data, again.Result.Data)
	}
	for name, c := range map[string]agent.Call{
		"another input":      call("records.get", `{"resource":"contracts","id":"2"}`, "k"),
		"another capability": call("mirror.status", ``, "k"),
		"begun as a task":    call("sync.run", ``, "k"),
	} {
		_, err := s.Do(t.Context(), c)
		if f := failure(t, err, agent.Invalid, "key_reused"); len(f.Suggestions) == 0 {
			t.Errorf("%s: no advice", name)
		}
	}
	other := call("records.get", getOne, "k")
	other.Caller.Door = "mcp" // has keys of its own
	if a := do(t, s, other); strings.Contains(string(a.Result.Data), "active") {
		t.Errorf("%s", a.Result.Data)
	}
}

func TestOnlyALastingFailureIsKeptForItsKey(t *testing.T) {
	h := newHouse(t)
	for _, class := range []agent.Class{agent.Invalid, agent.NotFound, agent.Permanent, agent.Busy, agent.Limited, agent.Temporary, agent.Internal} {
		calls := 0
		s := h.statusOf(t, func() ([]agent.Status, error) {
			calls++
			return nil, &agent.Failure{Class: class, Code: "c", Message: "m"}
		})
		for range 2 {
			_, err := s.Do(t.Context(), call("mirror.status", ``, string(class)))
			failure(t, err, class, "c")
		}
		want := 1
		if class.Passing() || class == agent.Internal {
			want = 2
		}
		if calls != want {
			t.Errorf("%s was tried %d times, want %d", class, calls, want)
		}
	}
}

func TestTheSameCallBesideItselfIsToldToWait(t *testing.T) {
	h := newHouse(t)
	in, out := make(chan struct{}), make(chan struct{})
	s := h.statusOf(t, func() ([]agent.Status, error) { in <- struct{}{}; <-out; return nil, nil })
	end := make(chan error)
	go func() {
		_, err := s.Do(context.WithoutCancel(t.Context()), call("mirror.status", ``, "k"))
		end <- err
	}()
	<-in
	_, err := h.service(t, nil).Do(t.Context(), call("mirror.status", ``, "k"))
	failure(t, err, agent.Temporary, "in_progress")
	close(out)
	if err := <-end; err != nil {
		t.Error(err)
	}
}

// A record that no answer could hold must not stop who follows changes.
func TestARecordThatIsTooLargeIsPassedOver(t *testing.T) {
	h := newHouse(t)
	h.put(t, 1, "fat", `{"x":"`+strings.Repeat("x", 2<<20)+`"}`)
	h.put(t, 2, "thin", `{"x":"y"}`)
	s := h.service(t, nil)
	var page struct{ Changes []agent.Record }
	a := do(t, s, call("changes.list", `{"resource":"contracts","after":0}`, ""))
	if err := json.Unmarshal(a.Result.Data, &page); err != nil || len(page.Changes) != 2 {
		t.Fatalf("%v: %d changes in %d bytes", err, len(page.Changes), len(a.Result.Data))
	}
	if fat, thin := page.Changes[0], page.Changes[1]; !fat.Omitted || string(fat.Record) != "null" || thin.Omitted || thin.ID != "thin" {
		t.Errorf("%.200s", a.Result.Data)
	}
	var one struct{ Record agent.Record }
	a = do(t, s, call("records.get", `{"resource":"contracts","id":"fat"}`, ""))
	if err := json.Unmarshal(a.Result.Data, &one); err != nil || !one.Record.Omitted {
		t.Errorf("%v: %.200s", err, a.Result.Data)
	}
}

func TestALongAnswerIsCutBetweenRecords(t *testing.T) {
	h := newHouse(t)
	fat := strings.Repeat("x", 300<<10)
	for i := range 4 {
		h.put(t, int64(i+1), fmt.Sprint(i), `{"x":"`+fat+`"}`)
	}
	h.exec(t, `update xiaoqu.contracts set record = '{}' where id = '3'`)
	s := h.service(t, nil)
	after, got := int64(0), ""
	for range 4 {
		var page struct {
			Changes []agent.Record
			Next    int64
			More    bool
		}
		a := do(t, s, call("changes.list", fmt.Sprintf(`{"resource":"contracts","after":%d}`, after), ""))
		if err := json.Unmarshal(a.Result.Data, &page); err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Changes {
			got += r.ID
		}
		got += fmt.Sprintf(" %d %v; ", page.Next, page.More)
		if after = page.Next; !page.More {
			break
		}
	}
	if got != "0 1 true; 1 2 true; 23 4 false; " {
		t.Error(got)
	}
	var found struct{ Next *string }
	a := do(t, s, call("records.search", `{"resource":"contracts","limit":3,"after_id":"1"}`, ""))
	if err := json.Unmarshal(a.Result.Data, &found); err != nil || found.Next != nil {
		t.Errorf("%v, %v", found.Next, err)
	}
}
