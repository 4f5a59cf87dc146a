package mcp_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

func TestThePlatformsSequenceIsAnswered(t *testing.T) {
	s := open(t)
	for _, accept := range []string{"application/json, text/event-stream", "application/json", "text/event-stream", "*/*"} {
		t.Run(accept, func(t *testing.T) {
			p := newPlatform(s)
			p.accept = accept
			p.shake(t)
			if p.version != "2025-03-26" {
				t.Errorf("version %s", p.version)
			}
			r := p.ask(t, "ping", "")
			if want := `{"jsonrpc":"2.0","id":2,"result":{}}`; string(r.body) != want {
				t.Errorf("ping: %s", r.body)
			}
			kind := "application/json"
			if accept == "text/event-stream" {
				kind = accept
			}
			if got := r.header.Get("Content-Type"); got != kind {
				t.Errorf("answered as %s", got)
			}
		})
	}
}

func TestEveryVersionWithSessionsIsSpoken(t *testing.T) {
	s := open(t)
	for asked, want := range map[string]string{"2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "2024-11-05": "2025-11-25", "2099-01-01": "2025-11-25"} {
		r := newPlatform(s).ask(t, "initialize", `{"protocolVersion":"`+asked+`","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`)
		result, _ := decoded(t, r.body)["result"].(map[string]any)
		if got := result["protocolVersion"]; got != want {
			t.Errorf("%s was answered with %v", asked, got)
		}
		if diff := cmp.Diff(map[string]any{"tools": map[string]any{}}, result["capabilities"]); diff != "" {
			t.Error(diff)
		}
	}
}

func TestEveryToolIsWhole(t *testing.T) {
	s := open(t)
	r := newPlatform(s).shake(t).ask(t, "tools/list", `{}`)
	var answer struct {
		Result struct{ Tools []map[string]any }
	}
	if err := json.Unmarshal(r.body, &answer); err != nil {
		t.Fatal(err)
	}
	if got, want := len(answer.Result.Tools), len(s.service.Capabilities()); got != want || got != 11 {
		t.Fatalf("%d tools, %d capabilities", got, want)
	}
	for _, tool := range answer.Result.Tools {
		c := s.service.Capability(tool["name"].(string))
		if c == nil || tool["x-agentuse-id"] != c.ID || strings.Contains(tool["name"].(string), ".") {
			t.Fatalf("tool %v is no capability", tool["name"])
		}
		want := []string{
			"_meta", "annotations", "description", "inputSchema", "name", "outputSchema", "title",
			"x-agentuse-capabilities", "x-agentuse-id", "x-agentuse-idempotent", "x-agentuse-risk-level",
		}
		if diff := cmp.Diff(want, names(tool)); diff != "" {
			t.Errorf("%s: %s", c.ID, diff)
		}
		meta := tool["_meta"].(map[string]any)
		want = []string{"xiaoya/artifactTypes", "xiaoya/executionMode", "xiaoya/pricePoints", "xiaoya/requiredScopes", "xiaoya/timeoutSeconds", "xiaoya/version"}
		if diff := cmp.Diff(want, names(meta)); diff != "" {
			t.Errorf("%s: %s", c.ID, diff)
		}
		seconds := meta["xiaoya/timeoutSeconds"].(float64)
		if meta["xiaoya/pricePoints"] != 0.0 || seconds < 1 || seconds > 3600 || (meta["xiaoya/executionMode"] == "async") != c.Async {
			t.Errorf("%s: %v", c.ID, meta)
		}
		hints := tool["annotations"].(map[string]any)
		if hints["readOnlyHint"] == c.Write || hints["destructiveHint"] != (c.Risk == agent.High) || len(hints) != 4 {
			t.Errorf("%s: %v", c.ID, hints)
		}
	}
}

func TestAScopeHidesWhatItDoesNotAllow(t *testing.T) {
	s := open(t, func(st *stage) { st.door.Scopes = []string{"mirror.status"} })
	p := newPlatform(s).shake(t)
	if r := p.ask(t, "tools/list", ""); strings.Count(string(r.body), `"inputSchema"`) != 1 || !strings.Contains(string(r.body), `"mirror_status"`) {
		t.Errorf("%s", r.body)
	}
	if code, _ := p.call(t, "i1", "sync_run", `{}`).fault(t); code != -32601 {
		t.Errorf("a hidden tool: %d", code)
	}
}

func TestASessionEnds(t *testing.T) {
	s := open(t, func(st *stage) { st.door.MaxSessions = 2 })
	first, second := newPlatform(s).shake(t), newPlatform(s).shake(t)
	if r := second.send(t, http.MethodDelete, "", nil); r.status != 204 {
		t.Errorf("DELETE: %d", r.status)
	}
	if r := second.ask(t, "ping", ""); r.status != 404 {
		t.Errorf("after DELETE: %d", r.status)
	}
	// The oldest makes room.
	for range 2 {
		newPlatform(s).shake(t)
	}
	if r := first.ask(t, "ping", ""); r.status != 404 {
		t.Errorf("the oldest: %d", r.status)
	} else if code, _ := r.fault(t); code != -32600 {
		t.Errorf("code %d", code)
	}
}

func TestAnIdleSessionEnds(t *testing.T) {
	s := open(t, func(st *stage) { st.door.IdleTime = 50 * time.Millisecond })
	p := newPlatform(s).shake(t)
	// The stream that a session may keep open ends with it.
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url, nil)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Mcp-Session-Id", p.session)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
	}
	if r := p.ask(t, "ping", ""); r.status != 404 {
		t.Errorf("an idle session: %d", r.status)
	}
}

func TestStrangeHostsAndOriginsAreRefused(t *testing.T) {
	s := open(t, func(st *stage) {
		st.door.Origins, st.door.Hosts = []string{"https://app.example.com"}, []string{"mirror.example.com"}
	})
	p := newPlatform(s)
	body := p.request("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`)
	for name, c := range map[string]struct {
		headers map[string]string
		want    int
	}{
		"own name":         {nil, 200},
		"localhost":        {map[string]string{"Host": "localhost:1"}, 200},
		"behind a proxy":   {map[string]string{"Host": "mirror.example.com"}, 200},
		"rebound name":     {map[string]string{"Host": "evil.example.com"}, 403},
		"rebound with dot": {map[string]string{"Host": "127.0.0.1.evil.example.com"}, 403},
		"named origin":     {map[string]string{"Origin": "https://app.example.com"}, 200},
		"other origin":     {map[string]string{"Origin": "https://evil.example.com"}, 403},
		"null origin":      {map[string]string{"Origin": "null"}, 403},
	} {
		if r := p.send(t, http.MethodPost, body, c.headers); r.status != c.want {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
}
