package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func TestMain(m *testing.M) {
	if os.Getenv(asClient) != "" {
		os.Exit(beClient())
	}
	goleak.VerifyTestMain(m)
}

const (
	canaryToken  = "xqak-canary-7f3a"
	canaryMobile = "13912345678"
)

// tokens is a source of tokens that counts renewals.
type tokens struct {
	mu         sync.Mutex
	generation int
	err        error
}

func (t *tokens) Token(context.Context) (string, int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%s-%d", canaryToken, t.generation), t.generation, t.err
}

func (t *tokens) Renew(_ context.Context, generation int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.generation == generation {
		t.generation++
	}
	return nil
}

// message is a JSON-RPC request as the server reads it.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Cursor    string          `json:"cursor"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"params"`
	raw []byte
}

// server is a bare MCP endpoint: what it answers is bytes, so that it can answer wrongly.
type server struct {
	*httptest.Server
	// answer is for tools/call; list for tools/list; greet for initialize; resume for GET; end for DELETE. nil is the usual.
	answer, list, greet, resume, end func(http.ResponseWriter, *http.Request, message)

	mu       sync.Mutex
	requests []*http.Request
	methods  []string
	sessions int
}

func serve(t testing.TB, configure func(*server)) *server {
	t.Helper()
	s := &server{}
	if configure != nil {
		configure(s)
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.handle))
	t.Cleanup(s.Close)
	return s
}

func (s *server) handle(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m := message{raw: body}
	_ = json.Unmarshal(body, &m)
	if r.Method != http.MethodPost {
		m.Method = r.Method
	}
	s.mu.Lock()
	s.requests, s.methods = append(s.requests, r), append(s.methods, m.Method)
	if m.Method == "initialize" {
		s.sessions++
	}
	session := fmt.Sprintf("canary-session-%d", s.sessions)
	s.mu.Unlock()
	usual := map[string]func(http.ResponseWriter, *http.Request, message){
		"initialize": s.greet, "tools/call": s.answer, "tools/list": s.list, "GET": s.resume, "DELETE": s.end,
	}
	if special := usual[m.Method]; special != nil {
		special(w, r, m)
		return
	}
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", session)
		result(w, m, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`)
	case "tools/list":
		result(w, m, `{"tools":[{"name":"users.changes.list","inputSchema":{"type":"object"}}]}`)
	case "tools/call":
		result(w, m, okPage)
	case "GET":
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// handshakes counts the initialize requests.
func (s *server) handshakes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}

// seen gives the methods in their order.
func (s *server) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.methods, " ")
}

// forget drops what the server remembers.
func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.methods = nil, nil
}

const okPage = `{"content":[],"structuredContent":{"schema_version":2,"request_id":"r_1","data":` +
	`{"users":[{"id":1}],"has_more":false,"next_sync_token":"t1","snapshot_id":"s1","data_cutoff_at":"2026-09-15T00:00:00Z"}}}`

func event(w http.ResponseWriter, data string) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "event: message\ndata: %s\n\n", data)
}

func result(w http.ResponseWriter, m message, result string) {
	event(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
}

// client makes a client of the server; it is closed before the server is.
func client(t testing.TB, base string, change func(*remote.Options)) *remote.Client {
	t.Helper()
	o := remote.Options{BaseURL: base, Tokens: &tokens{generation: 1}, Timeout: 10 * time.Second, Logger: zap.NewNop(), Version: "test"}
	if change != nil {
		change(&o)
	}
	c, err := remote.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

func users() remote.Query { return remote.Query{Resource: "users"} }

// fixedToken is a source of one token.
type fixedToken string

func (f fixedToken) Token(context.Context) (string, int, error) { return string(f), 1, nil }

func (fixedToken) Renew(context.Context, int) error { return nil }
