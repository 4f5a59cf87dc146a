package relay

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxRefs bounds a chain of references; a cycle ends there too.
const maxRefs = 16

// fields is what the rules look at in an input's schema.
type fields struct {
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
}

// checkInput holds what an action says of its input's fields against its schema:
// M-DISP-1, M-AMT-1 to 3.
func (a action) checkInput() []Finding {
	var in fields
	_ = json.Unmarshal(a.Input, &in) // what is no schema has no fields; M-SCHEMA-1 and FORM say so
	var found []Finding
	for _, name := range a.Display {
		if _, ok := in.Properties[name]; !ok {
			found = append(found, Finding{Rule: "M-DISP-1", Where: a.Name, Message: "display_fields names " + strconv.Quote(name) + ", which the input has not"})
		}
	}
	var amount struct {
		From string `json:"from"`
	}
	if json.Unmarshal(a.Amount, &amount) != nil || amount.From == "" {
		return found
	}
	name := strings.TrimPrefix(amount.From, "input.")
	property, ok := in.Properties[name]
	if !ok {
		return append(found, Finding{Rule: "M-AMT-1", Where: a.Name, Message: "amount comes from " + strconv.Quote(name) + ", which the input has not"})
	}
	if !isInteger(a.Input, property) {
		found = append(found, Finding{Rule: "M-AMT-2", Where: a.Name, Message: strconv.Quote(name) + ` must say type "integer" itself, or by a local $ref`})
	}
	if !slices.Contains(in.Required, name) {
		found = append(found, Finding{Rule: "M-AMT-3", Where: a.Name, Message: strconv.Quote(name) + " must be required"})
	}
	return found
}

// isInteger reports whether a schema says so itself, or leads by local references
// to one that does. Compositions do not count (M-AMT-2).
func isInteger(root, schema json.RawMessage) bool {
	for range maxRefs {
		var s struct {
			Type json.RawMessage `json:"type"`
			Ref  string          `json:"$ref"`
		}
		if json.Unmarshal(schema, &s) != nil {
			return false
		}
		if len(s.Type) > 0 {
			return string(s.Type) == `"integer"`
		}
		var ok bool
		if schema, ok = resolve(root, s.Ref); !ok {
			return false
		}
	}
	return false
}

// resolve follows a local reference: a JSON Pointer in a fragment (RFC 6901 §6).
func resolve(root json.RawMessage, ref string) (json.RawMessage, bool) {
	pointer, local := strings.CutPrefix(ref, "#/")
	if !local {
		return nil, false
	}
	at := root
	for step := range strings.SplitSeq(pointer, "/") {
		step, err := url.PathUnescape(step)
		if err != nil {
			return nil, false
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		var object map[string]json.RawMessage
		var list []json.RawMessage
		if json.Unmarshal(at, &object) == nil {
			next, ok := object[step]
			if !ok {
				return nil, false
			}
			at = next
			continue
		}
		n, err := strconv.Atoi(step)
		if err != nil || json.Unmarshal(at, &list) != nil || n < 0 || n >= len(list) {
			return nil, false
		}
		at = list[n]
	}
	return at, true
}
