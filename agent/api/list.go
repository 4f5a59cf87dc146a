package api

import (
	"encoding/json"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// Listed is a capability in the machine-readable list (AgentUse).
type Listed struct {
	ID             string          `json:"id"`
	Title          string          `json:"title"`
	Description    string          `json:"description"`
	Input          json.RawMessage `json:"input"`
	Output         json.RawMessage `json:"output"`
	Auth           Auth            `json:"auth"`
	Risk           Risk            `json:"risk"`
	Result         ResultKind      `json:"result"`
	TimeoutSeconds float64         `json:"timeout_seconds"`
	Personal       []string        `json:"personal_data"`
}

// Auth is what a caller needs.
type Auth struct {
	Scheme string   `json:"scheme"` // of this door
	Scopes []string `json:"scopes"` // any of them will do
}

// Risk is what a call may do.
type Risk struct {
	Level      string `json:"level"` // as agent.Capability.Level
	Writes     bool   `json:"writes"`
	Idempotent bool   `json:"idempotent"`
}

// ResultKind is how an answer comes.
type ResultKind struct {
	Mode      string `json:"mode"` // sync or async
	Documents bool   `json:"documents"`
}

// List is the catalogue in the words of AgentUse.
func List(all []*agent.Capability) []Listed {
	out := make([]Listed, 0, len(all))
	for _, c := range all {
		scopes := []string{c.ID, "*"}
		if !c.Write {
			scopes = append(scopes, "read")
		}
		mode := "sync"
		if c.Async {
			mode = "async"
		}
		personal := c.Personal
		if personal == nil {
			personal = []string{}
		}
		out = append(out, Listed{
			ID: c.ID, Title: c.Title, Description: c.Description, Input: c.Input, Output: c.Output,
			Auth: Auth{Scheme: "bearer", Scopes: scopes}, Risk: Risk{Level: c.Level(), Writes: c.Write, Idempotent: c.Idempotent},
			Result: ResultKind{Mode: mode, Documents: c.Documents}, TimeoutSeconds: c.Timeout.Seconds(), Personal: personal,
		})
	}
	return out
}
