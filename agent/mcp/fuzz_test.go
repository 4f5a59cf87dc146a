package mcp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/mcp"
)

// alone is a door behind which nothing is: whatever runs, panics.
func alone(t testing.TB) http.Handler {
	t.Helper()
	s, err := agent.New(agent.Options{Resources: resources()})
	if err != nil {
		t.Fatal(err)
	}
	d, err := mcp.New(mcp.Options{
		Service: s, PublicURL: "https://mirror.example.com", Context: mcp.Context{Keys: [][]byte{[]byte(signingKey)}},
		Application: mcp.Application{ID: agentID, CallbackURL: "https://xiaoya.example.com/callbacks"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d.Handler()
}

// post gives the door one request of a session that it does not know, so that what it
// lets in ends with 404.
func post(door http.Handler, body string, headers http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "https://mirror.example.com/mcp", strings.NewReader(body))
	if headers != nil {
		r.Header = headers
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Mcp-Session-Id", "unknown")
	w := httptest.NewRecorder()
	door.ServeHTTP(w, r)
	return w
}

// A context is let in exactly when all of it is right, and none of it comes back.
func FuzzCallContext(f *testing.F) {
	door := alone(f)
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mirror_status"}}`
	f.Add(agentID, "inv_01", int64(0), "", "", true)
	f.Add(agentID, "inv_01", int64(299), "", "https://xiaoya.example.com/callbacks/inv_01", true)
	f.Add(agentID, "inv_01", int64(-301), "", "", true)
	f.Add("another", "../x", int64(0), "00", "https://evil.example.com/", true)
	f.Add(agentID, "a\r\nb", int64(0), strings.Repeat("ab", 32), "", false)
	f.Fuzz(func(t *testing.T, target, invocation string, age int64, signature, callback string, sign bool) {
		p := &platform{key: signingKey, agent: target, now: func() time.Time { return time.Unix(time.Now().Unix()-age, 0) }}
		h := http.Header{}
		for name, v := range p.context(invocation, body) {
			h[http.CanonicalHeaderKey(name)] = []string{v}
		}
		if !sign {
			h["X-Xiaoya-Signature"] = []string{signature}
		}
		if callback != "" {
			h["X-Xiaoya-Callback-Url"] = []string{callback}
		}
		at, _ := strconv.ParseInt(h.Get("X-Xiaoya-Timestamp"), 10, 64)
		good := sign && target == agentID && at >= 0 && age >= -299 && age <= 299 && plain(invocation) &&
			(callback == "" || callback == "https://xiaoya.example.com/callbacks/"+invocation)
		w := post(door, body, h)
		if edge := age == 300 || age == -300 || age == 301 || age == -301; !edge && good != (w.Code == http.StatusNotFound) {
			t.Fatalf("%d for %q: %s", w.Code, h, w.Body)
		}
		if !slices.Contains([]int{401, 403, 404}, w.Code) {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		for _, v := range []string{invocation, signature, callback, target} {
			if len(v) > 24 && strings.Contains(w.Body.String(), v) {
				t.Fatalf("%q came back: %s", v, w.Body)
			}
		}
	})
}

// plain is what an invocation's id may be.
func plain(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("._:~-", rune(c))) {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 128
}

// Whatever comes in, what goes out is JSON-RPC, and a tool's call never slips past the
// check as something else.
func FuzzMessage(f *testing.F) {
	door := alone(f)
	for _, c := range wrongs(&platform{}) {
		if len(c.body) < 1000 {
			f.Add(c.body)
		}
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := post(door, body, nil)
		var answer struct {
			Version string `json:"jsonrpc"`
			Error   *struct{ Code int }
		}
		if w.Code == http.StatusAccepted && w.Body.Len() == 0 {
			return
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Version != "2.0" || answer.Error == nil {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if !slices.Contains([]int{-32700, -32600, -32601, -32602}, answer.Error.Code) {
			t.Fatalf("code %d", answer.Error.Code)
		}
		var loose struct{ ID, Method, Params any }
		if json.Unmarshal([]byte(body), &loose) == nil && loose.Method == "tools/call" && loose.ID != nil && w.Code == http.StatusNotFound {
			t.Fatalf("a call without a context came through: %q", body)
		}
	})
}
