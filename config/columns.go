package config

import (
	"go.yaml.in/yaml/v4"
)

// Column is one typed column of a resource, as configured. Input.CheckColumn has
// judged it.
type Column struct {
	Name  string
	Path  string // where in a record the value is: $.fee.amount
	Type  string
	Index bool   // an index on it
	Ref   string // RESOURCE.COLUMN that the value leads to, "" for none
}

// columnKeys are what the file may say about a column.
func columnKeys() []string { return []string{"path", "type", "index", "ref"} }

// columns reads a resource's typed columns, in the file's order.
func (w *walker) columns(of entry) []Column {
	var all []Column
	for _, e := range w.entries(of.value, of.field) {
		c, ok := w.column(e)
		if ok && w.checkColumn != nil {
			if err := w.checkColumn(c); err != nil {
				w.add(w.place(e.key, e.field), "is no column: "+printable(err.Error()), columnHint)
				ok = false
			}
		}
		if ok {
			all = append(all, c)
		}
	}
	w.note(of)
	return all
}

const columnHint = "such as amount: {path: $.fee.amount, type: numeric}"

// column reads one; ok is false when something about it was reported.
func (w *walker) column(of entry) (c Column, ok bool) {
	c.Name = of.name
	ok = of.value.Kind == yaml.MappingNode || of.value.ShortTag() == "!!null"
	text := func(e entry, want kind) (value string) {
		value, good := w.value(e, want, false)
		ok = ok && good
		return value
	}
	given := map[string]bool{}
	for _, e := range w.entries(of.value, of.field) {
		given[e.name] = true
		switch e.name {
		case "path":
			c.Path = text(e, kindText)
		case "type":
			c.Type = text(e, kindText)
		case "ref":
			c.Ref = text(e, kindText)
		case "index":
			c.Index = text(e, kindBoolean) == "true"
		default:
			w.unknown(e, columnKeys())
			ok = false
		}
	}
	for _, need := range []string{"path", "type"} {
		if ok && !given[need] {
			w.add(w.place(of.key, of.field), need+" is missing", columnHint)
			ok = false
		}
	}
	return c, ok
}

// masked reads the paths that the masked view hides.
func (w *walker) masked(of entry) []string {
	if of.value.Kind != yaml.SequenceNode {
		w.add(w.place(of.value, of.field), "want a list, found "+describe(of.value), "such as [$.mobile, $.id_number]")
		return nil
	}
	var all []string
	for i, n := range of.value.Content {
		e := entry{key: n, value: n, field: of.field + "[" + itoa(i) + "]"}
		path, ok := w.value(e, kindText, false)
		if !ok {
			continue
		}
		if w.checkPath != nil {
			if err := w.checkPath(path); err != nil {
				w.add(w.place(n, e.field), "is no path: "+printable(err.Error()), "such as $.mobile")
				continue
			}
		}
		all = append(all, path)
	}
	w.note(of)
	return all
}

// note remembers where a part of a resource came from.
func (w *walker) note(of entry) {
	w.cfg.origins[of.field] = w.place(of.value, of.field).origin
}

// printable bounds the text of a check that is not ours.
func printable(text string) string {
	if r := []rune(text); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return text
}

func columnsSchema() map[string]any {
	one := object("One typed column of the resource's views.")
	one["required"] = []string{"path", "type"}
	one["properties"] = map[string]any{
		"path":  map[string]any{"type": "string", "pattern": `^\$[.\[]`, "description": "Where in a record the value is, such as $.fee.amount or $.tags[0]."},
		"type":  map[string]any{"type": "string", "description": "What it is; a value that does not fit is null.", "enum": []string{"text", "integer", "numeric", "boolean", "date", "timestamptz", "text[]", "jsonb"}},
		"index": map[string]any{"type": "boolean", "default": false, "description": "An index on it, for reads by its value."},
		"ref":   map[string]any{"type": "string", "description": "RESOURCE.COLUMN that the value leads to, such as properties.id: a note for readers."},
	}
	return map[string]any{
		"type":                 []string{"object", "null"},
		"description":          "Typed columns of the resource's views, by name.",
		"propertyNames":        map[string]any{"pattern": `^[a-z_][a-z0-9_]{0,47}$`},
		"additionalProperties": one,
	}
}

func maskedSchema() map[string]any {
	return map[string]any{
		"type":        "array",
		"description": "Paths of personal data that the resource's masked view hides.",
		"items":       map[string]any{"type": "string", "pattern": `^\$[.\[]`},
	}
}
