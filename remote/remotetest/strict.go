package remotetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
)

const maxBreaches = 1000

// Breaches lists what the client did against the contract, in order: headers,
// arguments, the order of calls. What a client cannot know (a token that was
// revoked, a session that the server dropped) is none.
func (s *Server) Breaches() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.breaches)
}

// breach records one; the caller holds the lock. Texts have no secrets.
func (s *Server) breach(format string, args ...any) {
	if len(s.breaches) < maxBreaches {
		s.breaches = append(s.breaches, fmt.Sprintf(format, args...))
	}
}

// inspect judges a request as it arrives, whatever is then answered.
func (s *Server) inspect(x *exchange) {
	label := fmt.Sprintf("%s (%s)", orString(x.call.Tool, x.call.Kind), x.call.RequestID)
	switch {
	case x.call.Kind == kindEnsure:
		s.inspectEnsure(x, label)
		return
	case x.r.URL.Path != mcpPath:
		s.breach("%s: unknown path", label)
		return
	case x.r.Method != http.MethodPost && x.r.Method != http.MethodDelete:
		s.breach("%s: method is not of the contract", label)
		return
	}
	s.inspectHeaders(x, label)
	s.inspectSession(x, label)
	if x.r.Method == http.MethodPost {
		s.inspectMessage(x, label)
	}
	if x.call.Kind == "tools/call" {
		s.inspectArgs(x, label)
	}
}

func (s *Server) inspectEnsure(x *exchange, label string) {
	if x.r.Method != http.MethodPost {
		s.breach("%s: method is not POST", label)
	}
	if !strings.HasPrefix(x.r.Header.Get("X-Open-Key"), "xqok-") {
		s.breach("%s: X-Open-Key missing or no service key", label)
	}
	if !isJSON(x.r.Header) {
		s.breach("%s: Content-Type is not application/json", label)
	}
	if strings.Contains(x.r.URL.RawQuery, "xqok-") {
		s.breach("%s: the key is in the address", label)
	}
}

// inspectHeaders checks the unified headers of contract §2.1, each exactly
// once, on every request.
func (s *Server) inspectHeaders(x *exchange, label string) {
	h := x.r.Header
	accept := strings.Join(h.Values("Accept"), ",")
	for _, c := range []struct {
		name string
		ok   bool
	}{
		{"Authorization", strings.HasPrefix(h.Get("Authorization"), "Bearer xqak-")},
		{"Content-Type", isJSON(h)},
		{"Accept", strings.Contains(accept, "application/json") && strings.Contains(accept, "text/event-stream")},
		{"MCP-Protocol-Version", h.Get("MCP-Protocol-Version") == protocolVersion},
		{"X-Mcp-Schema-Version", h.Get("X-Mcp-Schema-Version") == "2"},
	} {
		switch n := len(h.Values(c.name)); {
		case n == 0:
			s.breach("%s: header %s missing", label, c.name)
		case !c.ok:
			s.breach("%s: header %s wrong", label, c.name)
		case n > 1 && c.name != "Accept":
			s.breach("%s: header %s sent %d times", label, c.name, n)
		}
	}
}

func isJSON(h http.Header) bool {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && t == "application/json"
}

func (s *Server) inspectSession(x *exchange, label string) {
	if x.call.Kind == "initialize" || x.call.Kind == kindGarbage {
		return
	}
	id := x.r.Header.Get("Mcp-Session-Id")
	n := s.sessions[id]
	switch {
	case id == "":
		s.breach("%s: header Mcp-Session-Id missing", label)
	case n == nil && !s.dropped[id]:
		s.breach("%s: unknown session", label)
	case n != nil && !n.initialized && strings.HasPrefix(x.call.Kind, "tools/"):
		s.breach("%s: before notifications/initialized", label)
	}
}

func (s *Server) inspectMessage(x *exchange, label string) {
	m := x.msg
	hasID := len(m.ID) > 0 && string(m.ID) != "null"
	notification := strings.HasPrefix(m.Method, "notifications/")
	switch {
	case x.call.Kind == kindGarbage:
		s.breach("%s: not one JSON-RPC message", label)
	case m.JSONRPC != "2.0":
		s.breach("%s: jsonrpc is not 2.0", label)
	case notification && hasID:
		s.breach("%s: a notification with an id", label)
	case !notification && !hasID:
		s.breach("%s: a request without an id", label)
	}
	if m.Method == "initialize" {
		var p struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if json.Unmarshal(m.Params, &p) != nil || p.ProtocolVersion != protocolVersion {
			s.breach("%s: asks for another protocol version than %s", label, protocolVersion)
		}
	}
}

// inspectArgs checks contract §4.3 and §6.
func (s *Server) inspectArgs(x *exchange, label string) {
	args := map[string]json.RawMessage{}
	if len(x.call.Args) > 0 && json.Unmarshal(x.call.Args, &args) != nil {
		s.breach("%s: arguments is not an object", label)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		switch {
		case name == "tenant_id" || name == "scope":
			s.breach("%s: forbidden argument %s", label, name)
		case x.call.Resource == "" || name != "syncToken" && name != "cursor" && name != "limit":
			s.breach("%s: argument %s is not in the schema", label, name)
		}
	}
	delete(args, "tenant_id")
	delete(args, "scope")
	a, problem := parseArgs(args)
	if problem != "" || x.call.Resource == "" {
		return // an argument that is not in the schema has been named above
	}
	if a.limit > contractLimit {
		s.breach("%s: limit %d is above %d", label, a.limit, contractLimit)
	}
	if a.cursor == nil {
		return
	}
	if c, ok := s.openCursor(*a.cursor); ok {
		if r := s.rounds[c.Round]; r != nil && (r.resource != x.call.Resource || r.from != deref(a.syncToken)) {
			s.breach("%s: a cursor with the syncToken or resource of another round", label)
		}
	}
}
