package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// The catalogue's names and schemas are a contract with three platforms.
func TestEveryCapabilityIsWhole(t *testing.T) {
	s, err := agent.New(agent.Options{
		Resources: []agent.Resource{{Name: "users"}, {Name: "contracts", Columns: []agent.Column{{Name: "status", Type: "text"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Capabilities() {
		if c.Write {
			t.Errorf("%s writes and was not allowed", c.ID)
		}
		if c.Title == "" || c.TitleZH == "" || c.Description == "" || c.Timeout <= 0 {
			t.Errorf("%s lacks a text or a time", c.ID)
		}
		for _, schema := range []json.RawMessage{c.Input, c.Output} {
			if err := agent.CheckSchema(schema); err != nil {
				t.Errorf("%s: %v", c.ID, err)
			}
		}
	}
}
