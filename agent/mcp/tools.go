package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// tool is a capability as tools/list shows it. The x-agentuse-* words stand beside
// MCP's own, as AgentUse has it.
type tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema"`
	Annotations annotations     `json:"annotations"`
	Meta        toolMeta        `json:"_meta"`

	ID           string   `json:"x-agentuse-id"`
	Idempotent   bool     `json:"x-agentuse-idempotent"`
	Risk         string   `json:"x-agentuse-risk-level"`
	Capabilities []string `json:"x-agentuse-capabilities"`
}

type annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

type toolMeta struct {
	Version       string   `json:"xiaoya/version"`
	PricePoints   int      `json:"xiaoya/pricePoints"`
	Scopes        []string `json:"xiaoya/requiredScopes"`
	Mode          string   `json:"xiaoya/executionMode"`
	ArtifactTypes []string `json:"xiaoya/artifactTypes"`
	Timeout       int64    `json:"xiaoya/timeoutSeconds"`
}

// toolOf renders a capability. Its risk level is L0 where it only reads, L1 where it
// makes the worker do what the timetable would, L2 where it takes a decision that a
// person is asked for. L3, what cannot be undone, is nothing here: a mirror can be
// built again.
func toolOf(a Application, c *agent.Capability) (tool, error) {
	output, err := outputSchema(c)
	if err != nil {
		return tool{}, fmt.Errorf("mcp: the output schema of %s: %w", c.ID, err)
	}
	t := tool{
		Name: c.Name(), Title: c.Title, Description: c.Description, Input: c.Input, Output: output,
		Annotations: annotations{ReadOnly: !c.Write, Destructive: c.Risk == agent.High, Idempotent: c.Idempotent, OpenWorld: c.Write},
		Meta: toolMeta{
			Version: a.Version, Scopes: []string{}, Mode: "sync", ArtifactTypes: []string{},
			Timeout: min(max(int64((c.Timeout+time.Second-1)/time.Second), 1), 3600),
		},
		ID: c.ID, Idempotent: c.Idempotent, Capabilities: []string{"read", verb(c.ID)},
	}
	if a.Chinese {
		t.Title = c.TitleZH
	}
	if c.Async {
		t.Meta.Mode = "async"
	}
	if c.Documents {
		t.Meta.ArtifactTypes = []string{"markdown", "json"}
	}
	if c.Write {
		t.Capabilities[0] = "write"
	}
	t.Risk = c.Level()
	return t, nil
}

// verb is what a capability does to its subject: "get" of records.get.
func verb(id string) string { return id[strings.LastIndexByte(id, '.')+1:] }

func toolsOf(a Application, all []*agent.Capability) ([]tool, error) {
	tools := make([]tool, 0, len(all))
	for _, c := range all {
		t, err := toolOf(a, c)
		if err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// listing is the result of tools/list.
func listing(a Application, all []*agent.Capability) ([]byte, error) {
	tools, err := toolsOf(a, all)
	if err != nil {
		return nil, err
	}
	return text(map[string]any{"tools": tools})
}

// outputSchema is the envelope's, true for every answer: its data is the capability's
// output, the task of a call that was accepted or cancelled, or why it failed.
func outputSchema(c *agent.Capability) (json.RawMessage, error) {
	var output map[string]json.RawMessage
	if err := json.Unmarshal(c.Output, &output); err != nil {
		return nil, err
	}
	dialect, ok := output["$schema"]
	delete(output, "$schema") // it speaks for a whole schema
	words := func(s ...string) map[string]any { return map[string]any{"type": "string", "enum": s} }
	str := map[string]any{"type": "string"}
	closed := func(properties map[string]any, required ...string) map[string]any {
		return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	}
	data := []any{output, closed(map[string]any{
		"errorCode": str, "errorClass": str, "message": str, "retryable": map[string]any{"type": "boolean"}, "retryAfterSeconds": map[string]any{"type": "integer"},
		"field": str, "suggestions": map[string]any{"type": "array", "items": str}, "requestId": str, "details": map[string]any{}, "taskId": str,
	}, "errorCode", "errorClass", "message", "retryable")}
	if c.Async {
		data = append(data, closed(map[string]any{"taskId": str}, "taskId"))
	}
	whole := closed(map[string]any{
		"status": words("accepted", "completed", "failed", "cancelled"), "summary": str,
		"data": map[string]any{"type": "object", "anyOf": data},
		"artifacts": map[string]any{"type": "array", "maxItems": 10, "items": closed(map[string]any{
			"type": words("markdown", "json", "file"), "title": str, "url": map[string]any{"type": "string", "format": "uri"}, "mimeType": str,
			"size": map[string]any{"type": "integer", "minimum": 0}, "sha256": map[string]any{"type": "string", "pattern": "^[0-9a-f]{64}$"},
		}, "type", "title", "url", "mimeType", "size", "sha256")},
	}, "status", "summary", "data", "artifacts")
	if ok {
		whole["$schema"] = dialect
	}
	return text(whole)
}
