package remotetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const protocolVersion = "2025-06-18"

// message is a JSON-RPC message of the client.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// session is one handshake (contract §2.1).
type session struct {
	initialized bool
	lists       int // answers to tools/list so far
}

// rpc answers a POST to /mcp.
func (x *exchange) rpc(mutate func(*Page)) Reply {
	g, ok := x.authorize()
	if !ok {
		return x.refuse(Failure{Place: x.v.AuthErrors.or(HTTPTop), Code: Unauthenticated, Message: "token unknown or revoked"})
	}
	if x.call.Kind == kindGarbage {
		return x.rpcError(http.StatusBadRequest, -32700, "not one JSON-RPC message")
	}
	if x.msg.Method == "initialize" {
		return x.initialize()
	}
	known := x.session(func(*session) {})
	if !known {
		return x.lostSession()
	}
	switch x.msg.Method {
	case "", "notifications/initialized", "notifications/cancelled", "notifications/progress":
		if x.msg.Method == "notifications/initialized" {
			x.session(func(n *session) { n.initialized = true })
		}
		return Reply{Status: http.StatusAccepted}
	case "ping":
		return x.result([]byte(`{}`))
	case "tools/list":
		return x.listTools(g)
	case "tools/call":
		return x.callTool(g, mutate)
	}
	return x.rpcError(http.StatusOK, -32601, "method not found")
}

// authorize finds what the request's token stands for.
func (x *exchange) authorize() (grant, bool) {
	token, ok := strings.CutPrefix(x.r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return grant{}, false
	}
	x.srv.mu.Lock()
	defer x.srv.mu.Unlock()
	g, ok := x.srv.grants[token]
	return g, ok && !x.srv.deactivated[g.mobile]
}

// session lets f see the session of the request, and reports whether it lives.
func (x *exchange) session(f func(*session)) bool {
	x.srv.mu.Lock()
	defer x.srv.mu.Unlock()
	n, ok := x.srv.sessions[x.r.Header.Get("Mcp-Session-Id")]
	if ok {
		f(n)
	}
	return ok
}

func (x *exchange) initialize() Reply {
	s := x.srv
	s.mu.Lock()
	s.stats.Handshakes++
	id := fmt.Sprintf("sess-%06d-%s", s.stats.Handshakes, s.seal([]byte(x.call.RequestID))[:8])
	s.sessions[id] = &session{}
	s.mu.Unlock()
	version := x.v.ProtocolVersion
	if version == "" {
		version = protocolVersion
	}
	r := x.result(fmt.Appendf(nil, `{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":false}},`+
		`"serverInfo":{"name":"xiaoqu-mcp","version":"1.0.0"}}`, version))
	r.Header["Mcp-Session-Id"] = id
	return r
}

// lostSession speaks of a session that this server does not know: 404, as the
// MCP transport says, or the 400 that many servers send.
func (x *exchange) lostSession() Reply {
	if x.v.LostSession400 {
		return x.rpcError(http.StatusBadRequest, -32000, "Bad Request: No valid session ID provided")
	}
	return Reply{Status: http.StatusNotFound, Header: map[string]string{"Content-Type": "text/plain"}, Body: []byte("session not found\n")}
}

func (x *exchange) endSession() Reply {
	if _, ok := x.authorize(); !ok {
		return x.refuse(Failure{Place: HTTPTop, Code: Unauthenticated, Message: "token unknown or revoked"})
	}
	id := x.r.Header.Get("Mcp-Session-Id")
	x.srv.mu.Lock()
	defer x.srv.mu.Unlock()
	if _, ok := x.srv.sessions[id]; !ok {
		return x.lostSession()
	}
	delete(x.srv.sessions, id)
	return Reply{Status: http.StatusNoContent}
}

// listTools answers with the tools that the token may see (contract §4.1), or
// with nothing when it is asked too early (contract §2.1).
func (x *exchange) listTools(g grant) Reply {
	early := false
	x.session(func(n *session) {
		n.lists++
		early = !n.initialized || n.lists <= x.v.EmptyLists
	})
	if early {
		if x.v.EmptyListBody {
			return Reply{Header: map[string]string{"Content-Type": "text/event-stream"}}
		}
		return x.result([]byte(`{"tools":[]}`))
	}
	var p struct {
		Cursor string `json:"cursor"`
	}
	if len(x.msg.Params) > 0 && json.Unmarshal(x.msg.Params, &p) != nil {
		return x.rpcError(http.StatusOK, -32602, "params of tools/list are malformed")
	}
	tools := x.srv.visible(g)
	from, err := 0, error(nil)
	if p.Cursor != "" {
		from, err = strconv.Atoi(strings.TrimPrefix(p.Cursor, "tools-"))
	}
	if err != nil || from < 0 || from > len(tools) {
		return x.rpcError(http.StatusOK, -32602, "unknown cursor of tools/list")
	}
	to := len(tools)
	if n := x.v.ToolsPerPage; n > 0 {
		to = min(from+n, to)
	}
	return x.result(renderTools(tools, from, to, x.v.OutputSchemas))
}

func renderTools(tools []string, from, to int, outputs map[string]json.RawMessage) []byte {
	b := []byte(`{"tools":[`)
	for i, name := range tools[from:to] {
		if i > 0 {
			b = append(b, ',')
		}
		schema := contextSchema
		if name != contextTool {
			schema = changesSchema
		}
		b = fmt.Appendf(b, `{"name":%q,"description":%q,"inputSchema":%s`, name, "小趣 "+name, schema)
		if output, ok := outputs[name]; ok {
			b = fmt.Appendf(b, `,"outputSchema":%s`, output)
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	if to < len(tools) {
		b = fmt.Appendf(b, `,"nextCursor":"tools-%d"`, to)
	}
	return append(b, '}')
}
