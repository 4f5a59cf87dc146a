package remotetest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// client speaks the contract with net/http alone.
type client struct {
	tb      testing.TB
	url     string
	token   string
	session string
	ids     int
	edit    func(*http.Request) // last word on every request
}

// answer is what came back to a JSON-RPC request.
type answer struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body
	rpc    struct {
		ID     json.RawMessage
		Result struct {
			Content           []struct{ Type, Text string }
			StructuredContent json.RawMessage
			IsError           bool
			Meta              struct {
				RequestID string `json:"request_id"`
			} `json:"_meta"`
			ProtocolVersion string
			Tools           []struct {
				Name        string
				InputSchema json.RawMessage
			}
			NextCursor string
		}
		Error *struct {
			Code    int
			Message string
			Data    struct{ Code string }
		}
	}
	envelope struct {
		SchemaVersion int    `json:"schema_version"`
		RequestID     string `json:"request_id"`
		Notice        string
		Data          json.RawMessage
		Code          string
		Error         struct{ Code string }
	}
}

type page struct {
	SnapshotID    string  `json:"snapshot_id"`
	CutoffAt      string  `json:"data_cutoff_at"`
	HasMore       bool    `json:"has_more"`
	NextCursor    *string `json:"next_cursor"`
	NextSyncToken *string `json:"next_sync_token"`
	Notice        string
	Records       []json.RawMessage
}

func ensure(tb testing.TB, s *remotetest.Server, key, body string) (int, string) {
	tb.Helper()
	req := must(http.NewRequest(http.MethodPost, s.URL()+"/api/open/token/ensure", strings.NewReader(body)))
	req.Header.Set("X-Open-Key", key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, string(must(io.ReadAll(resp.Body)))
}

const serviceBody = `{"scopeCode":"sync","principalType":"service","serviceName":"crm"}`

func tokenOf(tb testing.TB, s *remotetest.Server, body string) string {
	tb.Helper()
	status, text := ensure(tb, s, s.Key(), body)
	var v struct{ Token string }
	if err := json.Unmarshal([]byte(text), &v); err != nil || status != 200 || v.Token == "" {
		tb.Fatalf("ensure: %d %s", status, text)
	}
	return v.Token
}

// connect does the whole handshake of contract §2.1.
func connect(tb testing.TB, s *remotetest.Server) *client {
	tb.Helper()
	c := &client{tb: tb, url: s.URL(), token: tokenOf(tb, s, serviceBody)}
	c.handshake()
	return c
}

func (c *client) handshake() {
	c.tb.Helper()
	c.session = ""
	a := c.rpc("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	c.session = a.header.Get("Mcp-Session-Id")
	if a.status != 200 || c.session == "" {
		c.tb.Fatalf("initialize: %d %s", a.status, a.body)
	}
	if a := c.send(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); a.status != 202 || a.body != "" {
		c.tb.Fatalf("initialized: %d %q", a.status, a.body)
	}
}

// try sends one request with the unified headers.
func (c *client) try(method, body string) (answer, error) {
	req := must(http.NewRequest(method, c.url+"/mcp", strings.NewReader(body)))
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", "2025-06-18")
	req.Header.Set("X-Mcp-Schema-Version", "2")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.edit != nil {
		c.edit(req)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(raw), err: err}, nil
}

func (c *client) send(method, body string) answer {
	c.tb.Helper()
	a, err := c.try(method, body)
	if err != nil {
		c.tb.Fatal(err)
	}
	return a
}

// rpc sends a request and reads the answer that has its id.
func (c *client) rpc(method, params string) answer {
	c.tb.Helper()
	c.ids++
	a := c.send(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.ids, method, params))
	messages := []string{a.body}
	if strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
		messages = events(a.body)
	}
	for _, m := range messages {
		var probe struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal([]byte(m), &probe) != nil || string(probe.ID) != fmt.Sprint(c.ids) {
			continue
		}
		if err := json.Unmarshal([]byte(m), &a.rpc); err != nil {
			c.tb.Fatalf("answer is no JSON: %v\n%s", err, m)
		}
		if s := a.rpc.Result.StructuredContent; s != nil {
			if err := json.Unmarshal(s, &a.envelope); err != nil {
				c.tb.Fatalf("envelope: %v\n%s", err, s)
			}
		}
	}
	return a
}

func (c *client) call(tool, args string) answer {
	c.tb.Helper()
	return c.rpc("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
}

// changes asks for one page; limit 0 is no limit argument.
func (c *client) changes(resource string, token, cursor *string, limit int) (page, answer) {
	c.tb.Helper()
	args := map[string]any{"syncToken": token}
	if cursor != nil {
		args["cursor"] = *cursor
	}
	if limit > 0 {
		args["limit"] = limit
	}
	a := c.call(resource+".changes.list", string(must(json.Marshal(args))))
	var p page
	if a.envelope.Data != nil {
		if err := json.Unmarshal(a.envelope.Data, &p); err != nil {
			c.tb.Fatalf("page: %v\n%s", err, a.envelope.Data)
		}
	}
	return p, a
}

// drain reads a round to its end: the records in order, the token, the pages.
func (c *client) drain(resource string, token *string, limit int) ([]json.RawMessage, string, int) {
	c.tb.Helper()
	p, a := c.changes(resource, token, nil, limit)
	return c.rest(resource, token, limit, p, a)
}

// rest goes on from a page that was read.
func (c *client) rest(resource string, token *string, limit int, p page, a answer) ([]json.RawMessage, string, int) {
	c.tb.Helper()
	var all []json.RawMessage
	for n := 1; ; n++ {
		if a.envelope.Data == nil {
			c.tb.Fatalf("page %d: %d %s", n, a.status, a.body)
		}
		all = append(all, p.Records...)
		if n > 5000 {
			c.tb.Fatalf("no end after %d pages", n)
		}
		if !p.HasMore {
			if p.NextCursor != nil || p.NextSyncToken == nil {
				c.tb.Fatalf("last page: %s", a.envelope.Data)
			}
			return all, *p.NextSyncToken, n
		}
		if p.NextCursor == nil || p.NextSyncToken != nil {
			c.tb.Fatalf("page %d is not the last one, and is %s", n, a.envelope.Data)
		}
		p, a = c.changes(resource, token, p.NextCursor, limit)
	}
}

// events reads a stream as the SSE standard says, but takes a last event
// without its blank line.
func events(stream string) []string {
	stream = strings.TrimPrefix(stream, "\uFEFF")
	var all, data []string
	for line := range strings.Lines(stream + "\n\n") {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			if data != nil {
				all, data = append(all, strings.Join(data, "\n")), nil
			}
		} else if v, ok := strings.CutPrefix(line, "data:"); ok {
			data = append(data, strings.TrimPrefix(v, " "))
		}
	}
	return all
}

// byID maps records to their bytes and fails on an id that comes twice.
func byID(tb testing.TB, records []json.RawMessage) map[string]string {
	tb.Helper()
	m := make(map[string]string, len(records))
	for _, r := range records {
		id := idOf(r)
		if _, twice := m[id]; twice {
			tb.Fatalf("id %s came twice", id)
		}
		m[id] = string(r)
	}
	return m
}

func idOf(record json.RawMessage) string {
	var v struct{ ID json.RawMessage }
	if json.Unmarshal(record, &v) != nil {
		return ""
	}
	return string(bytes.Trim(v.ID, `"`))
}

func texts(m map[string]json.RawMessage) map[string]string {
	t := make(map[string]string, len(m))
	for k, v := range m {
		t[k] = string(v)
	}
	return t
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
