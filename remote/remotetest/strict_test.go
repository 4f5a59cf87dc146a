package remotetest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// breach is something that a client may not do, and how it is recorded.
type breach struct {
	do   func(*client, *remotetest.Server)
	want string
}

func TestBreachesOfTheHeadersAreRecorded(t *testing.T) {
	del := func(name string) func(*client, *remotetest.Server) {
		return func(c *client, _ *remotetest.Server) {
			c.edit = func(r *http.Request) { r.Header.Del(name) }
			c.call("integration.context.get", `{}`)
		}
	}
	set := func(name, value string) func(*client, *remotetest.Server) {
		return func(c *client, _ *remotetest.Server) {
			c.edit = func(r *http.Request) { r.Header.Set(name, value) }
			c.call("integration.context.get", `{}`)
		}
	}
	areRecorded(t, map[string]breach{
		"no authorization":    {del("Authorization"), "Authorization missing"},
		"key as token":        {set("Authorization", "Bearer xqok-1"), "Authorization wrong"},
		"no content type":     {del("Content-Type"), "Content-Type missing"},
		"content type wrong":  {set("Content-Type", "text/plain"), "Content-Type wrong"},
		"no accept":           {del("Accept"), "Accept missing"},
		"accept json only":    {set("Accept", "application/json"), "Accept wrong"},
		"no protocol version": {del("MCP-Protocol-Version"), "MCP-Protocol-Version missing"},
		"protocol version":    {set("MCP-Protocol-Version", "2025-03-26"), "MCP-Protocol-Version wrong"},
		"no schema version":   {del("X-Mcp-Schema-Version"), "X-Mcp-Schema-Version missing"},
		"schema version":      {set("X-Mcp-Schema-Version", "1"), "X-Mcp-Schema-Version wrong"},
		"no session":          {del("Mcp-Session-Id"), "Mcp-Session-Id missing"},
		"unknown session":     {set("Mcp-Session-Id", "sess-x"), "unknown session"},
		"header twice": {func(c *client, _ *remotetest.Server) {
			c.edit = func(r *http.Request) { r.Header.Add("X-Mcp-Schema-Version", "2") }
			c.call("integration.context.get", `{}`)
		}, "sent 2 times"},
		"initialize": {func(c *client, _ *remotetest.Server) {
			c.edit = func(r *http.Request) { r.Header.Del("X-Mcp-Schema-Version") }
			c.rpc("initialize", `{"protocolVersion":"2025-06-18"}`)
		}, "initialize"},
		"protocol asked for": {func(c *client, _ *remotetest.Server) { c.rpc("initialize", `{"protocolVersion":"2024-11-05"}`) }, "another protocol version"},
		"DELETE": {func(c *client, _ *remotetest.Server) {
			c.edit = func(r *http.Request) { r.Header.Del("MCP-Protocol-Version") }
			c.send(http.MethodDelete, "")
		}, "DELETE"},
	})
}

func TestBreachesOfTheProtocolAreRecorded(t *testing.T) {
	call := func(tool, args string) func(*client, *remotetest.Server) {
		return func(c *client, _ *remotetest.Server) { c.call(tool, args) }
	}
	areRecorded(t, map[string]breach{
		"session after its end": {func(c *client, _ *remotetest.Server) {
			c.send(http.MethodDelete, "")
			c.call("integration.context.get", `{}`)
		}, "unknown session"},
		"GET":                {func(c *client, _ *remotetest.Server) { c.send(http.MethodGet, "") }, "method is not"},
		"batch":              {func(c *client, _ *remotetest.Server) { c.send(http.MethodPost, `[]`) }, "not one JSON-RPC"},
		"other path":         {func(c *client, _ *remotetest.Server) { c.url += "/x"; c.send(http.MethodPost, `{}`) }, "unknown path"},
		"request without id": {func(c *client, _ *remotetest.Server) { c.send(http.MethodPost, `{"jsonrpc":"2.0","method":"ping"}`) }, "without an id"},
		"not initialized": {func(c *client, _ *remotetest.Server) {
			c.session = c.rpc("initialize", `{"protocolVersion":"2025-06-18"}`).header.Get("Mcp-Session-Id")
			c.rpc("tools/list", `{}`)
		}, "before notifications/initialized"},
		"tenant_id":        {call("users.changes.list", `{"tenant_id":"1"}`), "forbidden argument tenant_id"},
		"scope":            {call("integration.context.get", `{"scope":"1"}`), "forbidden argument scope"},
		"extra argument":   {call("users.changes.list", `{"since":1}`), "argument since"},
		"context argument": {call("integration.context.get", `{"limit":1}`), "argument limit"},
		"limit":            {call("users.changes.list", `{"limit":201}`), "limit 201"},
		"cursor of another round": {func(c *client, s *remotetest.Server) {
			p, _ := c.changes("users", nil, nil, 1)
			_, token, _ := c.drain("users", nil, 0)
			c.changes("users", &token, p.NextCursor, 1)
		}, "another round"},
		"ensure without key": {func(_ *client, s *remotetest.Server) { ensure(t, s, "", serviceBody) }, "X-Open-Key"},
	})
}

