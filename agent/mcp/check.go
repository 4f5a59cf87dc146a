package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// Problem is a line of the release checklist that does not hold.
type Problem struct {
	Tool string // "" for the application itself
	Rule string // such as "https", "price", "inputSchema"
	Says string
}

// checklist gathers problems.
type checklist struct {
	tool     string
	problems []Problem
}

func (c *checklist) must(ok bool, rule, format string, a ...any) {
	if !ok {
		c.problems = append(c.problems, Problem{c.tool, rule, fmt.Sprintf(format, a...)})
	}
}

// toolForm is a tool's name, stable over versions.
var toolForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// Check goes through Xiaoya's release checklist: the manifest, schemas, prices,
// scopes, execution modes and artifacts. No problem means that it can be submitted.
// The error is for what is no manifest at all.
func Check(text []byte) ([]Problem, error) {
	m, err := parseManifest(text)
	if err != nil {
		return nil, err
	}
	// What a struct fills with zeros must be spelled out, so the text is looked at too.
	var raw struct {
		Tools []map[string]json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("mcp: this is no manifest: %w", err)
	}
	c := &checklist{}
	c.application(m)
	names := map[string]bool{}
	for i, t := range m.Tools {
		c.tool = t.Name
		c.must(!names[t.Name], "name", "there are two tools of this name")
		names[t.Name] = true
		c.one(t, raw.Tools[i])
	}
	return c.problems, nil
}

func (c *checklist) application(m manifest) {
	c.must(m.ID != "" && !strings.ContainsAny(m.ID, " \t\n"), "id", "the application needs an id without spaces")
	c.must(m.Version != "", "version", "the application needs a version")
	c.must(m.Name != "" && m.Description != "", "display", "people need a name and a description")
	c.must(len(m.Tools) > 0, "tools", "there is no tool")
	c.must(public(m.EntryURL), "https", "entryUrl must be a public https address")
	c.must(public(m.MCPURL), "https", "mcpUrl must be a public https address")
	if slices.ContainsFunc(m.Tools, func(t tool) bool { return t.Meta.Mode == "async" }) || m.CallbackURL != "" {
		c.must(public(m.CallbackURL), "callback", "asynchronous tools need the platform's exact callback address: public https, no wildcard, no query")
	}
}

func (c *checklist) one(t tool, raw map[string]json.RawMessage) {
	c.must(toolForm.MatchString(t.Name), "name", "a name is lower case with underscores, of at most 64 characters")
	c.must(t.Title != "" && t.Description != "", "display", "a tool needs a title and a description")
	c.input(t.Input)
	c.output(t.Output)
	var meta, hints map[string]json.RawMessage
	_ = json.Unmarshal(raw["_meta"], &meta) // what is missing is said below
	_ = json.Unmarshal(raw["annotations"], &hints)
	for _, key := range []string{"version", "pricePoints", "requiredScopes", "executionMode", "artifactTypes", "timeoutSeconds"} {
		v, ok := meta["xiaoya/"+key]
		c.must(ok && string(v) != "null", "metadata", "xiaoya/%s must be spelled out", key)
	}
	for _, key := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		c.must(hints[key] != nil, "annotations", "%s must be spelled out", key)
	}
	c.must(t.Meta.PricePoints >= 0, "price", "a price is not below 0")
	c.must(t.Meta.Mode == "sync" || t.Meta.Mode == "async", "executionMode", "the mode is sync or async")
	c.must(t.Meta.Timeout >= 1 && t.Meta.Timeout <= 3600, "timeout", "the time limit is 1 to 3600 seconds")
	kinds := []string{"text", "markdown", "html", "image", "audio", "video", "file", "json", "table", "link"}
	c.must(len(without(t.Meta.ArtifactTypes, kinds)) == 0, "artifacts", "an artifact's type is one of %s", strings.Join(kinds, ", "))
	c.must(!t.Annotations.ReadOnly || !t.Annotations.Destructive, "annotations", "what only reads destroys nothing")
}

// input checks that the schema compiles, is closed and bounded, and leaves nothing to
// the AI that is not its business.
func (c *checklist) input(text json.RawMessage) {
	err := agent.CheckSchema(text)
	c.must(err == nil, "inputSchema", "the schema does not compile: %v", err)
	var s map[string]any
	if json.Unmarshal(text, &s) != nil {
		return
	}
	c.must(s["type"] == "object", "inputSchema", "the input is an object")
	c.bounded("", s)
}

// bounded walks a schema's objects, texts, numbers and lists.
func (c *checklist) bounded(at string, s map[string]any) {
	where := "the input" + at
	_, words := s["enum"]
	switch s["type"] {
	case "object":
		c.must(s["additionalProperties"] == false, "inputSchema", "%s must refuse what it does not know", where)
		c.must(s["required"] != nil, "inputSchema", "%s must say what is required", where)
		properties, _ := s["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			c.must(!reserved(name), "trusted", "%s.%s: identity, tokens, invocations, callbacks, teams and prices are not the AI's", where, name)
			if p, ok := properties[name].(map[string]any); ok {
				c.bounded(at+"."+name, p)
			}
		}
	case "string":
		c.must(words || s["maxLength"] != nil, "inputSchema", "%s must say how long it may be", where)
	case "integer":
		c.must(words || s["minimum"] != nil && s["maximum"] != nil, "inputSchema", "%s must have a range", where)
	case "array":
		items, ok := s["items"].(map[string]any)
		c.must(ok && s["maxItems"] != nil, "inputSchema", "%s must say of what it is a list, and how long", where)
		c.bounded(at+"[]", items)
	}
	branches, _ := s["anyOf"].([]any)
	for _, b := range branches {
		if b, ok := b.(map[string]any); ok {
			c.bounded(at, b)
		}
	}
}

// reserved reports whether a property's name speaks of what a trusted side must say.
func reserved(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "_", ""))
	for _, word := range []string{"token", "invocation", "callback", "team", "price", "points", "billing", "charge", "tenant", "userid", "agentid", "authorization", "secret"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// output checks that the schema is the envelope's.
func (c *checklist) output(text json.RawMessage) {
	err := agent.CheckSchema(text)
	c.must(err == nil, "outputSchema", "the schema does not compile: %v", err)
	var s struct {
		Type       string                     `json:"type"`
		Required   []string                   `json:"required"`
		Properties map[string]json.RawMessage `json:"properties"`
		More       *bool                      `json:"additionalProperties"`
	}
	whole := []string{"status", "summary", "data", "artifacts"}
	ok := json.Unmarshal(text, &s) == nil && s.Type == "object" && s.More != nil && !*s.More && len(s.Properties) == len(whole)
	c.must(ok && len(without(whole, s.Required)) == 0, "outputSchema", "the output is the envelope: status, summary, data and artifacts, all required and nothing else")
}

// public reports whether an address is exact, https and not of a private network by
// its look.
func public(address string) bool {
	u, err := url.Parse(address)
	if err != nil || exact(address) != nil || u.Scheme != "https" {
		return false
	}
	host := u.Hostname()
	if a, err := netip.ParseAddr(host); err == nil {
		return !a.IsPrivate() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsUnspecified()
	}
	return strings.Contains(host, ".") && !strings.HasSuffix(host, ".local") && !strings.HasSuffix(host, ".internal")
}
