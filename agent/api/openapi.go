package api

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// node is a part of the document while it is written down.
type node map[string]any

// OpenAPI is the door's description, an OpenAPI 3.1 document. What AgentUse adds
// stands beside it under x-agentuse-*.
func OpenAPI(all []*agent.Capability, publicURL, version string) []byte {
	paths := node{
		"/api/v1/capabilities":      node{"get": operation("listCapabilities", "List what can be asked for", nil, node{"type": "object"})},
		"/api/v1/tasks/{id}":        node{"parameters": []any{idParameter()}, "get": operation("getTask", "Tell how a task stands", nil, ref("Task"))},
		"/api/v1/tasks/{id}/cancel": node{"parameters": []any{idParameter()}, "post": operation("cancelTask", "Cancel a task that is not being worked on", nil, ref("Task"))},
	}
	for _, c := range all {
		paths["/api/v1/capabilities/"+c.ID] = node{"post": capability(c)}
	}
	doc := node{
		"openapi":           "3.1.0",
		"jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
		"info": node{
			"title": "xiaoqu-sync for agents", "version": cmp.Or(version, "devel"),
			"description": "Ask a PostgreSQL mirror of a Xiaoqu tenant, and operate its worker.",
		},
		"servers":  []any{node{"url": cmp.Or(publicURL, "/")}},
		"security": []any{node{"bearer": []any{}}},
		"paths":    paths,
		"components": node{
			"securitySchemes": node{"bearer": node{"type": "http", "scheme": "bearer"}},
			"schemas":         node{"Error": errorSchema(), "Meta": metaSchema(), "Task": taskSchema()},
		},
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		panic("api: the document has no JSON: " + err.Error()) // it always has
	}
	return b.Bytes()
}

func capability(c *agent.Capability) node {
	output := any(undialected(c.Output))
	if c.Async {
		output = ref("Task")
	}
	op := operation(c.Name(), c.Title, undialected(c.Input), output)
	op["description"] = c.Description
	op["x-agentuse-idempotent"] = c.Idempotent
	op["x-agentuse-risk-level"] = c.Level()
	kinds := []string{"read"}
	if c.Write {
		kinds = []string{"write"}
	}
	op["x-agentuse-capabilities"] = kinds
	op["parameters"] = []any{node{
		"name": "Idempotency-Key", "in": "header", "description": "The same key gives the same answer.",
		"schema": node{"type": "string", "maxLength": maxKey},
	}}
	if c.Async {
		responses := op["responses"].(node) //nolint:forcetypeassert // made just above
		responses["202"] = responses["200"]
	}
	return op
}

// undialected takes the dialect off a schema: the document names it once.
func undialected(schema json.RawMessage) node {
	var n node
	if err := json.Unmarshal(schema, &n); err != nil {
		panic("api: a schema of the catalogue is no JSON: " + err.Error())
	}
	delete(n, "$schema")
	return n
}

func operation(id, summary string, input, output any) node {
	op := node{"operationId": id, "summary": summary, "responses": node{
		"200":     node{"description": "Done.", "content": content(envelope(output))},
		"default": node{"description": "Not done; error.code says why.", "content": content(refusal())},
	}}
	if n, ok := input.(node); ok && n != nil {
		op["requestBody"] = node{"required": true, "content": content(n)}
	}
	return op
}

func content(schema any) node { return node{"application/json": node{"schema": schema}} }

func ref(name string) node { return node{"$ref": "#/components/schemas/" + name} }

func idParameter() node {
	return node{"name": "id", "in": "path", "required": true, "schema": node{"type": "string"}}
}

func envelope(data any) node {
	return closed(node{"ok": node{"const": true}, "data": data, "warnings": node{"type": "array", "items": node{"type": "string"}}, "meta": ref("Meta")}, "ok", "data", "warnings", "meta")
}

func refusal() node {
	return closed(node{"ok": node{"const": false}, "error": ref("Error"), "meta": ref("Meta")}, "ok", "error", "meta")
}

func closed(properties node, required ...string) node {
	return node{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func errorSchema() node {
	return closed(node{
		"code": node{"type": "string"}, "message": node{"type": "string"}, "details": node{"type": "object"}, "retryable": node{"type": "boolean"},
		"suggestions": node{"type": "array", "items": node{"type": "string"}}, "request_id": node{"type": "string"},
	}, "code", "message", "details", "retryable", "suggestions", "request_id")
}

func metaSchema() node {
	return closed(node{
		"operation_id": node{"type": "string"}, "timestamp": node{"type": "string", "format": "date-time"},
		"schema_version": node{"type": "string"}, "summary": node{"type": "string"},
	}, "operation_id", "timestamp", "schema_version")
}

func taskSchema() node {
	document := closed(node{
		"title": node{"type": "string"}, "url": node{"type": "string"}, "type": node{"type": "string"}, "size": node{"type": "integer"},
		"sha256": node{"type": "string"}, "expires_at": node{"type": "string", "format": "date-time"},
	}, "title", "url", "type", "size", "sha256", "expires_at")
	return closed(node{
		"id": node{"type": "string"}, "capability": node{"type": "string"},
		"state":   node{"enum": []agent.State{agent.Accepted, agent.Running, agent.Choosing, agent.Completed, agent.Failed, agent.Cancelled}},
		"summary": node{"type": "string"}, "result": node{"type": []string{"object", "null"}},
		"error":     node{"anyOf": []any{ref("Error"), node{"type": "null"}}},
		"documents": node{"type": "array", "items": document}, "created_at": node{"type": "string", "format": "date-time"},
		"ended_at": node{"type": []string{"string", "null"}, "format": "date-time"},
	}, "id", "capability", "state", "summary", "result", "error", "documents", "created_at", "ended_at")
}
