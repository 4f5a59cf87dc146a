package relay_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/relay"
)

var update = flag.Bool("update", false, "write the golden files")

func TestAReadIsAnsweredWithDataAndParts(t *testing.T) {
	w := open(t, nil)
	w.mirror.record = `{"price": 1.10, "big": 12345678901234567890, "name": "张三<b>"}`
	r := w.relay.invoke("ord_1", "records_get", `{"resource":"users","id":"9007199254740993"}`)
	if r.Status != "completed" {
		t.Fatal(r.Raw)
	}
	for _, digits := range []string{`1.10`, `12345678901234567890`, `9007199254740993`} {
		if !strings.Contains(string(r.Output.Data), digits) {
			t.Errorf("%s is not in the data: %s", digits, r.Output.Data)
		}
	}
	if len(r.Output.Parts) != 1 || r.Output.Parts[0]["type"] != "markdown" || r.Output.Parts[0]["text"] != "one record of users" {
		t.Errorf("parts: %v", r.Output.Parts)
	}
}

func TestAnOrderIsDoneOnceAndAnsweredAlike(t *testing.T) {
	w := open(t, nil)
	w.mirror.record = `{"v":1}`
	get := `{"resource":"users","id":"1"}`
	refused := &agent.Failure{Class: agent.Permanent, Code: "unauthenticated", Message: "the remote takes our key no more"}
	for name, x := range map[string]struct {
		first, then  error  // of the mirror
		input, again string // "": the same
		kept         bool
	}{
		"done":                    {nil, refused, get, get, true},
		"failed for good":         {refused, nil, get, get, true},
		"refused for its input":   {nil, nil, `{"resource":"users"}`, `{"resource":"users"}`, true},
		"busy":                    {&agent.Failure{Class: agent.Busy, Code: "busy"}, nil, get, get, false},
		"too much":                {&agent.Failure{Class: agent.Limited, Code: "limited"}, nil, get, get, false},
		"passing":                 {&agent.Failure{Class: agent.Temporary, Code: "unreachable"}, nil, get, get, false},
		"an error of nobody's":    {errors.New("boom"), nil, get, get, false},
		"the same but for spaces": {nil, refused, get, `{"resource": "users", "id": "1"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			order := "ord_" + strings.ReplaceAll(name, " ", "_")
			order = strings.ReplaceAll(order, "'", "")
			w.mirror.fail = x.first
			first := w.relay.invoke(order, "records_get", x.input)
			w.mirror.fail = x.then
			again := w.relay.invoke(order, "records_get", x.again)
			if x.kept && again.Raw != first.Raw {
				t.Errorf("first %s\nthen %s", first.Raw, again.Raw)
			}
			if !x.kept && (first.Status != "failed" || again.Status != "completed") {
				t.Errorf("first %s\nthen %s", first.Raw, again.Raw)
			}
		})
	}
}

func TestAnOrderThatWasRefusedStaysSo(t *testing.T) {
	w := open(t, nil)
	w.mirror.record = `{}`
	first := w.relay.invoke("ord_r", "records_get", `{"resource":"users"}`)
	then := w.relay.invoke("ord_r", "records_get", `{"resource":"users","id":"1"}`)
	if first.Error == nil || first.Error.Code != "invalid_input" || then.Error == nil || then.Error.Code != "invalid_input" {
		t.Errorf("first %s\nthen %s", first.Raw, then.Raw)
	}
	first = w.relay.invoke("ord_s", "records_get", `{"resource":"users","id":"1"}`)
	then = w.relay.invoke("ord_s", "records_get", `{"resource":"users","id":"2"}`)
	if first.Status != "completed" || then.Error == nil || then.Error.Code != "invalid_input" {
		t.Errorf("first %s\nthen %s", first.Raw, then.Raw)
	}
}

func TestADuplicateBesideTheFirstIsTemporary(t *testing.T) {
	w := open(t, nil)
	w.mirror.block, w.mirror.reading = make(chan struct{}), make(chan struct{}, 9)
	body := invocation("ord_twice", "mirror_freshness", `{}`)
	first := make(chan reply, 1)
	go func() {
		r, err := w.relay.try(header(secret, time.Now(), body), body)
		if err != nil {
			t.Error(err)
		}
		first <- r
	}()
	<-w.mirror.reading
	if r := w.relay.say(body); r.Error == nil || r.Error.Code != "temporary" {
		t.Errorf("beside it: %s", r.Raw)
	}
	close(w.mirror.block)
	was := <-first
	if r := w.relay.say(body); r.Raw != was.Raw || r.Status != "completed" {
		t.Errorf("first %s\nafter it %s", was.Raw, r.Raw)
	}
	if n := len(w.mirror.reading); n != 0 {
		t.Errorf("read %d times more", n)
	}
}

func TestAReadThatTakesTooLongIsTemporaryInTime(t *testing.T) {
	w := open(t, nil)
	w.mirror.block, w.mirror.reading = make(chan struct{}), make(chan struct{}, 9)
	began := time.Now()
	r := w.relay.invoke("ord_long", "mirror_freshness", `{}`)
	if took := time.Since(began); r.Error == nil || r.Error.Code != "temporary" || took > 3*time.Second {
		t.Errorf("after %s: %s", took, r.Raw)
	}
}

// Every class of failures, as the answer to an order and as the end of a task.
func TestEveryClassHasItsWord(t *testing.T) {
	w := open(t, nil)
	var got strings.Builder
	for i, class := range []agent.Class{
		agent.Invalid, agent.Forbidden, agent.NotFound, agent.Busy, agent.Limited, agent.Temporary, agent.Permanent, agent.Internal,
	} {
		f := &agent.Failure{
			Class: class, Code: "some_code", Message: "what it means", Field: "filters[0].value", Suggestions: []string{"do this"},
			RequestID: "r_12", RetryAfter: 1500 * time.Millisecond,
		}
		w.mirror.fail = f
		now := w.relay.invoke(fmt.Sprintf("ord_g%d", i), "mirror_freshness", `{}`)
		fmt.Fprintf(&got, "%s, now: %s\n", class, now.Raw)
		_, end := relay.Words(class)
		fmt.Fprintf(&got, "%s, at a task's end: %s\n", class, end)
	}
	w.mirror.fail = nil
	w.mirror.panics = true
	fmt.Fprintf(&got, "a panic, now: %s\n", w.relay.invoke("ord_panic", "mirror_freshness", `{}`).Raw)
	golden(t, "testdata/errors.golden", got.String())
	if strings.Contains(got.String(), "unauthorized") {
		t.Error("unauthorized would unbind the user")
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
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

func TestOnlyWhatTheScopesAllowIsDone(t *testing.T) {
	w := open(t, func(o *relay.Options) { o.Scopes = []string{"read"} })
	if r := w.relay.invoke("ord_1", "sync_run", `{}`); r.Error == nil || r.Error.Code != "permanent" || r.Error.Details.Reason != "not_allowed" {
		t.Error(r.Raw)
	}
	if r := w.relay.invoke("ord_2", "mirror_status", `{}`); r.Status != "completed" {
		t.Error(r.Raw)
	}
}

// bindings has one code.
type bindings struct {
	used map[string]bool
	fail error
}

func (b *bindings) Redeem(_ context.Context, code, uid string) (ref, display string, ok bool, err error) {
	if b.fail != nil {
		return "", "", false, b.fail
	}
	ok = code == "c_canary" && uid != "" && !b.used[code]
	b.used[code] = true
	return "acct_7", "王五", ok, nil
}

func TestABindingComesBeforeAnOrder(t *testing.T) {
	b := &bindings{used: map[string]bool{}}
	w := open(t, func(o *relay.Options) { o.Supplier.UserBinding, o.Bindings = "token", b })
	if r := w.relay.invoke("ord_1", "mirror_status", `{}`); r.Error == nil || r.Error.Code != "unauthorized" {
		t.Errorf("unbound: %s", r.Raw)
	}
	verify := func(code string) reply {
		return w.relay.say(fmt.Sprintf(`{"type":"binding.verify","rsp":"1.0","issued_at":1,"relay_uid":"u_pair_7","code":%q}`, code))
	}
	if r := verify("c_other"); r.Error == nil || r.Error.Code != "invalid_input" {
		t.Errorf("another code: %s", r.Raw)
	}
	if r := verify(strings.Repeat("c", 200)); r.Error == nil || r.Error.Code != "invalid_input" {
		t.Errorf("an endless code: %s", r.Raw)
	}
	if r := verify("c_canary"); r.Status != "bound" || r.Ref != "acct_7" || r.Name != "王五" {
		t.Errorf("the code: %s", r.Raw)
	}
	if r := verify("c_canary"); r.Status != "failed" {
		t.Errorf("the code again: %s", r.Raw)
	}
	b.fail = errors.New("the database is away")
	if r := verify("c_new"); r.Error == nil || r.Error.Code != "temporary" {
		t.Errorf("without a database: %s", r.Raw)
	}
	bound := strings.Replace(invocation("ord_2", "mirror_status", `{}`), `"supplier_user_ref":null`, `"supplier_user_ref":"acct_7"`, 1)
	first := w.relay.say(bound)
	if first.Status != "completed" {
		t.Errorf("bound: %s", first.Raw)
	}
	// An order keeps its answer, whatever has become of the binding since.
	if r := w.relay.invoke("ord_2", "mirror_status", `{}`); r.Raw != first.Raw {
		t.Errorf("the same order, no longer bound: %s", r.Raw)
	}
}

func TestBindingCodesOfTheStoreAreTakenOnce(t *testing.T) {
	var w *world
	w = open(t, func(o *relay.Options) { o.Supplier.UserBinding, o.Bindings = "token", late{&w} })
	code, err := w.store.AddCode(t.Context(), "acct_9", "赵六", 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"type":"binding.verify","rsp":"1.0","issued_at":1,"relay_uid":"u_pair_7","code":%q}`, code)
	if r := w.relay.say(body); r.Status != "bound" || r.Ref != "acct_9" || r.Name != "赵六" {
		t.Error(r.Raw)
	}
	// The answer may be lost: the same user hears it again, and nobody else.
	if r := w.relay.say(body); r.Status != "bound" || r.Ref != "acct_9" {
		t.Error(r.Raw)
	}
	if r := w.relay.say(strings.Replace(body, "u_pair_7", "u_pair_8", 1)); r.Status != "failed" || r.Error.Code != "invalid_input" {
		t.Error(r.Raw)
	}
}

// late are the bindings of a world that is still being made.
type late struct{ w **world }

func (l late) Redeem(ctx context.Context, code, uid string) (ref, display string, ok bool, err error) {
	return (*l.w).store.Redeem(ctx, code, uid)
}
