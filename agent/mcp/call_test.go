package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// outputs are the tools' output schemas as the platform has them.
func outputs(t testing.TB, p *platform) map[string]*jsonschema.Schema {
	t.Helper()
	var answer struct {
		Result struct {
			Tools []struct {
				Name   string
				Output json.RawMessage `json:"outputSchema"`
			}
		}
	}
	if err := json.Unmarshal(p.ask(t, "tools/list", "").body, &answer); err != nil {
		t.Fatal(err)
	}
	all := map[string]*jsonschema.Schema{}
	for _, tool := range answer.Result.Tools {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(tool.Output))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource(tool.Name, doc); err != nil {
			t.Fatal(err)
		}
		all[tool.Name] = c.MustCompile(tool.Name)
	}
	return all
}

// fits checks an envelope against its tool's output schema.
func fits(t testing.TB, schema *jsonschema.Schema, envelope []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(envelope))
	if err == nil {
		err = schema.Validate(v)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, envelope)
	}
}

// envelope is the structuredContent of an answer, byte for byte.
func (r reply) envelope(t testing.TB) []byte {
	t.Helper()
	var answer struct {
		Result struct{ StructuredContent json.RawMessage }
	}
	if err := json.Unmarshal(r.body, &answer); err != nil || len(answer.Result.StructuredContent) == 0 {
		t.Fatalf("no envelope: %d %s", r.status, r.body)
	}
	return answer.Result.StructuredContent
}

func TestEveryToolAnswersAsItPromises(t *testing.T) {
	s := open(t)
	s.put(t, "c-1", `{"id":"c-1","rent":1.10,"big":9007199254740993123,"tag":"<b>&"}`)
	p := newPlatform(s).shake(t)
	schemas := outputs(t, p)
	for tool, arguments := range map[string]string{
		"mirror_status": `{}`, "mirror_freshness": `{"resources":["users"]}`, "records_get": `{"resource":"contracts","id":"c-1"}`,
		"records_search": `{"resource":"contracts","limit":2}`, "changes_list": `{"resource":"contracts","after":0}`, "quarantine_list": `{"resource":"users"}`,
		"sync_run": `{}`, "verify_run": `{}`, "rebuild_plan": `{}`, "rebuild_apply": `{"resource":"users","plan":"p"}`, "rebuild_resolve": `{"resource":"users"}`,
	} {
		r := p.call(t, "inv-"+tool, tool, arguments)
		o := r.outcome(t)
		want := "completed"
		if c := s.service.Capability(tool); c.Async {
			want = "accepted"
		}
		if o.Body.Status != want || o.IsError || o.Body.Artifacts == nil || len(o.Content) != 1 || o.Content[0].Text != o.Body.Summary || o.Body.Summary == "" {
			t.Errorf("%s: %s", tool, r.body)
		}
		fits(t, schemas[tool], r.envelope(t))
	}
}

func TestAnAnswerKeepsEveryDigit(t *testing.T) {
	s := open(t)
	s.put(t, "c-1", `{"id":"c-1","rent":1.10,"big":9007199254740993123,"tag":"<b>&"}`)
	p := newPlatform(s).shake(t)
	bare, err := s.service.Do(t.Context(), agent.Call{Caller: agent.Caller{Scopes: []string{"*"}}, Capability: "records.get", Input: []byte(`{"resource":"contracts","id":"c-1"}`)})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second is the answer that was kept
		r := p.call(t, "same", "records_get", `{"resource":"contracts","id":"c-1"}`)
		if got := r.outcome(t).Body.Data; !bytes.Equal(got, bare.Result.Data) {
			t.Errorf("%s\nis not what the catalogue gives\n%s", got, bare.Result.Data)
		}
		for _, want := range []string{"1.10", "9007199254740993123"} {
			if !strings.Contains(string(r.body), want) {
				t.Errorf("%s is not in %s", want, r.body)
			}
		}
	}
}

func TestOneInvocationHasOneAnswer(t *testing.T) {
	s := open(t)
	s.put(t, "c-1", `{"id":"c-1","v":1}`)
	p := newPlatform(s).shake(t)
	first := p.call(t, "i1", "records_get", `{"resource":"contracts","id":"c-1"}`).envelope(t)
	if _, err := s.sql.Exec(t.Context(), `update xiaoqu.contracts set record = '{"id":"c-1","v":2}'`); err != nil {
		t.Fatal(err)
	}
	again := newPlatform(s).shake(t).call(t, "i1", "records_get", `{ "resource":"contracts", "id":"c-1" }`).envelope(t)
	if !bytes.Equal(first, again) {
		t.Errorf("%s\nand then\n%s", first, again)
	}
	if fresh := p.call(t, "i2", "records_get", `{"resource":"contracts","id":"c-1"}`).envelope(t); bytes.Equal(first, fresh) {
		t.Error("another invocation got the old answer")
	}
	for tool, arguments := range map[string]string{"records_get": `{"resource":"contracts","id":"c-2"}`, "mirror_status": `{}`} {
		if code, name := p.call(t, "i1", tool, arguments).fault(t); code != -32600 || name != "key_reused" {
			t.Errorf("another request under this invocation: %d %s", code, name)
		}
	}
}

