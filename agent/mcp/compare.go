package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Change is one difference between two manifests. Review says whether the platform
// must look again before it is used.
type Change struct {
	Tool   string // "" for the application itself
	What   string // such as "inputSchema", "xiaoya/pricePoints", "removed"
	Says   string // for a person
	Review bool
}

// comparison gathers changes.
type comparison struct {
	tool    string
	changes []Change
}

func (c *comparison) note(review bool, what, format string, a ...any) {
	c.changes = append(c.changes, Change{c.tool, what, fmt.Sprintf(format, a...), review})
}

// Compare names every change between the manifest that was reviewed last and the one
// of now, in the order of tools. A contract's change needs another review (Xiaoya,
// "Manifest and review"): what is called, taken, given, allowed, charged or promised.
// What only people read, and what asks for less, does not.
func Compare(reviewed, now []byte) ([]Change, error) {
	old, err := parseManifest(reviewed)
	if err != nil {
		return nil, err
	}
	fresh, err := parseManifest(now)
	if err != nil {
		return nil, err
	}
	c := &comparison{}
	c.application(old, fresh)
	before, after := byName(old.Tools), byName(fresh.Tools)
	var names []string
	for _, t := range slices.Concat(old.Tools, fresh.Tools) {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		c.tool = name
		was, had := before[name]
		is, has := after[name]
		switch {
		case !has:
			c.note(true, "removed", "the tool is gone")
		case !had:
			c.note(true, "added", "the tool is new")
		default:
			c.contract(was, is)
		}
	}
	return c.changes, nil
}

func byName(tools []tool) map[string]tool {
	m := make(map[string]tool, len(tools))
	for _, t := range tools {
		m[t.Name] = t
	}
	return m
}

func (c *comparison) application(old, fresh manifest) {
	for _, x := range []struct {
		what, was, is string
		review        bool
	}{
		{"id", old.ID, fresh.ID, true},
		{"entryUrl", old.EntryURL, fresh.EntryURL, true},
		{"mcpUrl", old.MCPURL, fresh.MCPURL, true},
		{"callbackUrl", old.CallbackURL, fresh.CallbackURL, true},
		{"version", old.Version, fresh.Version, false},
		{"name", old.Name, fresh.Name, false},
		{"description", old.Description, fresh.Description, false},
	} {
		if x.was != x.is {
			c.note(x.review, x.what, "%q became %q", x.was, x.is)
		}
	}
	for _, v := range fresh.Protocols {
		if !slices.Contains(old.Protocols, v) {
			c.note(false, "protocolVersions", "%s is new", v)
		}
	}
	for _, v := range old.Protocols {
		if !slices.Contains(fresh.Protocols, v) {
			c.note(true, "protocolVersions", "%s is gone", v)
		}
	}
}

// contract compares one tool with itself. The description is in the contract: it is
// what the AI goes by.
func (c *comparison) contract(was, is tool) {
	if was.Title != is.Title {
		c.note(false, "title", "%q became %q", was.Title, is.Title)
	}
	if was.Description != is.Description {
		c.note(true, "description", "the AI reads another text")
	}
	if !sameJSON(was.Input, is.Input) {
		c.note(true, "inputSchema", "another input is taken, or it is described in another way")
	}
	if !sameJSON(was.Output, is.Output) {
		c.note(true, "outputSchema", "another output is promised")
	}
	if was.Annotations != is.Annotations {
		c.note(true, "annotations", "%+v became %+v", was.Annotations, is.Annotations)
	}
	if was.ID != is.ID || was.Idempotent != is.Idempotent || !slices.Equal(was.Capabilities, is.Capabilities) {
		c.note(true, "x-agentuse", "the id, the idempotence or the kind of access changed")
	}
	if was.Risk != is.Risk {
		c.note(is.Risk > was.Risk, "x-agentuse-risk-level", "%s became %s", was.Risk, is.Risk)
	}
	c.meta(was.Meta, is.Meta)
}

func (c *comparison) meta(was, is toolMeta) {
	if was.Version != is.Version {
		c.note(false, "xiaoya/version", "%s became %s", was.Version, is.Version)
	}
	if was.PricePoints != is.PricePoints {
		c.note(is.PricePoints > was.PricePoints, "xiaoya/pricePoints", "%d became %d", was.PricePoints, is.PricePoints)
	}
	if was.Mode != is.Mode {
		c.note(true, "xiaoya/executionMode", "%s became %s", was.Mode, is.Mode)
	}
	if was.Timeout != is.Timeout {
		c.note(true, "xiaoya/timeoutSeconds", "%d became %d", was.Timeout, is.Timeout)
	}
	if more := without(is.Scopes, was.Scopes); len(more) > 0 {
		c.note(true, "xiaoya/requiredScopes", "more is asked for: %s", strings.Join(more, ", "))
	}
	if fewer := without(was.Scopes, is.Scopes); len(fewer) > 0 {
		c.note(false, "xiaoya/requiredScopes", "not asked for any more: %s", strings.Join(fewer, ", "))
	}
	if len(without(is.ArtifactTypes, was.ArtifactTypes))+len(without(was.ArtifactTypes, is.ArtifactTypes)) > 0 {
		c.note(true, "xiaoya/artifactTypes", "%v became %v", was.ArtifactTypes, is.ArtifactTypes)
	}
}

func without(all, those []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(those, s) })
}

// sameJSON compares but for space and the order of names.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return exactly(a, &x) && exactly(b, &y) && reflect.DeepEqual(x, y)
}

func exactly(text json.RawMessage, v *any) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v) == nil
}
