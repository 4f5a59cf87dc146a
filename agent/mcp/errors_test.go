package mcp_test

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hang begins a request whose body does not end until the function is called.
func hang(t testing.TB, p *platform) (end func()) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(p.url, "http://"), "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n")
	// The server says "continue" when the handler reads, and so has its place.
	if _, err := c.Read(make([]byte, 25)); err != nil {
		t.Fatal(err)
	}
	return func() { c.Close() }
}

// wrong is a request that must not do anything, and what it must be answered with.
type wrong struct {
	name    string
	method  string
	body    string
	headers map[string]string
	signed  bool
}

func wrongs(p *platform) []wrong {
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + params + `}`
	}
	return []wrong{
		{name: "cut JSON", body: `{"jsonrpc":"2.0","id":1,`},
		{name: "no JSON", body: `hello`},
		{name: "empty", body: ``},
		{name: "two messages", body: `{"jsonrpc":"2.0","id":1,"method":"ping"}{}`},
		{name: "a name twice", body: `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`},
		{name: "broken UTF-8", body: "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xffing\"}"},
		{name: "batch", body: `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`},
		{name: "empty batch", body: `[]`},
		{name: "a text", body: `"ping"`},
		{name: "version 1", body: `{"jsonrpc":"1.0","id":1,"method":"ping"}`},
		{name: "no version", body: `{"id":1,"method":"ping"}`},
		{name: "no method", body: `{"jsonrpc":"2.0","id":1}`},
		{name: "method is a number", body: `{"jsonrpc":"2.0","id":1,"method":5}`},
		{name: "method in capitals", body: `{"jsonrpc":"2.0","id":1,"METHOD":"ping"}`},
		{name: "id null", body: `{"jsonrpc":"2.0","id":null,"method":"ping"}`},
		{name: "id a fraction", body: `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`},
		{name: "id an object", body: `{"jsonrpc":"2.0","id":{},"method":"ping"}`},
		{name: "params a list", body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}`},
		{name: "unknown method", body: `{"jsonrpc":"2.0","id":"a","method":"resources/list"}`},
		{name: "method of another protocol", body: `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`},
		{name: "initialize without version", body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, headers: map[string]string{"Mcp-Session-Id": "-"}},
		{name: "list with a cursor", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`},
		{name: "call without a name", body: call(`{"arguments":{}}`), signed: true},
		{name: "call with a list", body: call(`{"name":"mirror_status","arguments":[]}`), signed: true},
		{name: "unknown tool", body: call(`{"name":"drop_tables"}`), signed: true},
		{name: "a tool by its id", body: call(`{"name":"mirror.status"}`), signed: true},
		{name: "missing argument", body: call(`{"name":"records_get","arguments":{"resource":"users"}}`), signed: true},
		{name: "unknown argument", body: call(`{"name":"mirror_status","arguments":{"tenant_id":"t"}}`), signed: true},
		{name: "wrong argument", body: call(`{"name":"records_search","arguments":{"resource":"users","limit":1e9}}`), signed: true},
		{name: "unknown column", body: call(`{"name":"records_search","arguments":{"resource":"users","filters":[{"column":"rent","op":"eq","value":1}]}}`), signed: true},
		{name: "call without context", body: call(`{"name":"mirror_status"}`)},
		{name: "unknown session", body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, headers: map[string]string{"Mcp-Session-Id": "nobody"}},
		{name: "no session", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, headers: map[string]string{"Mcp-Session-Id": "-"}},
		{name: "a second handshake", body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`},
		{name: "unknown protocol", body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, headers: map[string]string{"MCP-Protocol-Version": "1999-01-01"}},
		{name: "protocol without sessions", body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, headers: map[string]string{"MCP-Protocol-Version": "2026-07-28"}},
		{name: "not JSON by its type", body: `{}`, headers: map[string]string{"Content-Type": "text/plain"}},
		{name: "too large", body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 600<<10) + `"}}`},
		{name: "PUT", method: http.MethodPut, body: `{}`},
		{name: "GET without a session", method: http.MethodGet, headers: map[string]string{"Mcp-Session-Id": "-"}},
		{name: "DELETE without a session", method: http.MethodDelete, headers: map[string]string{"Mcp-Session-Id": "-"}},
	}
}

// The golden file is the contract: status, and the body byte for byte.
func TestEveryErrorHasItsCode(t *testing.T) {
	s := open(t)
	p := newPlatform(s).shake(t)
	var out bytes.Buffer
	for i, c := range wrongs(p) {
		headers := map[string]string{}
		if c.signed {
			headers = p.context(fmt.Sprintf("i-%d", i), c.body)
		}
		for k, v := range c.headers {
			headers[k] = v
		}
		method := c.method
		if method == "" {
			method = http.MethodPost
		}
		r := p.send(t, method, c.body, headers)
		fmt.Fprintf(&out, "%s\n  %d %s\n", c.name, r.status, r.body)
	}
	golden(t, "errors.txt", out.Bytes())
}

func TestNotificationsAreNotAnswered(t *testing.T) {
	s := open(t)
	p := newPlatform(s).shake(t)
	for _, method := range []string{"notifications/cancelled", "notifications/roots/list_changed", "notifications/none", "tools/call", "tools/list", "ping"} {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"name":"sync_run","requestId":99}}`, method)
		if r := p.send(t, http.MethodPost, body, p.context("i1", body)); r.status != 202 || len(r.body) > 0 {
			t.Errorf("%s: %d %q", method, r.status, r.body)
		}
	}
	var tasks int
	if err := s.sql.QueryRow(t.Context(), "select count(*) from xiaoqu_sync.agent_tasks").Scan(&tasks); err != nil || tasks != 0 {
		t.Errorf("%d tasks, %v", tasks, err)
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with a file of testdata.
func golden(t testing.TB, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", path, diff)
	}
}
