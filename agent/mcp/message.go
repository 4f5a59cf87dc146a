package mcp

import (
	"bytes"
	stdjson "encoding/json"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The codes that Xiaoya names.
const (
	parseError     = -32700
	invalidRequest = -32600
	unknownMethod  = -32601
	invalidParams  = -32602
)

// fault is a JSON-RPC error and the HTTP status that goes with it. Its texts hold
// nothing of what was sent.
type fault struct {
	status int
	code   int
	text   string
	data   any
}

func (f *fault) Error() string { return f.text }

// message is a JSON-RPC message as it came.
type message struct {
	Version string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Method  string         `json:"method"`
	Params  jsontext.Value `json:"params"`
	Result  jsontext.Value `json:"result"`
	Error   jsontext.Value `json:"error"`
}

// decode reads one message. Names twice in an object, names in another case and
// broken UTF-8 are no JSON to it: two readers of such a text could see two messages.
func decode(body []byte) (message, *fault) {
	var m message
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] == '[' && jsontext.Value(trimmed).IsValid() {
		return m, &fault{400, invalidRequest, "batches are not taken: every call has a context of its own", nil}
	}
	err := json.Unmarshal(body, &m)
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntax):
		return message{}, &fault{400, parseError, "the body is not JSON", nil}
	case err != nil:
		return message{}, &fault{400, invalidRequest, "the body is not a JSON-RPC message", nil}
	}
	if !m.goodID() {
		m.ID = nil
		return m, &fault{400, invalidRequest, "an id is a text or a whole number", nil}
	}
	if m.Version != "2.0" || m.Method == "" && !m.reply() || len(m.Params) > 0 && m.Params.Kind() != '{' {
		return m, &fault{400, invalidRequest, "the body is not a JSON-RPC 2.0 message", nil}
	}
	return m, nil
}

// call reports whether somebody waits for an answer.
func (m message) call() bool { return len(m.ID) > 0 && m.Method != "" }

// reply reports whether this is an answer to a request; the door makes none.
func (m message) reply() bool {
	return m.Method == "" && len(m.ID) > 0 && (len(m.Result) > 0 || len(m.Error) > 0)
}

func (m message) goodID() bool {
	switch m.ID.Kind() {
	case '"':
		return len(m.ID) <= 256
	case '0':
		return len(m.ID) <= 19 && !bytes.ContainsAny(m.ID, ".eE")
	default:
		return len(m.ID) == 0
	}
}

// encode writes the message again, with what was read and nothing else.
func (m message) encode() ([]byte, error) {
	out := struct {
		Version string             `json:"jsonrpc"`
		ID      stdjson.RawMessage `json:"id,omitempty"`
		Method  string             `json:"method,omitempty"`
		Params  stdjson.RawMessage `json:"params,omitempty"`
		Result  stdjson.RawMessage `json:"result,omitempty"`
		Error   stdjson.RawMessage `json:"error,omitempty"`
	}{m.Version, stdjson.RawMessage(m.ID), m.Method, stdjson.RawMessage(m.Params), stdjson.RawMessage(m.Result), stdjson.RawMessage(m.Error)}
	return text(out)
}

// request is what tools/call asks for.
type request struct {
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
}

// request reads the params of tools/call, and leaves only what the door goes by.
func (m *message) request() (request, *fault) {
	var r request
	if err := json.Unmarshal(m.Params, &r); err != nil || r.Name == "" || len(r.Arguments) > 0 && r.Arguments.Kind() != '{' {
		return r, &fault{200, invalidParams, "tools/call takes a name and an object of arguments", nil}
	}
	if len(r.Arguments) == 0 {
		r.Arguments = jsontext.Value("{}")
	}
	params, err := text(struct {
		Name      string             `json:"name"`
		Arguments stdjson.RawMessage `json:"arguments"`
	}{r.Name, stdjson.RawMessage(r.Arguments)})
	if err != nil {
		return r, &fault{200, invalidParams, "tools/call takes a name and an object of arguments", nil}
	}
	m.Params = params
	return r, nil
}

// text is the JSON of v with its characters as they are.
func text(v any) ([]byte, error) {
	var b bytes.Buffer
	e := stdjson.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
