package mcp_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// platform is Xiaoya as its rules describe it: JSON-RPC by hand over HTTP.
type platform struct {
	url     string
	key     string
	agent   string
	accept  string
	session string
	version string
	now     func() time.Time
	next    int
}

// reply is an answer over HTTP, its message taken out of a stream if it came in one.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func newPlatform(s *scene) *platform {
	return &platform{url: s.url + "/mcp", key: signingKey, agent: agentID, accept: "application/json, text/event-stream", now: time.Now}
}

func bytesOf(b []byte) io.Reader { return bytes.NewReader(b) }

// send posts a body as it is, with headers beside those that every request has; a
// header of "-" is left out.
func (p *platform) send(t testing.TB, method, body string, headers map[string]string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"Content-Type": "application/json", "Accept": p.accept}
	if p.session != "" {
		all["Mcp-Session-Id"], all["MCP-Protocol-Version"] = p.session, p.version
	}
	maps.Copy(all, headers)
	for name, v := range all {
		if v == "-" {
			continue
		}
		if req.Header.Set(name, v); name == "Host" {
			req.Host = v
		}
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Timeout: 30 * time.Second}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		text = dataOf(text)
	}
	return reply{res.StatusCode, res.Header, text}
}

// dataOf is the data of a stream of one event.
func dataOf(stream []byte) []byte {
	for line := range bytes.Lines(stream) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			return bytes.TrimSpace(data)
		}
	}
	return nil
}

// ask makes a request of the session.
func (p *platform) ask(t testing.TB, method, params string) reply {
	t.Helper()
	return p.send(t, http.MethodPost, p.request(method, params), nil)
}

func (p *platform) request(method, params string) string {
	p.next++
	if params != "" {
		params = `,"params":` + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q%s}`, p.next, method, params)
}

// shake does the handshake of the rules: initialize, then notifications/initialized.
func (p *platform) shake(t testing.TB) *platform {
	t.Helper()
	r := p.ask(t, "initialize", `{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"xiaoya-open-platform","version":"1.0.0"}}`)
	if r.status != 200 {
		t.Fatalf("initialize: %d %s", r.status, r.body)
	}
	var answer struct {
		Result struct {
			Version string `json:"protocolVersion"`
		}
	}
	if err := json.Unmarshal(r.body, &answer); err != nil {
		t.Fatal(err)
	}
	p.session, p.version = r.header.Get("Mcp-Session-Id"), answer.Result.Version
	if p.session == "" {
		t.Fatal("there is no session")
	}
	if r := p.send(t, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil); r.status != 202 || len(r.body) > 0 {
		t.Fatalf("a notification got %d %q", r.status, r.body)
	}
	return p
}

// context are the protected headers of a call.
func (p *platform) context(invocation, body string) map[string]string {
	at := strconv.FormatInt(p.now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(p.key))
	fmt.Fprintf(mac, "%s.%s.%s.%s", at, p.agent, invocation, body)
	return map[string]string{
		"X-Xiaoya-Agent-Id": p.agent, "X-Xiaoya-Invocation-Id": invocation, "X-Xiaoya-Timestamp": at,
		"X-Xiaoya-Signature": hex.EncodeToString(mac.Sum(nil)),
	}
}

// call calls a tool as an invocation.
func (p *platform) call(t testing.TB, invocation, tool, arguments string) reply {
	t.Helper()
	body := p.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
	return p.send(t, http.MethodPost, body, p.context(invocation, body))
}

// outcome is the result of a tool, as the rules have it.
type outcome struct {
	Content []struct{ Type, Text string }
	Body    struct {
		Status    string
		Summary   string
		Data      json.RawMessage
		Artifacts []struct {
			Type, Title, URL, MimeType, SHA256 string
			Size                               int
		}
	} `json:"structuredContent"`
	IsError bool
}

// outcome reads the answer to a call.
func (r reply) outcome(t testing.TB) outcome {
	t.Helper()
	var answer struct{ Result *outcome }
	if err := json.Unmarshal(r.body, &answer); err != nil || r.status != 200 || answer.Result == nil {
		t.Fatalf("no result: %d %s", r.status, r.body)
	}
	return *answer.Result
}

// fault reads a JSON-RPC error: its code, and data.errorCode.
func (r reply) fault(t testing.TB) (code int, name string) {
	t.Helper()
	var answer struct {
		Version string `json:"jsonrpc"`
		Error   *struct {
			Code int
			Data struct{ ErrorCode string }
		}
	}
	if err := json.Unmarshal(r.body, &answer); err != nil || answer.Error == nil || answer.Version != "2.0" {
		t.Fatalf("no error: %d %s", r.status, r.body)
	}
	return answer.Error.Code, answer.Error.Data.ErrorCode
}

// told is a callback as it came in.
type told struct {
	method, path string
	header       http.Header
	body         []byte
}

// receiver is the platform's callback endpoint. It answers with the statuses of
// script, then 200.
type receiver struct {
	url    string
	told   chan told
	script chan int
}

func receive(t testing.TB) *receiver {
	t.Helper()
	c := &receiver{told: make(chan told, 100), script: make(chan int, 100)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.told <- told{r.Method, r.URL.Path, r.Header, body}
		select {
		case status := <-c.script:
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		default:
		}
	}))
	t.Cleanup(server.Close)
	c.url = server.URL + "/api/v1/open-agent-tools/callbacks"
	return c
}

func names(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
