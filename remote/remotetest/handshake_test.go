package remotetest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

func toolNames(a answer) []string {
	var names []string
	for _, t := range a.rpc.Result.Tools {
		names = append(names, t.Name)
	}
	return names
}

func TestHandshakeAndDiscovery(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{Strict: true, ExtraResources: []string{"payments"}})
	c := connect(t, s)
	a := c.rpc("tools/list", `{}`)
	want := "[integration.context.get users.changes.list properties.changes.list contracts.changes.list payments.changes.list]"
	if got := fmt.Sprint(toolNames(a)); got != want {
		t.Errorf("tools %s, want %s", got, want)
	}
	for _, tool := range a.rpc.Result.Tools {
		if !strings.Contains(string(tool.InputSchema), `"additionalProperties":false`) {
			t.Errorf("%s: schema %s", tool.Name, tool.InputSchema)
		}
	}
	if ct := a.header.Get("Content-Type"); ct != "text/event-stream" || !strings.HasPrefix(a.body, "event: message\ndata: {") {
		t.Errorf("not SSE: %s %q", ct, a.body[:40])
	}
	if a := c.rpc("ping", `{}`); a.status != 200 || a.rpc.Error != nil {
		t.Errorf("ping: %s", a.body)
	}
	if a := c.rpc("resources/list", `{}`); a.rpc.Error == nil || a.rpc.Error.Code != -32601 {
		t.Errorf("unknown method: %s", a.body)
	}
	if a := c.send(http.MethodDelete, ""); a.status != http.StatusNoContent {
		t.Errorf("DELETE: %d", a.status)
	}
	if got := s.Stats(); got.Handshakes != 1 || got.Ensures != 1 || got.Calls["tools/list"] != 1 {
		t.Errorf("stats: %+v", got)
	}
}

func TestSessionsThatAreNotThere(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(*remotetest.Server, *client)
		v    remotetest.Variants
		want int
		text string
	}{
		"dropped":        {do: func(s *remotetest.Server, _ *client) { s.DropSessions() }, want: 404},
		"dropped, 400":   {do: func(s *remotetest.Server, _ *client) { s.DropSessions() }, v: remotetest.Variants{LostSession400: true}, want: 400, text: "session"},
		"ended":          {do: func(_ *remotetest.Server, c *client) { c.send(http.MethodDelete, "") }, want: 404},
		"never given":    {do: func(_ *remotetest.Server, c *client) { c.session = "sess-other" }, want: 404},
		"header missing": {do: func(_ *remotetest.Server, c *client) { c.session = "" }, want: 404},
	} {
		t.Run(name, func(t *testing.T) {
			s := remotetest.Start(t, remotetest.Options{Variants: tc.v})
			c := connect(t, s)
			tc.do(s, c)
			if a := c.call("integration.context.get", `{}`); a.status != tc.want || !strings.Contains(a.body, tc.text) {
				t.Errorf("%d %q", a.status, a.body)
			}
			if c.handshake(); c.call("integration.context.get", `{}`).envelope.Data == nil {
				t.Error("a new handshake does not help")
			}
		})
	}
}

func TestGetIsNotAllowed(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	c := connect(t, s)
	if a := c.send(http.MethodGet, ""); a.status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", a.status)
	}
}

func TestToolsListTooEarlyPagedAndHidden(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{Variants: remotetest.Variants{EmptyLists: 1, ToolsPerPage: 3}})
	c := connect(t, s)
	if a := c.rpc("tools/list", `{}`); len(a.rpc.Result.Tools) != 0 || a.rpc.Result.Content != nil {
		t.Errorf("first list is not empty: %s", a.body)
	}
	a := c.rpc("tools/list", `{}`)
	b := c.rpc("tools/list", fmt.Sprintf(`{"cursor":%q}`, a.rpc.Result.NextCursor))
	if len(a.rpc.Result.Tools) != 3 || len(b.rpc.Result.Tools) != 1 || b.rpc.Result.NextCursor != "" {
		t.Errorf("pages: %v, %v", toolNames(a), toolNames(b))
	}
	s.Vary(func(v *remotetest.Variants) { v.EmptyLists, v.EmptyListBody, v.ToolsPerPage = 4, true, 0 })
	if a := c.rpc("tools/list", `{}`); a.status != 200 || a.body != "" {
		t.Errorf("no empty body: %q", a.body)
	}
	s.HideTool("users.changes.list")
	if a := c.rpc("tools/list", `{}`); fmt.Sprint(toolNames(a)) != "[integration.context.get properties.changes.list contracts.changes.list]" {
		t.Errorf("hidden tool: %v", toolNames(a))
	}
	if a := c.call("users.changes.list", `{}`); a.envelope.Error.Code != remotetest.PermissionDenied {
		t.Errorf("call of a hidden tool: %s", a.body)
	}
	if s.HideTool(); c.call("users.changes.list", `{}`).rpc.Result.IsError {
		t.Error("the tool stays hidden")
	}
}

