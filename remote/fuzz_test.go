package remote_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// ways that FuzzWire's bytes travel.
const (
	asStream = iota
	asJSON
	asRefusal
	asConnection // with the status line and all
	ways
)

// seeds gives FuzzWire the golden pages and an answer of each kind that the tables of faults have.
func seeds(f *testing.F) {
	pages, err := filepath.Glob("testdata/pages/*/answer.sse")
	if err != nil || len(pages) == 0 {
		f.Fatalf("no pages: %v", err)
	}
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(page, asStream)
	}
	answer := `{"jsonrpc":"2.0","id":ID,"result":` + okPage + `}`
	for _, text := range []string{
		"data: " + answer + "\n\n", "\ufeffdata:" + answer, "id: 7\rretry: 1\rdata: \r\r", ": x\r\n\r\n",
		"data: " + answer + "\n\ndata: junk\n\n", `data: {"jsonrpc":"2.0","id":"s","method":"ping"}` + "\n\n",
		`data: {"jsonrpc":"2.0","id":ID,"error":{"code":-32003,"message":"RATE_LIMITED: x"}}` + "\n\n",
		"event: error\ndata: " + refusal + "\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":[[[", "data\n\nid\n\n",
	} {
		f.Add([]byte(text), asStream)
	}
	f.Add([]byte(answer), asJSON)
	f.Add([]byte("["+answer+"]"), asJSON)
	f.Add([]byte(refusal), asRefusal)
	f.Add([]byte("<html>no session"), asRefusal)
	f.Add([]byte(chunkedStream+"9\r\ndata: {}\n\r\n0\r\n\r\n"), asConnection)
	f.Add([]byte("HTTP/1.1 204 No Content\r\nMcp-Session-Id: other\r\nRetry-After: 9\r\n\r\n"), asConnection)
	f.Add([]byte("HTTP/1.1 307 T\r\nLocation: http://[::1\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n"), asConnection)
}

// travel sends bytes one of the ways.
func travel(text []byte, way int) handler {
	switch way {
	case asStream:
		return stream(string(text))
	case asJSON:
		return status(http.StatusOK, "application/json", string(text))
	case asRefusal:
		return status(400+len(text)%200, "application/json", string(text))
	default:
		return cut(false, string(text))
	}
}

// FuzzWire holds, for whatever bytes come over a real connection in answer to a call: there is a page of whole records
// or an error with a name, within the deadline; no secret in it; nothing left running; and calls succeed again.
func FuzzWire(f *testing.F) {
	seeds(f)
	const deadline = 500 * time.Millisecond
	var play atomic.Pointer[handler] // nil: the usual
	played := func(w http.ResponseWriter, r *http.Request, m message) {
		if h := play.Load(); h != nil {
			(*h)(w, r, m)
			return
		}
		result(w, m, okPage)
	}
	s := serve(f, func(s *server) { s.answer, s.resume = played, played })
	c := client(f, s.URL, func(o *remote.Options) { o.Timeout, o.MaxBytes = deadline, 1<<20 })
	f.Fuzz(func(t *testing.T, text []byte, way int) {
		h := travel(text, int(uint(way)%ways))
		play.Store(&h)
		began := time.Now()
		page, err := c.Changes(t.Context(), users())
		took := time.Since(began)
		play.Store(nil)
		s.forget()
		holdAnswer(t, page, err)
		if took > deadline+5*time.Second {
			t.Errorf("took %s", took)
		}
		if !within(5*time.Second, func() bool { // what came behind an answer may end the session under the next call
			_, err = c.Changes(t.Context(), users())
			return err == nil
		}) {
			t.Errorf("after: %v", err)
		}
		if !within(5*time.Second, func() bool { return runtime.NumGoroutine() < 60 }) {
			t.Errorf("%d goroutines", runtime.NumGoroutine())
		}
	})
}

// holdAnswer holds what is true of every answer.
func holdAnswer(t *testing.T, page *remote.Page, err error) {
	t.Helper()
	var e *remote.Error
	switch {
	case err == nil:
		for _, record := range page.Records {
			if len(record) == 0 || len(page.NextCursor)+len(record) > int(page.Bytes) {
				t.Errorf("a record of %d bytes in an answer of %d", len(record), page.Bytes)
			}
		}
	case !errors.As(err, &e) || e.Code == "":
		t.Errorf("an error without a name: %T %v", err, err)
	case len(err.Error()) > 600 || strings.Contains(err.Error(), "canary") || strings.ContainsAny(err.Error(), "\x00\n\r\x1b"):
		t.Errorf("an error unfit for a log line: %q", err)
	case e.RetryAfter < 0 || e.RetryAfter > 24*time.Hour:
		t.Errorf("Retry-After %s", e.RetryAfter)
	}
}
