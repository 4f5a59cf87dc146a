package sync

import (
	"context"
	"fmt"
	"slices"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// Refusal is why the remote, as it presents itself, may not be scanned
// (contract §6, last paragraph). The mirror was not touched.
type Refusal struct {
	Reason    string // one of the Reason constants
	Message   string // what was seen
	Hint      string // what a person can do
	RequestID string // of the call that showed it
}

// The reasons of a Refusal.
const (
	ReasonPrincipal  = "NOT_A_SERVICE_TOKEN"
	ReasonCapability = "NO_SYNC_CAPABILITY"
	ReasonTenant     = "ANOTHER_TENANT"
	ReasonTool       = "MISSING_TOOL"
)

// Error says what was seen, without the hint.
func (r *Refusal) Error() string { return "sync: " + r.Message }

const (
	servicePrincipal = "tenant_service"
	syncCapability   = "SYNC"
)

// Vet checks an identity against the contract and against the tenant that
// the mirror was filled from. An empty tenant on either side proves nothing
// and passes.
func Vet(id remote.Identity, tenant string) error {
	switch {
	case id.PrincipalType != servicePrincipal:
		return &Refusal{
			Reason:    ReasonPrincipal,
			Message:   fmt.Sprintf("the token's principal_type is %.60q, and only %q may scan", id.PrincipalType, servicePrincipal),
			Hint:      "use a service key (X-Open-Key) of the tenant, not a personal token",
			RequestID: id.RequestID,
		}
	case !slices.Contains(id.Capabilities, syncCapability):
		return &Refusal{
			Reason:    ReasonCapability,
			Message:   fmt.Sprintf("the token's capabilities are %.200q, and %s is not among them", id.Capabilities, syncCapability),
			Hint:      "ask the Xiaoqu administrator to bind the scope \"sync\" to this service",
			RequestID: id.RequestID,
		}
	case tenant != "" && id.TenantID != "" && tenant != id.TenantID:
		return &Refusal{
			Reason:    ReasonTenant,
			Message:   fmt.Sprintf("the token belongs to tenant %.80q, and this mirror was filled from tenant %.80q", id.TenantID, tenant),
			Hint:      "use the other tenant's key, or give this tenant a schema of its own (database.schema)",
			RequestID: id.RequestID,
		}
	}
	return nil
}

// VetTool checks that a resource's tool is offered (contract §4.1).
func VetTool(tools []string, resource string) error {
	tool := resource + ".changes.list"
	if slices.Contains(tools, tool) {
		return nil
	}
	return &Refusal{
		Reason:  ReasonTool,
		Message: fmt.Sprintf("the remote does not offer the tool %s to this token; it offers %.300q", tool, tools),
		Hint:    "check the spelling of the resource, or ask the Xiaoqu administrator to add the tool to the scope",
	}
}

// present asks the remote who we are and what it offers, and checks both for
// the resources. It returns the identity, one verdict per resource (nil or
// *Refusal), and an error when the question itself could not be put or the
// identity as a whole is refused.
func (e *Engine) present(ctx context.Context, tenant string, resources []string) (remote.Identity, map[string]error, error) {
	c := &caller{source: e.source, log: e.opts.Logger, pace: e.pace, waiting: e.opts.Waiting}
	var id remote.Identity
	err := c.call(ctx, 0, func(ctx context.Context, _ int) (err error) {
		id, err = e.source.Identity(ctx)
		return err
	})
	if err != nil {
		return id, nil, err
	}
	if err := Vet(id, tenant); err != nil {
		return id, nil, err
	}
	tools, err := e.offered(ctx, c, resources)
	if err != nil {
		return id, nil, err
	}
	verdicts := make(map[string]error, len(resources))
	for _, r := range resources {
		verdicts[r] = VetTool(tools, r)
	}
	return id, verdicts, nil
}

// offered are the tools that the token may call. They are asked for once, and
// again when one is missing or the remote refused a call: who the token belongs
// to is asked before every scan (contract §6), what it may do the calls show.
func (e *Engine) offered(ctx context.Context, c *caller, resources []string) ([]string, error) {
	if tools := e.memory.known(); !slices.ContainsFunc(resources, func(r string) bool { return VetTool(tools, r) != nil }) {
		return tools, nil
	}
	var tools []string
	err := c.call(ctx, 0, func(ctx context.Context, _ int) (err error) {
		tools, err = e.source.Tools(ctx)
		return err
	})
	if err == nil {
		e.memory.learn(tools)
	}
	return tools, err
}
