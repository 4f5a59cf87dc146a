package api

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// schemaVersion is the version of the envelope (AgentUse).
const schemaVersion = "1.0"

// Envelope is the one form of every answer (AgentUse).
type Envelope struct {
	OK       bool            `json:"ok"`
	Data     json.RawMessage `json:"data,omitempty"`
	Warnings *[]string       `json:"warnings,omitempty"`
	Error    *Error          `json:"error,omitempty"`
	Meta     Meta            `json:"meta"`
}

// Error is a failure in the envelope's words.
type Error struct {
	Code        string          `json:"code"`
	Message     string          `json:"message"`
	Details     json.RawMessage `json:"details"`
	Retryable   bool            `json:"retryable"`
	Suggestions []string        `json:"suggestions"`
	RequestID   string          `json:"request_id"`
}

// Meta names the operation.
type Meta struct {
	OperationID   string    `json:"operation_id"`
	Timestamp     time.Time `json:"timestamp"`
	SchemaVersion string    `json:"schema_version"`
	Summary       string    `json:"summary,omitempty"`
}

// status is the HTTP status of each class of failure.
func status(c agent.Class) int {
	switch c {
	case agent.Invalid:
		return http.StatusBadRequest
	case agent.Forbidden:
		return http.StatusForbidden
	case agent.NotFound:
		return http.StatusNotFound
	case agent.Busy:
		return http.StatusConflict
	case agent.Limited:
		return http.StatusTooManyRequests
	case agent.Temporary:
		return http.StatusServiceUnavailable
	case agent.Permanent:
		return http.StatusUnprocessableEntity
	default:
		return http.StatusInternalServerError
	}
}

// Wire is a failure as the envelope has it. Operation stands in for the remote's
// request id where the remote was not asked.
func Wire(f *agent.Failure, operation string) *Error {
	details := f.Details
	switch {
	case len(details) > 0:
	case f.Field != "":
		details = must(map[string]string{"field": f.Field})
	default:
		details = json.RawMessage("{}")
	}
	suggestions := f.Suggestions
	if suggestions == nil {
		suggestions = []string{}
	}
	return &Error{
		Code: f.Code, Message: f.Message, Details: details, Retryable: f.Class.Passing(),
		Suggestions: suggestions, RequestID: cmp.Or(f.RequestID, operation),
	}
}

// must encodes what always has JSON.
func must(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic("api: " + err.Error())
	}
	return text
}

func (x *exchange) meta() Meta {
	return Meta{OperationID: x.operation, Timestamp: time.Now().UTC().Truncate(time.Millisecond), SchemaVersion: schemaVersion}
}

func (x *exchange) answer(code int, data any, summary string) {
	text, ok := data.(json.RawMessage)
	if !ok {
		text = must(data)
	}
	m := x.meta()
	m.Summary = summary
	x.write(code, Envelope{OK: true, Data: text, Warnings: &[]string{}, Meta: m})
}

func (x *exchange) refuse(f *agent.Failure) {
	code := status(f.Class)
	if f.Code == "input_too_large" {
		code = http.StatusRequestEntityTooLarge
	}
	x.refuseWith(code, f)
}

func (x *exchange) refuseWith(code int, f *agent.Failure) {
	if f.RetryAfter > 0 {
		seconds := int64((f.RetryAfter + time.Second - 1) / time.Second)
		x.w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	x.write(code, Envelope{Error: Wire(f, x.operation), Meta: x.meta()})
}

func (x *exchange) write(code int, e Envelope) {
	x.w.WriteHeader(code)
	enc := json.NewEncoder(x.w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(e) // the other side went away: nobody is left to tell
}
