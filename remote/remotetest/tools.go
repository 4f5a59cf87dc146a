package remotetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	contextTool   = "integration.context.get"
	changesSuffix = ".changes.list"
	contractLimit = 200 // contract §4.3
	classSync     = "SYNC"
	classQuery    = "QUERY"

	contextSchema = `{"type":"object","properties":{},"additionalProperties":false}`
	// No maximum of limit: the contract cuts a larger one and says so.
	changesSchema = `{"type":"object","properties":{"syncToken":{"type":["string","null"]},` +
		`"cursor":{"type":["string","null"]},"limit":{"type":"integer","minimum":1}},"additionalProperties":false}`
)

type callParams struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// changesArgs are the three arguments of contract §6; nil is null or absent.
type changesArgs struct {
	syncToken, cursor *string
	limit             int
}

// resourceOf gives the resource of a changes tool that this server has.
func (s *Server) resourceOf(tool string) (string, bool) {
	name, ok := strings.CutSuffix(tool, changesSuffix)
	return name, ok && s.resources[name] != nil
}

// visible lists the tools of a token: the scope's white list for a service, all
// for a person, whose rows are filtered instead (contract §1).
func (s *Server) visible(g grant) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	tools := []string{contextTool}
	if g.scope == "sync" || g.personal {
		for _, name := range s.names {
			tools = append(tools, name+changesSuffix)
		}
	}
	return slices.DeleteFunc(tools, func(t string) bool { return s.hidden[t] })
}

func (x *exchange) callTool(g grant, mutate func(*Page)) Reply {
	tool := x.call.Tool
	if !slices.Contains(x.srv.visible(g), tool) {
		return x.fail(PermissionDenied, "tool is not in the scope of this token")
	}
	args := map[string]json.RawMessage{}
	if len(x.call.Args) > 0 && json.Unmarshal(x.call.Args, &args) != nil {
		return x.fail(InvalidArgument, "arguments is not an object")
	}
	for _, name := range []string{"tenant_id", "scope"} {
		if _, ok := args[name]; ok {
			return x.fail(PermissionDenied, name+" must not be given")
		}
	}
	class := classSync
	if tool == contextTool {
		class = classQuery
	}
	if !x.srv.spend(class) {
		return x.fail(RateLimited, class+" quota is used up")
	}
	if tool == contextTool {
		if len(args) > 0 {
			return x.fail(InvalidArgument, "this tool takes no arguments")
		}
		return x.envelope(x.srv.contextOf(g), "")
	}
	a, problem := parseArgs(args)
	if problem != "" {
		return x.fail(InvalidArgument, problem)
	}
	p, problem := x.srv.turn(x.call.Resource, a, g.personal)
	if problem != "" {
		return x.fail(SyncCursorExpired, problem)
	}
	if mutate != nil {
		mutate(p)
	}
	return x.envelope(p.render(x.v), p.Notice)
}

// spend takes one call from a class's quota (contract §5: the two classes do
// not use up each other's).
func (s *Server) spend(class string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch left := s.quota[class]; {
	case left < 0:
		return true
	case left == 0:
		return false
	}
	s.quota[class]--
	return true
}

func parseArgs(args map[string]json.RawMessage) (changesArgs, string) {
	var a changesArgs
	for _, name := range slices.Sorted(maps.Keys(args)) {
		var err error
		switch name {
		case "syncToken":
			err = json.Unmarshal(args[name], &a.syncToken)
		case "cursor":
			err = json.Unmarshal(args[name], &a.cursor)
		case "limit":
			err = json.Unmarshal(args[name], &a.limit)
			if err == nil && a.limit < 1 {
				return a, "limit must be at least 1"
			}
		default:
			return a, "unknown argument " + name
		}
		if err != nil {
			return a, name + " has the wrong type"
		}
	}
	return a, ""
}

// TenantForm says how integration.context.get names the tenant.
type TenantForm string

// The forms that the contract leaves open.
const (
	TenantSnake  TenantForm = "tenant_id"
	TenantCamel  TenantForm = "tenantId"
	TenantNested TenantForm = "tenant.id"
	TenantAbsent TenantForm = "absent"
)

// Context is the answer of integration.context.get; an empty field has its
// default.
type Context struct {
	PrincipalType string          // by the token: tenant_service or user_delegated
	CapabilityKey string          // capabilities
	Capability    json.RawMessage // ["QUERY","SYNC"], for a person ["QUERY"]
	TenantForm    TenantForm      // TenantSnake
	Tenant        json.RawMessage // "t-1001"
	Raw           json.RawMessage // replaces the whole object
}

// contextOf makes the context of a token.
func (s *Server) contextOf(g grant) []byte {
	s.mu.Lock()
	c := s.context
	s.mu.Unlock()
	if c.Raw != nil {
		return c.Raw
	}
	capability := `["QUERY","SYNC"]`
	if g.personal {
		capability = `["QUERY"]`
	}
	or := func(raw json.RawMessage, fallback string) string {
		if len(raw) > 0 {
			return string(raw)
		}
		return fallback
	}
	b := fmt.Appendf(nil, `{"principal_type":%q,%q:%s`, orString(c.PrincipalType, principalOf(g)),
		orString(c.CapabilityKey, "capabilities"), or(c.Capability, capability))
	tenant := or(c.Tenant, `"t-1001"`)
	switch c.TenantForm {
	case TenantAbsent:
	case TenantNested:
		b = fmt.Appendf(b, `,"tenant":{"id":%s,"name":"示例物业"}`, tenant)
	default:
		b = fmt.Appendf(b, `,%q:%s`, orString(string(c.TenantForm), string(TenantSnake)), tenant)
	}
	return append(b, '}')
}

func orString(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// pageNumber reads from the cursor which page of its round a call asks for.
func (s *Server) pageNumber(args []byte) int {
	var a struct {
		Cursor *string `json:"cursor"`
	}
	if bytes.Contains(args, []byte(`"cursor"`)) && json.Unmarshal(args, &a) == nil && a.Cursor != nil {
		if c, ok := s.openCursor(*a.Cursor); ok {
			return c.Page + 1
		}
	}
	return 1
}
