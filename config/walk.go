package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

const (
	noAlias     = "anchors and aliases are not read here"
	noAliasHint = "write the value itself"
)

// walker reads the parsed file against the table of settings.
type walker struct {
	*loader
	source string
}

// entry is one key of a mapping with its value.
type entry struct {
	key, value *yaml.Node
	name       string
	field      string // path from the top
}

// keyNames are what people call the service key when they look for a place for it.
func keyNames() []string {
	return []string{"open_key", "openkey", "key", "service_key", "servicekey", "api_key", "apikey", "xiaoqu_open_key"}
}

// meansKey says whether a name below a path holds a service key, or is one. A
// resource and a column may be called whatever they like.
func meansKey(path, name string) bool {
	plain := strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	column := strings.HasPrefix(path, resourcesName+".") && strings.HasSuffix(path, ".columns")
	return looksSecret(name) || (path != resourcesName && !column && slices.Contains(keyNames(), plain))
}

// findKeys refuses a service key wherever it stands, by its name or by its shape.
func (w *walker) findKeys(n *yaml.Node, field string) {
	const message = "the service key is never taken from the file"
	const hint = "set " + keyVariable
	switch n.Kind {
	case yaml.ScalarNode:
		if looksSecret(n.Value) {
			w.add(w.place(n, field), message, hint)
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			w.findKeys(c, field)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			path := join(field, showKey(key))
			if meansKey(field, key.Value) {
				w.add(w.place(key, path), message, hint)
				continue
			}
			w.findKeys(value, path)
		}
	}
}

// section reads one mapping: settings, sections, and resources.
func (w *walker) section(n *yaml.Node, path string) {
	for _, e := range w.entries(n, path) {
		if s, ok := w.setting(e.field); ok {
			w.scalar(s, e)
			continue
		}
		switch {
		case e.field == resourcesName:
			w.resources(e.value)
		case e.field == targetsName:
			w.alertTargets(e.value)
		case slices.Contains(w.children(path, true), e.name):
			w.section(e.value, e.field)
		default:
			w.unknown(e, w.children(path, false))
		}
	}
}

// entries are the usable keys of a mapping. A section without anything is empty.
func (w *walker) entries(n *yaml.Node, path string) []entry {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil
	}
	switch {
	case n.Kind == yaml.MappingNode:
	case n.Kind == yaml.ScalarNode && looksSecret(n.Value):
		return nil // reported by findKeys
	case n.Kind == yaml.AliasNode:
		w.add(w.place(n, path), noAlias, noAliasHint)
		return nil
	default:
		w.add(w.place(n, path), "want keys with values, found "+describe(n), "write key: value, one a line")
		return nil
	}
	var out []entry
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		e := entry{key: n.Content[i], value: n.Content[i+1], name: n.Content[i].Value}
		e.field = join(path, showKey(e.key))
		if meansKey(path, e.name) {
			continue // reported by findKeys
		}
		if e.key.Kind != yaml.ScalarNode || e.key.ShortTag() != "!!str" {
			w.add(w.place(e.key, e.field), "a key must be a plain name", "")
			continue
		}
		if earlier, ok := first[e.name]; ok {
			w.add(w.place(e.key, e.field), "stands there twice", "remove this one or the one in line "+itoa(earlier.Line))
			continue
		}
		first[e.name] = e.key
		out = append(out, e)
	}
	return out
}

func (l *loader) setting(name string) (setting, bool) {
	for _, s := range l.settings {
		if s.name == name {
			return s, true
		}
	}
	return setting{}, false
}

// children are the names that may stand below a path; sections only, or all.
func (w *walker) children(path string, sections bool) []string {
	var out []string
	for _, s := range w.settings {
		rest, ok := strings.CutPrefix(s.name, prefix(path))
		name, _, deeper := strings.Cut(rest, ".")
		if ok && (deeper || !sections) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	switch {
	case path == "" && !sections:
		out = append(out, resourcesName)
	case join(path, "targets") == targetsName && !sections:
		out = append(out, "targets")
	}
	return out
}

func (w *walker) unknown(e entry, known []string) {
	hint := "known here: " + strings.Join(known, ", ")
	if near := nearest(strings.ToLower(e.name), known); near != "" {
		hint = "did you mean " + near + "?"
	}
	w.add(w.place(e.key, e.field), "is not a known key", hint)
}

// scalar applies one value of the file.
func (w *walker) scalar(s setting, e entry) {
	w.cfg.tried[s.name] = true
	if value, ok := w.value(e, s.kind, s.secret); ok {
		w.apply(s, value, w.place(e.value, e.field))
	}
}

// value is a scalar's text when it is of the kind that is wanted.
func (w *walker) value(e entry, want kind, secret bool) (string, bool) {
	n := e.value
	at := w.place(n, e.field)
	tag := n.ShortTag()
	switch {
	case n.Kind == yaml.ScalarNode && looksSecret(n.Value):
		return "", false // reported by findKeys
	case n.Kind == yaml.ScalarNode && tag == "!!null":
		w.add(at, "has no value", "give one or remove the line")
	case n.Kind == yaml.AliasNode:
		w.add(at, noAlias, noAliasHint)
	case n.Kind != yaml.ScalarNode || !want.takes(tag):
		hint := ""
		if n.Kind == yaml.ScalarNode && want == kindText && !secret {
			hint = "write it in quotes: " + quote(n.Value)
		}
		w.add(at, "want "+want.String()+", found "+describe(n), hint)
	default:
		return n.Value, true
	}
	return "", false
}

// takes says whether YAML's own reading of a value fits. A duration takes numbers
// too: its own check then asks for the unit.
func (k kind) takes(tag string) bool {
	switch k {
	case kindBoolean:
		return tag == "!!bool"
	case kindInteger:
		return tag == "!!int"
	case kindNumber:
		return tag == "!!int" || tag == "!!float"
	case kindDuration:
		return tag == "!!str" || tag == "!!int" || tag == "!!float"
	default:
		return tag == "!!str"
	}
}

func (k kind) String() string {
	switch k {
	case kindBoolean:
		return "true or false"
	case kindInteger:
		return "a whole number"
	case kindNumber:
		return "a number"
	case kindDuration:
		return "a duration"
	default:
		return "text"
	}
}
