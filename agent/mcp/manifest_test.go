package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/mcp"
)

type nobody struct{}

func (nobody) Work(context.Context, agent.Job) (agent.Report, error) { return agent.Report{}, nil }

// written is the manifest of a catalogue with everything switched on, or of some of
// its tools.
func written(t testing.TB, some ...string) []byte {
	t.Helper()
	s, err := agent.New(agent.Options{Resources: resources(), Allow: agent.Writing(), Worker: nobody{}})
	if err != nil {
		t.Fatal(err)
	}
	all := s.Capabilities()
	if len(some) > 0 {
		all = slices.DeleteFunc(all, func(c *agent.Capability) bool { return !slices.Contains(some, c.Name()) })
	}
	text, err := mcp.Manifest(mcp.Application{
		ID: agentID, Version: "1.2.3", Name: "Mirror", Description: "The tenant's mirror.",
		EntryURL: "https://mirror.example.com/", MCPURL: "https://mirror.example.com/mcp", CallbackURL: "https://xiaoya.example.com/api/v1/open-agent-tools/callbacks",
	}, all)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// edited is the manifest with one thing in it changed. A path leads to it: tools are
// found by name; value nil removes it.
func edited(t testing.TB, manifest []byte, path string, value any) []byte {
	t.Helper()
	m := decoded(t, manifest)
	at, keys := m, strings.Split(path, " ")
	if tools := m["tools"].([]any); keys[0] == "tools" && len(keys) > 1 {
		i := slices.IndexFunc(tools, func(x any) bool { return x.(map[string]any)["name"] == keys[1] })
		if i < 0 {
			t.Fatalf("there is no %s", path)
		}
		if len(keys) == 2 {
			m["tools"] = slices.Delete(tools, i, i+1)
			keys = nil
		} else {
			at, keys = tools[i].(map[string]any), keys[2:]
		}
	}
	for len(keys) > 1 {
		at, keys = at[keys[0]].(map[string]any), keys[1:]
	}
	if len(keys) == 1 {
		if at[keys[0]] = value; value == nil {
			delete(at, keys[0])
		}
	}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOurManifestCanBeSubmitted(t *testing.T) {
	m := written(t)
	problems, err := mcp.Check(m)
	if err != nil || len(problems) > 0 {
		t.Errorf("%+v, %v", problems, err)
	}
	if again := written(t); string(again) != string(m) {
		t.Error("the manifest differs from itself")
	}
	if changes, err := mcp.Compare(m, edited(t, m, "version", "1.2.3")); err != nil || len(changes) > 0 {
		t.Errorf("%+v, %v", changes, err)
	}
	for _, text := range []string{"", "[]", "<html>"} {
		if _, err := mcp.Check([]byte(text)); err == nil {
			t.Errorf("%q was checked", text)
		}
		if _, err := mcp.Compare(m, []byte(text)); err == nil {
			t.Errorf("%q was compared", text)
		}
	}
}

func TestAChangeOfTheContractNeedsAReview(t *testing.T) {
	m := written(t, "records_get", "verify_run")
	tool := func(rest string) string { return "tools verify_run " + rest }
	for _, c := range []struct {
		path     string
		was, is  any
		tool     string
		what     string
		reviewed bool
	}{
		{"tools verify_run", 0, nil, "verify_run", "removed", true},
		{tool("inputSchema properties resources maxItems"), 2, 1, "verify_run", "inputSchema", true},
		{tool("inputSchema properties resources description"), "a", "b", "verify_run", "inputSchema", true},
		{tool("outputSchema required"), []string{"status"}, []string{}, "verify_run", "outputSchema", true},
		{tool("description"), "a", "b", "verify_run", "description", true},
		{tool("title"), "a", "b", "verify_run", "title", false},
		{tool("annotations destructiveHint"), false, true, "verify_run", "annotations", true},
		{tool("_meta xiaoya/pricePoints"), 0, 20, "verify_run", "xiaoya/pricePoints", true},
		{tool("_meta xiaoya/pricePoints"), 20, 0, "verify_run", "xiaoya/pricePoints", false},
		{tool("_meta xiaoya/requiredScopes"), []string{}, []string{"user:read"}, "verify_run", "xiaoya/requiredScopes", true},
		{tool("_meta xiaoya/requiredScopes"), []string{"user:read"}, []string{}, "verify_run", "xiaoya/requiredScopes", false},
		{tool("_meta xiaoya/executionMode"), "sync", "async", "verify_run", "xiaoya/executionMode", true},
		{tool("_meta xiaoya/executionMode"), "async", "sync", "verify_run", "xiaoya/executionMode", true},
		{tool("_meta xiaoya/timeoutSeconds"), 60, 61, "verify_run", "xiaoya/timeoutSeconds", true},
		{tool("_meta xiaoya/artifactTypes"), []string{"json"}, []string{"html"}, "verify_run", "xiaoya/artifactTypes", true},
		{tool("_meta xiaoya/version"), "1", "2", "verify_run", "xiaoya/version", false},
		{tool("x-agentuse-risk-level"), "L1", "L2", "verify_run", "x-agentuse-risk-level", true},
		{tool("x-agentuse-risk-level"), "L1", "L0", "verify_run", "x-agentuse-risk-level", false},
		{tool("x-agentuse-idempotent"), true, false, "verify_run", "x-agentuse", true},
		{"id", "a", "b", "", "id", true},
		{"mcpUrl", "https://a.example", "https://b.example", "", "mcpUrl", true},
		{"entryUrl", "https://a.example", "https://b.example", "", "entryUrl", true},
		{"callbackUrl", "https://a.example", "https://b.example", "", "callbackUrl", true},
		{"version", "1", "2", "", "version", false},
		{"name", "1", "2", "", "name", false},
		{"protocolVersions", []string{"a", "b"}, []string{"a"}, "", "protocolVersions", true},
		{"protocolVersions", []string{"a"}, []string{"a", "b"}, "", "protocolVersions", false},
	} {
		was := m
		if c.was != 0 {
			was = edited(t, m, c.path, c.was)
		}
		changes, err := mcp.Compare(was, edited(t, was, c.path, c.is))
		if err != nil || len(changes) != 1 {
			t.Errorf("%s from %v to %v: %+v, %v", c.path, c.was, c.is, changes, err)
			continue
		}
		got := changes[0]
		if got.Tool != c.tool || got.What != c.what || got.Review != c.reviewed || got.Says == "" {
			t.Errorf("%s from %v to %v: %+v", c.path, c.was, c.is, got)
		}
	}
	changes, err := mcp.Compare(edited(t, m, "tools verify_run", nil), m)
	want := []mcp.Change{{Tool: "verify_run", What: "added", Says: "the tool is new", Review: true}}
	if diff := cmp.Diff(want, changes); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestTheReleaseChecklistFindsWhatIsWrong(t *testing.T) {
	m := written(t, "records_get", "verify_run")
	input := func(rest string) string { return "tools records_get inputSchema " + rest }
	str := map[string]any{"type": "string", "maxLength": 9}
	for _, c := range []struct {
		path  string
		value any
		rule  string
	}{
		{"id", "", "id"},
		{"id", "a b", "id"},
		{"version", nil, "version"},
		{"description", nil, "display"},
		{"tools", []any{}, "tools"},
		{"mcpUrl", "http://mirror.example.com/mcp", "https"},
		{"mcpUrl", "https://10.0.0.1/mcp", "https"},
		{"mcpUrl", "https://localhost/mcp", "https"},
		{"mcpUrl", "https://mirror.internal/mcp", "https"},
		{"entryUrl", "https://*.example.com/", "https"},
		{"callbackUrl", nil, "callback"},
		{"callbackUrl", "https://xiaoya.example.com/callbacks?to=x", "callback"},
		{"tools records_get name", "records.get", "name"},
		{"tools records_get name", "verify_run", "name"},
		{"tools records_get description", nil, "display"},
		{"tools records_get _meta xiaoya/pricePoints", nil, "metadata"},
		{"tools records_get _meta xiaoya/requiredScopes", nil, "metadata"},
		{"tools records_get _meta xiaoya/pricePoints", -1, "price"},
		{"tools records_get _meta xiaoya/executionMode", "later", "executionMode"},
		{"tools records_get _meta xiaoya/timeoutSeconds", 3601, "timeout"},
		{"tools records_get _meta xiaoya/timeoutSeconds", 0, "timeout"},
		{"tools records_get _meta xiaoya/artifactTypes", []string{"pdf"}, "artifacts"},
		{"tools records_get annotations openWorldHint", nil, "annotations"},
		{"tools records_get annotations destructiveHint", true, "annotations"},
		{input("type"), "array", "inputSchema"},
		{input("type"), 5, "inputSchema"},
		{input("additionalProperties"), nil, "inputSchema"},
		{input("required"), nil, "inputSchema"},
		{input("properties id maxLength"), nil, "inputSchema"},
		{input("properties n"), map[string]any{"type": "integer"}, "inputSchema"},
		{input("properties l"), map[string]any{"type": "array", "items": str}, "inputSchema"},
		{input("properties team_id"), str, "trusted"},
		{input("properties invocationId"), str, "trusted"},
		{input("properties accessToken"), str, "trusted"},
		{"tools records_get outputSchema additionalProperties", nil, "outputSchema"},
		{"tools records_get outputSchema required", []string{"status"}, "outputSchema"},
		{"tools records_get outputSchema properties extra", str, "outputSchema"},
	} {
		problems, err := mcp.Check(edited(t, m, c.path, c.value))
		if err != nil || !slices.ContainsFunc(problems, func(p mcp.Problem) bool { return p.Rule == c.rule && p.Says != "" }) {
			t.Errorf("%s = %v: %+v, %v", c.path, c.value, problems, err)
		}
	}
}

func TestTitlesCanBeChinese(t *testing.T) {
	s, err := agent.New(agent.Options{Resources: resources()})
	if err != nil {
		t.Fatal(err)
	}
	text, err := mcp.Manifest(mcp.Application{ID: "x", Chinese: true}, s.Capabilities())
	for _, c := range s.Capabilities() {
		if err != nil || !strings.Contains(string(text), fmt.Sprintf("%q", c.TitleZH)) {
			t.Errorf("%s is not in the manifest, %v", c.TitleZH, err)
		}
	}
}