func TestEveryFormOfAnAnswerCarriesTheSameMessage(t *testing.T) {
	forms := map[string]remotetest.Variants{
		"plain":              {},
		"json":               {JSONAnswer: true},
		"json, several":      {JSONAnswer: true, SSE: remotetest.SSEForm{SeveralDataLines: true}},
		"crlf":               {SSE: remotetest.SSEForm{CRLF: true}},
		"bom":                {SSE: remotetest.SSEForm{BOM: true}},
		"no space":           {SSE: remotetest.SSEForm{NoSpace: true}},
		"no event name":      {SSE: remotetest.SSEForm{NoEventName: true}},
		"no final blank":     {SSE: remotetest.SSEForm{NoFinalBlank: true}},
		"ids":                {SSE: remotetest.SSEForm{IDs: true}},
		"keep-alive":         {SSE: remotetest.SSEForm{KeepAlive: true}},
		"several data lines": {SSE: remotetest.SSEForm{SeveralDataLines: true}},
		"notification":       {SSE: remotetest.SSEForm{NotificationFirst: true}},
		"request":            {SSE: remotetest.SSEForm{RequestFirst: true}},
		"all": {SSE: remotetest.SSEForm{
			CRLF: true, BOM: true, NoSpace: true, IDs: true, KeepAlive: true, SeveralDataLines: true, NotificationFirst: true, RequestFirst: true,
		}},
		"content json": {ContentJSON: true},
	}
	bodies := map[string]string{}
	for name, v := range forms {
		t.Run(name, func(t *testing.T) {
			s := remotetest.Start(t, remotetest.Options{Strict: true, Variants: v})
			s.Seed(3, 0, 0)
			c := connect(t, s)
			p, a := c.changes("users", nil, nil, 0)
			if len(p.Records) != 3 || a.envelope.SchemaVersion != 2 || a.envelope.RequestID == "" {
				t.Fatalf("%q", a.body)
			}
			if name == "json, several" {
				return // there are no data lines to cut, so it is plain JSON
			}
			if bodies[a.body] != "" {
				t.Errorf("looks like %s", bodies[a.body])
			}
			bodies[a.body] = name
		})
	}
}

func TestEnvelopeShapes(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	s.Seed(1, 0, 0)
	c := connect(t, s)
	for name, tc := range map[string]struct {
		v      remotetest.Variants
		header string
		want   string
	}{
		"v2":             {header: "2", want: `{"schema_version":2,"request_id":"req-…","data":{"snapshot_id":…"records":[{…}]}}`},
		"no header":      {want: `{"request_id":"req-…","snapshot_id":…}`},
		"v1 always":      {header: "2", v: remotetest.Variants{V1Always: true}, want: `{"request_id":"req-…","snapshot_id":…}`},
		"id in data":     {header: "2", v: remotetest.Variants{RequestID: remotetest.RequestIDData}, want: `{"schema_version":2,"data":{"request_id":"req-…","snapshot_id":…}}`},
		"id in meta":     {header: "2", v: remotetest.Variants{RequestID: remotetest.RequestIDMeta}, want: `{"schema_version":2,"data":{"snapshot_id":…}}`},
		"id in header":   {header: "2", v: remotetest.Variants{RequestID: remotetest.RequestIDHeader}, want: `{"schema_version":2,"data":{"snapshot_id":…}}`},
		"no id":          {header: "2", v: remotetest.Variants{RequestID: remotetest.RequestIDAbsent}, want: `{"schema_version":2,"data":{"snapshot_id":…}}`},
		"list named":     {header: "2", v: remotetest.Variants{ListName: "{resource}"}, want: `{…"users":[{…}]}}`},
		"null cursor":    {header: "2", want: `{…"has_more":false,"next_cursor":null,"next_sync_token":"…}`},
		"without cursor": {header: "2", v: remotetest.Variants{AbsentNulls: true}, want: `{…"has_more":false,"next_sync_token":"…}`},
	} {
		s.Vary(func(v *remotetest.Variants) { *v = tc.v })
		c.edit = func(r *http.Request) {
			r.Header.Del("X-Mcp-Schema-Version")
			if tc.header != "" {
				r.Header.Set("X-Mcp-Schema-Version", tc.header)
			}
		}
		a := c.call("users.changes.list", `{"syncToken":null}`)
		if !like(string(a.rpc.Result.StructuredContent), tc.want) {
			t.Errorf("%s: %s is not %s", name, a.rpc.Result.StructuredContent, tc.want)
		}
		if (a.rpc.Result.Meta.RequestID != "") != (tc.v.RequestID == remotetest.RequestIDMeta) ||
			(a.header.Get("X-Request-Id") != "") != (tc.v.RequestID == remotetest.RequestIDHeader) {
			t.Errorf("%s: request_id in the wrong place: %s", name, a.body)
		}
	}
}

