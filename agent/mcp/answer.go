package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// recorder takes the SDK's answer, so that it can be given in the form that Xiaoya
// reads. An answer is no longer than Options.MaxAnswer and a little.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *recorder) Header() http.Header { return a.header }

func (a *recorder) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *recorder) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// give writes the answer. What the SDK refuses with a line of text becomes a JSON-RPC
// error without that text, which may quote the request.
func (a *recorder) give(w http.ResponseWriter, r *http.Request, id jsontext.Value) {
	status := a.status
	if status == 0 {
		status = http.StatusOK
	}
	if status >= http.StatusBadRequest && !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
		why := "the request is not valid here"
		if status == http.StatusNotFound {
			why = "there is no such session: initialize makes one"
		}
		fail(w, r, id, &fault{status, invalidRequest, why, nil})
		return
	}
	if v := a.header.Get(sessionHeader); v != "" {
		w.Header().Set(sessionHeader, v)
	}
	if a.body.Len() == 0 {
		w.WriteHeader(status)
		return
	}
	send(w, r, status, a.body.Bytes())
}

// send writes one JSON-RPC message as the client takes it: JSON, or, if it takes
// nothing but streams, a stream of this one event.
func send(w http.ResponseWriter, r *http.Request, status int, text []byte) {
	if streams(r) && status == http.StatusOK {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", text) // who has gone needs no answer
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// fail writes a JSON-RPC error.
func fail(w http.ResponseWriter, r *http.Request, id jsontext.Value, f *fault) {
	if len(id) == 0 {
		id = jsontext.Value("null")
	}
	type failure struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}
	answer, err := text(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   failure         `json:"error"`
	}{"2.0", json.RawMessage(id), failure{f.code, f.text, f.data}})
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if f.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	send(w, r, f.status, answer)
}

// streams reports whether the client takes text/event-stream alone.
func streams(r *http.Request) bool {
	accept := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	return strings.Contains(accept, "text/event-stream") && !strings.Contains(accept, "json") && !strings.Contains(accept, "*/*")
}

// known checks that there is such a method, and that its params are in form.
func known(m *message) *fault {
	if !m.call() {
		return nil
	}
	switch m.Method {
	case "initialize":
		var p struct {
			Version *string         `json:"protocolVersion"`
			Client  json.RawMessage `json:"clientInfo"`
		}
		if json.Unmarshal(m.Params, &p) != nil || p.Version == nil {
			return &fault{200, invalidParams, "initialize takes a protocolVersion", nil}
		}
	case "tools/list":
		var p struct {
			Cursor *string `json:"cursor"`
		}
		if len(m.Params) > 0 && json.Unmarshal(m.Params, &p) != nil || p.Cursor != nil {
			return &fault{200, invalidParams, "the list of tools has one page, and no cursor", nil}
		}
		m.Params = nil
	case "ping":
		m.Params = nil
	case "tools/call":
	default:
		return &fault{200, unknownMethod, "there is no such method", nil}
	}
	return nil
}

// heeded reports whether the SDK does something with a notification.
func heeded(method string) bool {
	switch method {
	case "notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed":
		return true
	}
	return false
}
