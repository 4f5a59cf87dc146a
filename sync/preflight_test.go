package sync

import (
	"errors"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

func TestVet(t *testing.T) {
	good := remote.Identity{PrincipalType: "tenant_service", Capabilities: []string{"QUERY", "SYNC"}, TenantID: "t-1", RequestID: "r-1"}
	with := func(change func(*remote.Identity)) remote.Identity {
		id := good
		change(&id)
		return id
	}
	cases := map[string]struct {
		id     remote.Identity
		tenant string
		reason string
	}{
		"a service token with SYNC":           {good, "t-1", ""},
		"the first tenant":                    {good, "", ""},
		"a context that names no tenant":      {with(func(i *remote.Identity) { i.TenantID = "" }), "t-1", ""},
		"a personal token":                    {with(func(i *remote.Identity) { i.PrincipalType = "user_delegated" }), "t-1", ReasonPrincipal},
		"no principal at all":                 {with(func(i *remote.Identity) { i.PrincipalType = "" }), "", ReasonPrincipal},
		"a principal in another case":         {with(func(i *remote.Identity) { i.PrincipalType = "TENANT_SERVICE" }), "", ReasonPrincipal},
		"no capability":                       {with(func(i *remote.Identity) { i.Capabilities = nil }), "", ReasonCapability},
		"SYNC as a part of another word":      {with(func(i *remote.Identity) { i.Capabilities = []string{"ASYNC", "SYNC_READ"} }), "", ReasonCapability},
		"another tenant than the mirror's":    {good, "t-2", ReasonTenant},
		"a tenant that only begins like ours": {good, "t-10", ReasonTenant},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := Vet(c.id, c.tenant)
			var r *Refusal
			switch {
			case c.reason == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.reason != "" && (!errors.As(err, &r) || r.Reason != c.reason || r.RequestID != "r-1" || r.Hint == ""):
				t.Errorf("error %#v, want %s with request id and hint", err, c.reason)
			}
		})
	}
}

func TestVetTool(t *testing.T) {
	offered := []string{"integration.context.get", "users.changes.list"}
	if err := VetTool(offered, "users"); err != nil {
		t.Error(err)
	}
	var r *Refusal
	if err := VetTool(offered, "contracts"); !errors.As(err, &r) || r.Reason != ReasonTool {
		t.Errorf("error %v, want %s", err, ReasonTool)
	}
}
