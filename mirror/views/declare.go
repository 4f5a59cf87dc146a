package views

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

const (
	declareDepth = 12 // schemas within schemas that are opened, references too
	declareMost  = 1000
)

// schema is what is read of a JSON Schema.
type schema struct {
	Type       schemaTypes       `json:"type"`
	Format     string            `json:"format"`
	Ref        string            `json:"$ref"`
	Properties orderedProperties `json:"properties"`
	Items      json.RawMessage   `json:"items"`
	AnyOf      []json.RawMessage `json:"anyOf"`
	OneOf      []json.RawMessage `json:"oneOf"`
	AllOf      []json.RawMessage `json:"allOf"`
}

// Declared gives the columns that the JSON Schema of a tool's result declares for
// the records in it, in its order. The records are the one list of objects; of
// several, the one that listKey names, or else whose objects have an id. Whatever
// it cannot read declares nothing: a schema is a help here, never a rule.
func Declared(text json.RawMessage, listKey string) []Column {
	d := declaration{root: text}
	d.find("", text, 0)
	best := -1
	for i, l := range d.lists {
		if best < 0 || l.rank(listKey) > d.lists[best].rank(listKey) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	d.record(d.lists[best].record, nil, 0)
	return d.columns
}

// declaration is a schema while it is being read.
type declaration struct {
	root    json.RawMessage
	lists   []listed
	columns []Column
	opened  int
}

// listed is a list of objects that was found.
type listed struct {
	name   string
	record schema
}

func (l listed) rank(listKey string) int {
	switch _, hasID := l.record.Properties.get("id"); {
	case listKey != "" && l.name == listKey:
		return 2
	case hasID:
		return 1
	}
	return 0
}

// open reads a schema with its references followed and, of alternatives, the one
// that is not null.
func (d *declaration) open(text json.RawMessage, depth int) (s schema, ok bool) {
	if d.opened++; depth > declareDepth || d.opened > declareMost || json.Unmarshal(text, &s) != nil {
		return schema{}, false
	}
	if s.Ref != "" {
		target, found := d.resolve(s.Ref)
		if !found {
			return schema{}, false
		}
		return d.open(target, depth+1)
	}
	var only []schema
	for _, part := range slices.Concat(s.AnyOf, s.OneOf, s.AllOf) {
		if o, ok := d.open(part, depth+1); ok && !o.Type.is("null") {
			only = append(only, o)
		}
	}
	if s.Type == nil && len(only) == 1 {
		return only[0], true
	}
	return s, true
}

// resolve finds what a reference within the document leads to.
func (d *declaration) resolve(ref string) (json.RawMessage, bool) {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	at := d.root
	for step := range strings.SplitSeq(path, "/") {
		var members map[string]json.RawMessage
		if json.Unmarshal(at, &members) != nil {
			return nil, false
		}
		if at, ok = members[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]; !ok {
			return nil, false
		}
	}
	return at, true
}

// find looks for lists of objects, in the envelope too.
func (d *declaration) find(name string, text json.RawMessage, depth int) {
	s, ok := d.open(text, depth)
	if !ok {
		return
	}
	if s.Items != nil {
		if record, ok := d.open(s.Items, depth+1); ok && len(record.Properties) > 0 {
			d.lists = append(d.lists, listed{name, record})
		}
		return
	}
	for _, p := range s.Properties {
		d.find(p.name, p.schema, depth+1)
	}
}

// record takes the members of an object, and those of objects in it.
func (d *declaration) record(s schema, steps []string, depth int) {
	for _, p := range s.Properties {
		member, ok := d.open(p.schema, depth)
		if !ok {
			continue
		}
		at := append(slices.Clone(steps), p.name)
		if len(member.Properties) > 0 && len(at) < suggestDepth {
			d.record(member, at, depth+1)
			continue
		}
		d.columns = append(d.columns, Column{Name: columnNameOf(at), Path: pathOf(at), Type: d.typ(member, depth)})
	}
}

func (d *declaration) typ(s schema, depth int) Type {
	switch {
	case s.Type.is("string") && s.Format == "date":
		return Date
	case s.Type.is("string") && s.Format == "date-time":
		return Timestamptz
	case s.Type.is("string") && s.Format == "decimal":
		return Numeric
	case s.Type.is("integer"):
		return Integer
	case s.Type.is("number"):
		return Numeric
	case s.Type.is("boolean"):
		return Boolean
	case s.Type.is("array"):
		if item, ok := d.open(s.Items, depth+1); ok && item.Type.is("string") {
			return Texts
		}
		return JSON
	case s.Type.is("object"), len(s.Properties) > 0:
		return JSON
	default:
		return Text
	}
}

// schemaTypes is one name or a list of them.
type schemaTypes []string

// UnmarshalJSON takes both forms.
func (t *schemaTypes) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = schemaTypes{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(t))
}

// is tells whether the name is the only one, null aside.
func (t schemaTypes) is(name string) bool {
	return slices.Contains(t, name) && !slices.ContainsFunc(t, func(o string) bool { return o != name && o != "null" })
}

type property struct {
	name   string
	schema json.RawMessage
}

// orderedProperties keeps the order of the schema, which is that of people.
type orderedProperties []property

// UnmarshalJSON reads an object in its order.
func (all *orderedProperties) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("properties is no object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		p := property{}
		if err := d.Decode(&p.schema); err != nil {
			return err
		}
		p.name, _ = name.(string)
		*all = append(*all, p)
	}
	return nil
}

func (all orderedProperties) get(name string) (json.RawMessage, bool) {
	for _, p := range all {
		if p.name == name {
			return p.schema, true
		}
	}
	return nil, false
}