func areRecorded(t *testing.T, breaches map[string]breach) {
	t.Helper()
	for name, tc := range breaches {
		t.Run(name, func(t *testing.T) {
			s := remotetest.Start(t, remotetest.Options{})
			s.Seed(3, 0, 0)
			c := connect(t, s)
			if b := s.Breaches(); len(b) != 0 {
				t.Fatalf("breaches of a client that has none: %q", b)
			}
			tc.do(c, s)
			if b := s.Breaches(); len(b) != 1 || !strings.Contains(b[0], tc.want) {
				t.Errorf("breaches %q, want one with %q", b, tc.want)
			}
			if b := fmt.Sprint(s.Breaches()); strings.Contains(b, c.token) || strings.Contains(b, "xqok-") {
				t.Errorf("a secret in %s", b)
			}
		})
	}
}

func TestWhatAClientCannotKnowIsNoBreach(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{Strict: true})
	s.Seed(3, 0, 0)
	c := connect(t, s)
	p, _ := c.changes("users", nil, nil, 1)
	s.ExpireTokens()
	if _, a := c.changes("users", nil, p.NextCursor, 1); a.envelope.Error.Code != remotetest.SyncCursorExpired {
		t.Errorf("expired: %s", a.body)
	}
	s.DropSessions()
	s.RevokeTokens()
	if a := c.call("integration.context.get", `{}`); a.status != 401 {
		t.Errorf("revoked: %d", a.status)
	}
}

// recorder stands for a test that is to fail.
type recorder struct {
	failed  []string
	cleanup []func()
}

func (r *recorder) Helper() {}
func (r *recorder) Fatalf(format string, a ...any) {
	r.failed = append(r.failed, fmt.Sprintf(format, a...))
}
func (r *recorder) Cleanup(f func()) { r.cleanup = append(r.cleanup, f) }

func TestStrictFailsTheTestAtItsEnd(t *testing.T) {
	for _, strict := range []bool{true, false} {
		r := &recorder{}
		s := remotetest.Start(r, remotetest.Options{Strict: strict})
		c := connect(t, s)
		c.call("users.changes.list", `{"scope":"x"}`)
		for _, f := range r.cleanup {
			f()
		}
		if (len(r.failed) == 1) != strict {
			t.Errorf("strict %v: %q", strict, r.failed)
		}
		if _, err := c.try(http.MethodPost, `{}`); err == nil {
			t.Error("the server outlives its test")
		}
	}
}

func TestArgumentsThatAreRefused(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	c := connect(t, s)
	for args, want := range map[string]string{
		`{"tenant_id":"1"}`:                remotetest.PermissionDenied,
		`{"scope":null}`:                   remotetest.PermissionDenied,
		`{"since":1}`:                      remotetest.InvalidArgument,
		`{"limit":0}`:                      remotetest.InvalidArgument,
		`{"limit":-1}`:                     remotetest.InvalidArgument,
		`{"limit":"1"}`:                    remotetest.InvalidArgument,
		`{"syncToken":1}`:                  remotetest.InvalidArgument,
		`[1]`:                              remotetest.InvalidArgument,
		`{"syncToken":null}`:               "",
		`{"syncToken":null,"cursor":null}`: "",
		`{}`:                               "",
	} {
		if a := c.call("users.changes.list", args); a.envelope.Error.Code != want {
			t.Errorf("%s: %q, want %q", args, a.envelope.Error.Code, want)
		}
	}
	if a := c.call("integration.context.get", `{"x":1}`); a.envelope.Error.Code != remotetest.InvalidArgument {
		t.Errorf("context with arguments: %s", a.body)
	}
	if a := c.call("no.such.tool", `{}`); a.envelope.Error.Code != remotetest.PermissionDenied {
		t.Errorf("unknown tool: %s", a.body)
	}
}

func TestQuotaClassesAreApart(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	c := connect(t, s)
	s.SetQuota(2, -1)
	for i, want := range []string{"", "", remotetest.RateLimited} {
		if a := c.call("users.changes.list", `{}`); a.envelope.Error.Code != want {
			t.Errorf("call %d: %s", i, a.body)
		}
	}
	if a := c.call("integration.context.get", `{}`); a.rpc.Result.IsError {
		t.Errorf("the other class: %s", a.body)
	}
	s.SetQuota(-1, 0)
	if a := c.call("users.changes.list", `{}`); a.rpc.Result.IsError {
		t.Errorf("filled up: %s", a.body)
	}
}
