package relay

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// manifest is what a supplier hands in (RSP §4).
type manifest struct {
	RSP      string `json:"rsp"`
	Supplier struct {
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Locale      string   `json:"locale"`
		Categories  []string `json:"categories"`
		Region      string   `json:"region,omitempty"`
		UserBinding string   `json:"user_binding"`
		Binding     *binding `json:"binding,omitempty"`
	} `json:"supplier"`
	Endpoint struct {
		URL           string `json:"url"`
		Auth          string `json:"auth"`
		MaxConcurrent int    `json:"max_concurrency"`
	} `json:"endpoint"`
	Actions []action `json:"actions"`
}

type binding struct {
	HelpURL string `json:"help_url"`
}

// action is a capability in Relay's words (RSP §4.2).
type action struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input"`
	Output      json.RawMessage `json:"output,omitempty"`
	Display     []string        `json:"display_fields,omitempty"`
	Readonly    bool            `json:"readonly"`
	Risk        string          `json:"risk"`
	Confirm     string          `json:"confirm"`
	Mode        string          `json:"mode"`
	Billing     string          `json:"billing"`
	Fee         int64           `json:"fee"`
	Amount      json.RawMessage `json:"amount"`
	Timeout     int64           `json:"timeout_seconds,omitempty"`
	Tags        []string        `json:"tags,omitempty"`
}

// Manifest writes what is handed in at Relay, from the catalogue: what is switched
// on and the scopes allow, free of charge. Of the options it takes the service, the
// supplier, the endpoint, the scopes and the number of envelopes at once. It is the
// same for the same catalogue.
func Manifest(o Options) ([]byte, error) {
	if o.Service == nil {
		return nil, errors.New("relay: a manifest needs a service")
	}
	m := manifest{RSP: version}
	m.Supplier.Name, m.Supplier.Description, m.Supplier.Categories = o.Supplier.Name, o.Supplier.Description, o.Supplier.Categories
	m.Supplier.Locale = cmp.Or(o.Supplier.Locale, "zh-CN")
	m.Supplier.Region = o.Supplier.Region
	m.Supplier.UserBinding = cmp.Or(o.Supplier.UserBinding, "none")
	if o.Supplier.HelpURL != "" {
		m.Supplier.Binding = &binding{HelpURL: o.Supplier.HelpURL}
	}
	m.Endpoint.URL, m.Endpoint.Auth, m.Endpoint.MaxConcurrent = o.EndpointURL, "hmac-sha256", cmp.Or(o.MaxConcurrent, 20)
	caller := agent.Caller{Door: doorName, Scopes: o.Scopes}
	for _, c := range o.Service.Capabilities() {
		if !caller.May(c) {
			continue
		}
		a, err := actionOf(c)
		if err != nil {
			return nil, fmt.Errorf("relay: the manifest of %s: %w", c.ID, err)
		}
		m.Actions = append(m.Actions, a)
	}
	return json.MarshalIndent(m, "", "  ")
}

// choiceTime is how long a person may think before an order runs out. Relay counts
// it with the work.
const choiceTime = 24 * time.Hour

// seconds is a time limit as the protocol takes it: a minute to a week.
func seconds(d time.Duration) int64 {
	return int64(min(max(d, time.Minute), 7*24*time.Hour) / time.Second)
}

func actionOf(c *agent.Capability) (a action, err error) {
	a = action{
		Name: c.Name(), Title: c.TitleZH, Description: c.Description, Readonly: !c.Write, Risk: string(c.Risk),
		Confirm: confirmation(c.Risk), Mode: "sync", Billing: "none", Amount: json.RawMessage(`"none"`), Tags: []string{c.ID},
	}
	if len(c.Personal) > 0 {
		a.Description += " The answer may hold " + strings.Join(c.Personal, "; ") + "."
	}
	if c.Async {
		a.Mode, a.Timeout = "async", seconds(c.Timeout)
	}
	if c.Choice != "" {
		a.Mode, a.Timeout = "async_multi", seconds(c.Timeout+choiceTime)
	}
	if a.Input, a.Display, err = inputOf(c); err != nil {
		return a, err
	}
	a.Output, err = outputOf(c)
	return a, err
}

// confirmation is the least that Relay asks of the user for a risk (RSP §4.3).
func confirmation(r agent.Risk) string {
	switch r {
	case agent.Low:
		return "never"
	case agent.Medium:
		return "by_grant"
	default:
		return "always"
	}
}

// personal reports whether an input of this name can name or describe a person.
// Relay masks what is marked so, and tells the user that it is sent on.
func personal(input string) bool {
	return input == "id" || input == "after_id" || input == "filters"
}

// inputOf is a capability's input without what a person chooses by proposal.select,
// and the fields that a confirmation shows: those that must be given.
func inputOf(c *agent.Capability) (json.RawMessage, []string, error) {
	var s map[string]any
	if err := json.Unmarshal(c.Input, &s); err != nil {
		return nil, nil, err
	}
	properties, _ := s["properties"].(map[string]any)
	delete(properties, c.Choice)
	for name, p := range properties {
		if p, ok := p.(map[string]any); ok && personal(name) {
			p["x-pii"] = true
		}
	}
	var display []string
	required, _ := s["required"].([]any)
	for _, r := range required {
		if name, ok := r.(string); ok {
			display = append(display, name)
		}
	}
	text, err := json.Marshal(s)
	return text, display, err
}

// outputOf is a capability's output, with the proposal that was chosen.
func outputOf(c *agent.Capability) (json.RawMessage, error) {
	if c.Choice == "" {
		return c.Output, nil
	}
	var s map[string]any
	if err := json.Unmarshal(c.Output, &s); err != nil {
		return nil, err
	}
	properties, _ := s["properties"].(map[string]any)
	properties["proposal_id"] = map[string]any{"type": "string", "description": "The proposal that was chosen."}
	return json.Marshal(s)
}
