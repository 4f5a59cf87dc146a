package relay

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	exact "github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

//go:embed manifest.schema.json
var manifestForm string

// Finding is one thing that is wrong with a manifest.
type Finding struct {
	// Rule is a number of RSP §4.4 or §4.5, as in "M-AMT-2"; FORM is for what §4.1 to
	// §4.3 ask of every field.
	Rule    string `json:"rule"`
	Warning bool   `json:"warning"` // does not keep a manifest from being activated
	Where   string `json:"where"`   // an action's name, or a field
	Message string `json:"message"`
}

// maxManifest bounds a manifest that is checked, in bytes.
const maxManifest = 4 << 20

// Check holds a manifest, anybody's, against the rules of RSP §4.4 and the policy of
// §4.5. No finding: it can be activated. The policy that a person judges (whether a
// description can be understood) is not checked.
func Check(text []byte) []Finding {
	if len(text) > maxManifest {
		return []Finding{{Rule: "FORM", Message: fmt.Sprintf("the manifest has more than %d bytes", maxManifest)}}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return []Finding{{Rule: "FORM", Message: "the manifest is not JSON"}}
	}
	found := form(doc)
	var m manifest
	if err := exact.Unmarshal(text, &m); err != nil {
		if len(found) == 0 {
			found = []Finding{{Rule: "FORM", Message: "a name comes twice, or a number is not written as one"}}
		}
		return found // the rules have nothing to look at
	}
	found = append(found, m.checkBinding()...)
	seen := map[string]bool{}
	for _, a := range m.Actions {
		if seen[a.Name] {
			found = append(found, Finding{Rule: "M-NAME-1", Where: a.Name, Message: "another action has the same name"})
		}
		seen[a.Name] = true
		found = append(found, a.check()...)
	}
	return found
}

// form checks the manifest against its JSON Schema.
func form(doc any) []Finding {
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(manifestForm))
	if err != nil {
		return []Finding{{Rule: "FORM", Message: err.Error()}}
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("manifest.schema.json", schema); err != nil {
		return []Finding{{Rule: "FORM", Message: err.Error()}}
	}
	compiled, err := c.Compile("manifest.schema.json")
	if err != nil {
		return []Finding{{Rule: "FORM", Message: err.Error()}}
	}
	var invalid *jsonschema.ValidationError
	if err := compiled.Validate(doc); errors.As(err, &invalid) {
		return leaves(invalid, message.NewPrinter(language.English))
	}
	return nil
}

// leaves are the causes that say something by themselves.
func leaves(e *jsonschema.ValidationError, in *message.Printer) []Finding {
	if len(e.Causes) == 0 {
		return []Finding{{Rule: "FORM", Where: strings.Join(e.InstanceLocation, "."), Message: e.ErrorKind.LocalizedString(in)}}
	}
	var found []Finding
	for _, cause := range e.Causes {
		found = append(found, leaves(cause, in)...)
	}
	return found
}

func (m manifest) checkBinding() []Finding {
	var found []Finding
	how := m.Supplier.UserBinding
	if (how == "token" || how == "oauth") && (m.Supplier.Binding == nil || m.Supplier.Binding.HelpURL == "") {
		found = append(found, Finding{Rule: "M-BIND-1", Where: "supplier.binding.help_url", Message: "user_binding " + how + " needs an address where people get a code"})
	}
	if how == "oauth" {
		found = append(found, Finding{Rule: "P-BIND-1", Where: "supplier.user_binding", Message: "oauth is not taken yet; use token"})
	}
	return found
}

// rule is one that looks at one action; ok false breaks it.
type rule struct {
	name    string
	warning bool
	ok      bool
	message string
}

func (a action) check() []Finding {
	free := string(a.Amount) == `"none"`
	charged := a.Billing != "none" && free && !a.Readonly // by the manifest's own fee
	rules := []rule{
		{"M-RISK-1", false, a.Risk != "low" || a.Readonly && a.Billing == "none", "risk low is for readonly actions without billing"},
		{"M-FEE-1", false, a.Billing != "none" || a.Fee == 0, "without billing the fee is 0"},
		{"M-BILL-1", false, a.Billing != "on_accept" || a.Mode != "sync", "on_accept is for asynchronous actions"},
		{"M-BILL-2", true, !a.Readonly || a.Billing == "none", "a readonly action is billed by the platform's price; billing and fee are not looked at"},
		{"M-MODE-1", true, a.Mode != "sync" || a.Timeout == 0, "timeout_seconds of a synchronous action is ignored"},
		{"P-FEE-0", true, !charged || a.Fee != 0, "a fee of 0 books 0; only Relay's own sandboxes may do that"},
		{"P-FEE-1", false, !charged || a.Fee == 0 || a.Fee >= 100 && a.Fee <= 10000, "the fee must be between 100 and 10000 (cents)"},
	}
	var found []Finding
	for _, r := range rules {
		if !r.ok {
			found = append(found, Finding{Rule: r.name, Warning: r.warning, Where: a.Name, Message: r.message})
		}
	}
	found = append(found, a.checkSchemas()...)
	return append(found, a.checkInput()...)
}

// checkSchemas is M-SCHEMA-1.
func (a action) checkSchemas() []Finding {
	var found []Finding
	look := func(field string, text json.RawMessage) {
		if len(text) == 0 {
			return
		}
		if err := compiles(text); err != nil {
			found = append(found, Finding{Rule: "M-SCHEMA-1", Where: a.Name + "." + field, Message: err.Error()})
		}
	}
	look("input", a.Input)
	look("output", a.Output)
	return found
}

// compiles reports whether the text is a JSON Schema 2020-12. Another dialect
// would compile as well, under its own rules.
func compiles(text json.RawMessage) error {
	var s struct {
		Dialect string `json:"$schema"`
	}
	if json.Unmarshal(text, &s) == nil && s.Dialect != "" && strings.TrimSuffix(s.Dialect, "#") != "https://json-schema.org/draft/2020-12/schema" {
		return errors.New("$schema names another dialect than 2020-12")
	}
	return agent.CheckSchema(text)
}