func TestContextForms(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	c := connect(t, s)
	for name, tc := range map[string]struct {
		c    remotetest.Context
		want string
	}{
		"default":    {remotetest.Context{}, `{"principal_type":"tenant_service","capabilities":["QUERY","SYNC"],"tenant_id":"t-1001"}`},
		"person":     {remotetest.Context{PrincipalType: "user_delegated"}, `{"principal_type":"user_delegated",…}`},
		"capability": {remotetest.Context{CapabilityKey: "capability", Capability: []byte(`"QUERY,SYNC"`)}, `{…"capability":"QUERY,SYNC","tenant_id":"t-1001"}`},
		"tenantId":   {remotetest.Context{TenantForm: remotetest.TenantCamel, Tenant: []byte(`12345678901234567890`)}, `{…,"tenantId":12345678901234567890}`},
		"tenant.id":  {remotetest.Context{TenantForm: remotetest.TenantNested}, `{…,"tenant":{"id":"t-1001","name":"…"}}`},
		"no tenant":  {remotetest.Context{TenantForm: remotetest.TenantAbsent}, `{…"SYNC"]}`},
		"raw":        {remotetest.Context{Raw: []byte(`{"x":1}`)}, `{"x":1}`},
	} {
		s.SetContext(tc.c)
		if a := c.call("integration.context.get", `{}`); !like(string(a.envelope.Data), tc.want) {
			t.Errorf("%s: %s is not %s", name, a.envelope.Data, tc.want)
		}
	}
	s.SetContext(remotetest.Context{})
	c.token = tokenOf(t, s, `{"mobile":"13800001111"}`)
	if a := c.call("integration.context.get", `{}`); !like(string(a.envelope.Data), `{"principal_type":"user_delegated","capabilities":["QUERY"],…}`) {
		t.Errorf("personal token: %s", a.envelope.Data)
	}
}

func TestLatencyAndHooksComeBeforeTheAnswer(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	s.Seed(1, 0, 0)
	c := connect(t, s)
	var seen []remotetest.Call
	s.OnCall(func(k remotetest.Call) {
		seen = append(seen, k)
		if k.Resource == "users" {
			s.Put("users", "42", `{}`) // a hook may change the data of the page it holds up
		}
	})
	s.Latency(20 * time.Millisecond)
	s.PageDelay(30 * time.Millisecond)
	begin := time.Now()
	p, a := c.changes("users", nil, nil, 0)
	if d := time.Since(begin); d < 50*time.Millisecond {
		t.Errorf("answered after %v", d)
	}
	if len(p.Records) != 2 || len(seen) != 1 {
		t.Errorf("hook: %d records, %d calls", len(p.Records), len(seen))
	}
	last := s.Calls()[len(s.Calls())-1]
	if last.Tool != "users.changes.list" || last.Page != 1 || last.RequestID != a.envelope.RequestID || string(last.Args) != `{"syncToken":null}` {
		t.Errorf("log: %+v", last)
	}
}
