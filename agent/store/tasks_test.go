package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

func TestATaskIsReadAsItWasBegun(t *testing.T) {
	f := setUp(t)
	in := newTask("k")
	in.Input = json.RawMessage(`{ "b":1.10,"a":"\u0000 <&>" }`) // no byte of it changes
	in.Choose = true
	made := f.begun(t, in)
	want := in
	want.State, want.CreatedAt = agent.Accepted, made.CreatedAt
	for how, got := range map[string]*agent.Task{
		"made": &made, "by id": must(f.Task(t.Context(), in.ID))(t), "by key": must(f.ByKey(t.Context(), "api", "k"))(t),
	} {
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s: %s", how, diff)
		}
	}
	if since := time.Since(made.CreatedAt); since < 0 || since > time.Minute {
		t.Errorf("created %v ago", since)
	}
	for _, none := range []*agent.Task{must(f.Task(t.Context(), "task_x"))(t), must(f.ByKey(t.Context(), "mcp", "k"))(t), must(f.Task(t.Context(), "\x00"))(t)} {
		if none != nil {
			t.Errorf("%+v", none)
		}
	}
}

func TestOneKeyMakesOneTask(t *testing.T) {
	f := setUp(t)
	other := f.open(t)
	var g errgroup.Group
	fresh := make(chan bool, 20)
	ids := make(chan string, cap(fresh))
	for i := range cap(fresh) {
		s := f.Store
		if i%2 == 1 {
			s = other
		}
		g.Go(func() error {
			task := newTask("k")
			task.ID = fmt.Sprintf("task_%d", i)
			made, first, err := s.Begin(context.WithoutCancel(t.Context()), task, i%3 == 0, time.Minute)
			fresh <- first
			ids <- made.ID
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	first, id := 0, <-ids
	for range cap(fresh) - 1 {
		if got := <-ids; got != id {
			t.Errorf("two tasks: %s and %s", id, got)
		}
	}
	for range cap(fresh) {
		if <-fresh {
			first++
		}
	}
	if rows := value[int](t, f, "select count(*) from xiaoqu_sync.agent_tasks"); first != 1 || rows != 1 {
		t.Errorf("%d were fresh, %d rows", first, rows)
	}
}

func TestAKeyIsBounded(t *testing.T) {
	f := setUp(t)
	for _, key := range []string{strings.Repeat("k", 513), "a\x00b", "\xff"} {
		_, _, err := f.Begin(t.Context(), newTask(key), false, 0)
		wantFailure(t, err, agent.Invalid, "invalid_key")
	}
}

// A process that dies in the middle of a call leaves a row that runs. The same call
// does it again, and nothing else does.
func TestACallThatWasLeftInTheMiddleIsDoneByTheSameCall(t *testing.T) {
	f := setUp(t)
	call := newTask("k")
	begin := func(call agent.Task) (agent.Task, bool) {
		t.Helper()
		made, fresh, err := f.Begin(t.Context(), call, true, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return made, fresh
	}
	dead, fresh := begin(call)
	if !fresh || dead.State != agent.Running || dead.Attempt != 1 || dead.StartedAt == nil {
		t.Fatalf("%v %+v", fresh, dead)
	}
	if _, fresh := begin(call); fresh {
		t.Error("taken over while it is worked on")
	}
	f.expire(t)
	if c := must(f.Claim(t.Context(), agent.Writing(), time.Minute))(t); c != nil {
		t.Error("a worker took a call whose caller has gone")
	}
	other := call
	other.Input = json.RawMessage(`{"resources":["users"]}`)
	if made, fresh := begin(other); fresh || string(made.Input) != string(call.Input) {
		t.Error("taken over by another request")
	}
	call.Input = json.RawMessage(`{"resources":["contracts"]}`) // but for space the same
	again, fresh := begin(call)
	if !fresh || again.Attempt != 2 || again.ID != dead.ID {
		t.Fatalf("%v %+v", fresh, again)
	}
	if ok := must(f.Finish(t.Context(), dead, agent.Outcome{State: agent.Failed}))(t); ok {
		t.Error("the dead one ended it")
	}
	if err := f.Forget(t.Context(), dead); err != nil {
		t.Error(err)
	}
	if ok := must(f.Finish(t.Context(), again, agent.Outcome{State: agent.Completed, Result: &agent.Result{Summary: "s", Data: json.RawMessage(`1`)}}))(t); !ok {
		t.Error("the living one did not end it")
	}
}

func TestClaimsGoByAgeAndComeBack(t *testing.T) {
	f := setUp(t)
	for i, key := range []string{"a", "b"} {
		f.begun(t, newTask(key))
		f.exec(t, `update xiaoqu_sync.agent_tasks set created_at = now() - $2::int * interval '1 second' where key = $1`, key, 100-i)
	}
	a, b := f.claimed(t), f.claimed(t)
	if a.Key != "a" || b.Key != "b" || a.State != agent.Running || a.Attempt != 1 || a.StartedAt == nil {
		t.Fatalf("%+v %+v", a, b)
	}
	none := func(why string) {
		t.Helper()
		if c := must(f.Claim(t.Context(), agent.Writing(), time.Minute))(t); c != nil {
			t.Fatalf("%s: %+v", why, c)
		}
	}
	none("both are worked on")
	if err := f.Postpone(t.Context(), b, time.Hour); err != nil {
		t.Fatal(err)
	}
	none("the second is to wait")
	f.expire(t)
	taken := f.claimed(t) // from a dead worker
	if taken.ID != a.ID || taken.Attempt != 2 || !taken.StartedAt.Equal(*a.StartedAt) {
		t.Errorf("%+v", taken)
	}
	// Whatever the first worker still does comes too late.
	if must(f.Hold(t.Context(), a, time.Minute))(t) || must(f.Finish(t.Context(), a, agent.Outcome{State: agent.Failed, Tell: true}))(t) {
		t.Error("a lost claim holds")
	}
	if err := f.Postpone(t.Context(), a, 0); err != nil {
		t.Fatal(err)
	}
	if !must(f.Hold(t.Context(), taken, time.Minute))(t) {
		t.Error("the claim was lost")
	}
	if n := value[int](t, f, "select count(*) from xiaoqu_sync.agent_events"); n != 0 {
		t.Errorf("%d events", n)
	}
}

func TestAnEndIsWrittenOnceWithAllThatTellsOfIt(t *testing.T) {
	f := setUp(t)
	f.begun(t, newTask("k"))
	task := f.claimed(t)
	body := []byte("# Drift\x00")
	end := agent.Outcome{
		State: agent.Completed, Tell: true, Keep: time.Hour,
		Result: &agent.Result{Summary: "done", Data: json.RawMessage(`{"n":1.10}`), Documents: []agent.Document{
			{Title: "Drift report", Name: "drift.md", Type: "text/markdown", Body: body}, {Title: "Empty", Name: "e.json", Type: "application/json"},
		}},
	}
	var g errgroup.Group
	ended := make(chan bool, 8)
	for range cap(ended) {
		g.Go(func() error {
			ok, err := f.Finish(context.WithoutCancel(t.Context()), task, end)
			ended <- ok
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for range cap(ended) {
		if <-ended {
			n++
		}
	}
	if rows := value[string](t, f, "select concat_ws(' ', (select count(*) from xiaoqu_sync.agent_events), (select count(*) from xiaoqu_sync.agent_documents))"); n != 1 || rows != "1 2" {
		t.Errorf("ended %d times, events and documents: %s", n, rows)
	}
	got := must(f.Task(t.Context(), task.ID))(t)
	if got.State != agent.Completed || got.EndedAt == nil || len(got.Links) != 2 || got.Result == nil {
		t.Fatalf("%+v", got)
	}
	if got.Result.Summary != "done" || string(got.Result.Data) != `{"n":1.10}` {
		t.Errorf("%+v", got.Result)
	}
	d, link, err := f.Document(t.Context(), got.Links[0].Token)
	if err != nil || d == nil {
		t.Fatal(d, err)
	}
	if diff := cmp.Diff(&end.Result.Documents[0], d); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&got.Links[0], link); diff != "" || link.Size != int64(len(body)) || len(link.Token) < 26 {
		t.Errorf("%+v %s", link, diff)
	}
	if value[bool](t, f, "select exists (select from xiaoqu_sync.agent_documents where position(convert_to($1, 'UTF8') in hash) > 0)", link.Token) {
		t.Error("a token is stored")
	}
	f.exec(t, "update xiaoqu_sync.agent_documents set expires_at = now()")
	for _, token := range []string{link.Token, "", "nothing", strings.Repeat("x", 5000)} {
		if d, l, err := f.Document(t.Context(), token); d != nil || l != nil || err != nil {
			t.Error(d, l, err)
		}
	}
}

func TestAFailureIsKept(t *testing.T) {
	f := setUp(t)
	f.begun(t, newTask("k"))
	want := &agent.Failure{Class: agent.Permanent, Code: "c", Message: "m", Field: "f", Suggestions: []string{"s"}, RequestID: "r", RetryAfter: time.Second, Details: json.RawMessage(`{"a":1}`)}
	must(f.Finish(t.Context(), f.claimed(t), agent.Outcome{State: agent.Failed, Failure: want}))(t)
	got := must(f.ByKey(t.Context(), "api", "k"))(t)
	if diff := cmp.Diff(want, got.Failure); diff != "" || got.State != agent.Failed || got.Result != nil {
		t.Errorf("%+v %s", got, diff)
	}
}

func TestForgottenIsGone(t *testing.T) {
	f := setUp(t)
	made, _, err := f.Begin(t.Context(), newTask("k"), true, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Forget(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if left := must(f.ByKey(t.Context(), "api", "k"))(t); left != nil {
		t.Errorf("%+v", left)
	}
}

func TestSweepRemovesWhatIsOver(t *testing.T) {
	f := setUp(t)
	for _, key := range []string{"old", "new"} {
		f.begun(t, newTask(key))
		must(f.Finish(t.Context(), f.claimed(t), agent.Outcome{State: agent.Completed, Tell: true, Keep: time.Hour, Result: &agent.Result{Documents: []agent.Document{{}}}}))(t)
	}
	f.begun(t, newTask("waiting"))
	if _, _, err := f.Begin(t.Context(), newTask("left"), true, 0); err != nil {
		t.Fatal(err)
	}
	must(f.AddCode(t.Context(), "ref", "", time.Hour))(t)
	f.exec(t, `update xiaoqu_sync.agent_tasks set ended_at = ended_at - interval '2 hours', due_at = due_at - interval '2 hours', created_at = created_at - interval '2 hours' where key <> 'new'`)
	if n := must(f.Sweep(t.Context(), time.Hour))(t); n != 2 {
		t.Errorf("%d removed", n)
	}
	const left = `select concat_ws(' ', (select string_agg(key, ',' order by key) from xiaoqu_sync.agent_tasks), (select count(*) from xiaoqu_sync.agent_events),
		(select count(*) from xiaoqu_sync.agent_documents), (select count(*) from xiaoqu_sync.agent_codes))`
	if got := value[string](t, f, left); got != "new,waiting 1 1 1" {
		t.Error(got)
	}
	f.exec(t, "update xiaoqu_sync.agent_documents set expires_at = now() - interval '1 second'; update xiaoqu_sync.agent_codes set expires_at = now() - interval '1 second'")
	must(f.Sweep(t.Context(), time.Hour))(t)
	if got := value[string](t, f, left); got != "new,waiting 1 0 0" {
		t.Error(got)
	}
}
