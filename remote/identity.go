package remote

import (
	"context"
	"strings"
	"unicode"
)

// Identity is who the token makes us (contract §6).
type Identity struct {
	PrincipalType string
	Capabilities  []string // whole elements, in the remote's order
	TenantID      string   // exact text; "" when the context gives none
	RequestID     string
}

// Identity calls integration.context.get. It fails with an [*Error], an error of Tokens, or the context's error.
func (c *Client) Identity(ctx context.Context) (Identity, error) {
	var id Identity
	err := c.callTool(ctx, "integration.context.get", noArguments(), func(_ *exchange, r toolResult) (int, error) {
		id = readIdentity(r.data)
		id.RequestID = r.requestID
		return 0, nil
	})
	if err != nil {
		return Identity{}, err
	}
	return id, nil
}

func readIdentity(data node) Identity {
	var id Identity
	id.PrincipalType, _ = data.first("principal_type", "principalType").str()
	for _, name := range []string{"capabilities", "capability"} {
		id.Capabilities = append(id.Capabilities, capabilities(data.members[name])...)
	}
	tenant := data.first("tenant_id", "tenantId")
	if !tenant.present() {
		tenant = data.members["tenant"].first("id")
	}
	id.TenantID, _ = tenant.text()
	id.TenantID = strings.ReplaceAll(id.TenantID, "\x00", "\uFFFD") // which no real tenant has, and no database stores
	return id
}

// capabilities reads a list of names, or one text that separates them. Names are whole: ASYNC is not SYNC.
func capabilities(n node) []string {
	if text, ok := n.str(); ok {
		return strings.FieldsFunc(text, func(r rune) bool {
			return strings.ContainsRune(",;|", r) || unicode.IsSpace(r)
		})
	}
	var all []string
	for _, item := range n.items {
		if text, ok := (node{raw: []byte(item)}).str(); ok {
			all = append(all, strings.TrimSpace(text))
		}
	}
	return all
}
