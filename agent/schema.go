package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// dialect is the JSON Schema that the catalogue speaks.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// maxInput bounds an input, in bytes.
const maxInput = 256 << 10

// schema is a compiled JSON Schema.
type schema struct{ compiled *jsonschema.Schema }

// compile takes a schema's JSON. Nothing is ever loaded from elsewhere.
func compile(text json.RawMessage) (*schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.AssertFormat()
	if err := c.AddResource("capability.json", doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile("capability.json")
	if err != nil {
		return nil, err
	}
	return &schema{compiled}, nil
}

// CheckSchema reports whether the text is a JSON Schema 2020-12 that compiles by
// itself.
func CheckSchema(text json.RawMessage) error {
	_, err := compile(text)
	return err
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is not part of the schema", url)
}

// check returns what is wrong with the JSON, as a failure that names the field.
func (s *schema) check(text json.RawMessage) *Failure {
	if len(text) > maxInput {
		return &Failure{Class: Invalid, Code: "input_too_large", Message: fmt.Sprintf("the input has %d bytes, and %d are taken", len(text), maxInput)}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return &Failure{Class: Invalid, Code: "invalid_input", Message: "the input is not JSON"}
	}
	if !tame(value) {
		return &Failure{Class: Invalid, Code: "invalid_input", Message: "a number in the input has too many digits, or too large an exponent"}
	}
	err = s.compiled.Validate(value)
	if err == nil {
		return nil
	}
	f := &Failure{Class: Invalid, Code: "invalid_input", Message: "the input does not fit the schema"}
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		cause := leaf(invalid)
		f.Field = fieldName(append(cause.InstanceLocation, missing(cause.ErrorKind)...))
		f.Message = says(cause.ErrorKind)
		if f.Field != "" {
			f.Message = f.Field + ": " + f.Message
		}
	}
	return f
}

// maxDigits bounds a number's digits and its exponent. The validator works out every
// digit: a list of 1e999999 would take it minutes.
const maxDigits = 400

// tame reports whether all numbers of a decoded value are within bounds.
func tame(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, x := range v {
			if !tame(x) {
				return false
			}
		}
	case []any:
		for _, x := range v {
			if !tame(x) {
				return false
			}
		}
	case json.Number:
		digits, exponent, has := strings.Cut(strings.ToLower(v.String()), "e")
		if e, err := strconv.Atoi(exponent); has && (err != nil || e < -maxDigits || e > maxDigits) {
			return false
		}
		return len(digits) <= maxDigits
	}
	return true
}

// says is what is wrong, without the value that is: most of the library's own texts
// speak of types and lengths alone.
func says(what jsonschema.ErrorKind) string {
	switch k := what.(type) {
	case *kind.AdditionalProperties:
		return fmt.Sprintf("there is no property %.60q", strings.Join(k.Properties, ", "))
	case *kind.Minimum:
		return "must be at least " + k.Want.RatString()
	case *kind.Maximum:
		return "must be at most " + k.Want.RatString()
	case *kind.Format, *kind.Pattern, *kind.MultipleOf:
		return "has not the form that the schema says"
	}
	return what.LocalizedString(message.NewPrinter(language.English))
}

// leaf is the first cause that says something by itself.
func leaf(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	for len(e.Causes) > 0 {
		e = e.Causes[0]
	}
	return e
}

// missing names the property that an error about an object means. A name of the
// caller's own may be anything, so a long one is left out.
func missing(k jsonschema.ErrorKind) []string {
	switch k := k.(type) {
	case *kind.Required:
		return k.Missing[:1]
	case *kind.AdditionalProperties:
		if len(k.Properties[0]) <= 60 {
			return k.Properties[:1]
		}
	}
	return nil
}

func fieldName(path []string) string {
	var b strings.Builder
	for _, p := range path {
		if _, err := strconv.Atoi(p); err == nil {
			b.WriteString("[" + p + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(p)
	}
	return b.String()
}

// shape is a JSON Schema while it is written down.
type shape map[string]any

// encode gives the schema its dialect and its bytes, the same for every run.
func (s shape) encode() json.RawMessage {
	whole := shape{"$schema": dialect}
	for k, v := range s {
		whole[k] = v
	}
	text, err := json.Marshal(whole)
	if err != nil {
		panic("agent: a schema of the catalogue has no JSON: " + err.Error())
	}
	return text
}

func object(properties shape, required ...string) shape {
	if required == nil {
		required = []string{}
	}
	return shape{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func list(of shape, most int) shape {
	return shape{"type": "array", "items": of, "maxItems": most}
}

func text(about string, most int) shape {
	return shape{"type": "string", "description": about, "minLength": 1, "maxLength": most}
}

func free(about string) shape { return shape{"type": "string", "description": about} }

func number(about string, least, most int64) shape {
	return shape{"type": "integer", "description": about, "minimum": least, "maximum": most}
}

func count(about string) shape {
	return shape{"type": "integer", "description": about, "minimum": 0}
}

func flag(about string) shape { return shape{"type": "boolean", "description": about} }

func oneOf[T ~string](about string, words ...T) shape {
	return shape{"type": "string", "description": about, "enum": words}
}

func moment(about string) shape {
	return shape{"type": "string", "format": "date-time", "description": about}
}

func anyObject(about string) shape { return shape{"type": "object", "description": about} }

// orNull lets null stand for "there is none".
func orNull(s shape) shape {
	out := shape{}
	for k, v := range s {
		out[k] = v
	}
	out["type"] = []any{s["type"], "null"}
	return out
}