func TestATaskIsAcceptedOnce(t *testing.T) {
	s := open(t)
	p := newPlatform(s).shake(t)
	ids := map[string]bool{}
	for range 3 {
		o := p.call(t, "i1", "rebuild_plan", `{"resources":["users"]}`).outcome(t)
		var data struct{ TaskID string }
		if err := json.Unmarshal(o.Body.Data, &data); err != nil || o.Body.Status != "accepted" || data.TaskID == "" {
			t.Fatalf("%+v", o)
		}
		ids[data.TaskID] = true
	}
	if len(ids) != 1 {
		t.Errorf("tasks %v", ids)
	}
}

func TestACancelledTaskSaysSo(t *testing.T) {
	s := open(t)
	p := newPlatform(s).shake(t)
	p.call(t, "i1", "sync_run", `{}`).outcome(t)
	task, err := s.service.TaskOf(t.Context(), "mcp", "", "i1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.service.Cancel(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	r := p.call(t, "i1", "sync_run", `{}`)
	if o := r.outcome(t); o.Body.Status != "cancelled" || o.IsError {
		t.Errorf("%s", r.body)
	}
	fits(t, outputs(t, p)["sync_run"], r.envelope(t))
}

func TestAnAnswerIsBounded(t *testing.T) {
	s := open(t, func(st *stage) { st.door.MaxAnswer = 4096 })
	s.put(t, "c-1", fmt.Sprintf(`{"id":"c-1","text":%q}`, strings.Repeat("x", 5000)))
	p := newPlatform(s).shake(t)
	r := p.call(t, "i1", "records_get", `{"resource":"contracts","id":"c-1"}`)
	o := r.outcome(t)
	if o.Body.Status != "failed" || !o.IsError || !strings.Contains(string(o.Body.Data), `"errorCode":"answer_too_large"`) || len(r.body) > 4096 {
		t.Errorf("%.500s", r.body)
	}
	fits(t, outputs(t, p)["records_get"], r.envelope(t))
}

func TestTooManyCallsAtOnceAreTurnedAway(t *testing.T) {
	s := open(t, func(st *stage) { st.door.MaxCalls = 1 })
	p := newPlatform(s).shake(t)
	// Bodies that do not end hold all places of those that come.
	var ends []func()
	for range 4 {
		ends = append(ends, hang(t, p))
	}
	busy := func() {
		for _, end := range ends {
			end()
		}
	}
	r := p.ask(t, "ping", "")
	if r.status != 429 || r.header.Get("Retry-After") != "1" {
		t.Errorf("%d %v %s", r.status, r.header, r.body)
	}
	busy()
	for status := 429; status == 429; { // the place is given back soon
		status = p.ask(t, "ping", "").status
	}
}

func TestAFailureOfTheWorkIsAnAnswer(t *testing.T) {
	s := open(t)
	s.run(t)
	p := newPlatform(s).shake(t)
	schema := outputs(t, p)["rebuild_apply"]
	p.call(t, "i1", "rebuild_apply", `{"resource":"users","plan":"p-0"}`).outcome(t)
	s.work(t, &agent.Failure{Class: agent.Permanent, Code: "plan_outdated", Message: "the mirror has moved since", RequestID: "r-9", Suggestions: []string{"plan again"}})
	got := wait(t, s.platform.told)
	fits(t, schema, got.body)
	want := `"data":{"errorCode":"plan_outdated","errorClass":"permanent","message":"the mirror has moved since","retryable":false,"suggestions":["plan again"],"requestId":"r-9","taskId":"task_`
	if !strings.Contains(string(got.body), want) || !strings.HasPrefix(string(got.body), `{"status":"failed","summary":"the mirror has moved since"`) {
		t.Errorf("%s", got.body)
	}
	// The same invocation later gets what was told.
	if again := p.call(t, "i1", "rebuild_apply", `{"resource":"users","plan":"p-0"}`); !bytes.Equal(again.envelope(t), got.body) || !again.outcome(t).IsError {
		t.Errorf("%s", again.body)
	}
}
