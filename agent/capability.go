package agent

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// Risk is how much harm a mistaken call can do.
type Risk string

// Low reads. Medium makes the worker work, or changes the mirror as the next
// timetable would. High takes a decision that a person is asked for.
const (
	Low    Risk = "low"
	Medium Risk = "medium"
	High   Risk = "high"
)

// Capability is one thing that an agent can ask for. It is for reading only.
type Capability struct {
	ID          string // stable, as in "records.get"
	Title       string
	TitleZH     string
	Description string
	Risk        Risk
	Write       bool // makes the worker work, or changes the mirror
	Idempotent  bool // asking twice does no more than asking once
	Async       bool // begins a task; what is not async answers at once
	Choice      string
	Timeout     time.Duration // for the whole of it
	Personal    []string      // kinds of personal data that an answer may hold
	Documents   bool          // an answer may come with documents
	Input       json.RawMessage
	Output      json.RawMessage // of Result.Data

	input, output *schema
	run           func(context.Context, Call) (Result, error)
	propose       func(context.Context, Call) ([]Proposal, error)
}

// Level is the risk in AgentUse's letters: L0 reads, L1 makes the worker do what its
// timetable would, L2 takes a decision that a person is asked for.
func (c *Capability) Level() string {
	return map[Risk]string{Low: "L0", Medium: "L1", High: "L2"}[c.Risk]
}

// Name is the id for platforms whose names have no dots: "records_get".
func (c *Capability) Name() string { return name(c.ID) }

func name(id string) string { return strings.ReplaceAll(id, ".", "_") }

// Proposal is one of several ways on, of which a person chooses one. ID is a value
// of the input property that Capability.Choice names.
type Proposal struct {
	ID      string          `json:"id"`
	Title   string          `json:"title"`
	Summary string          `json:"summary"`
	Data    json.RawMessage `json:"data"`
	// About names what was looked at. The choice is for that alone, whatever has taken
	// its place meanwhile. It is a value of the input property "plan".
	About string `json:"about"`
}

// Caller is who asks. The door has made sure of it.
type Caller struct {
	Door string // "api", "mcp" or "relay"
	Name string // a token's name, a platform's pseudonym; never a secret
	// Scopes are the ids that the caller may use; "read" stands for all that only
	// read, and "*" for everything that is switched on.
	Scopes []string
}

// May reports whether the caller's scopes let it use c.
func (c Caller) May(of *Capability) bool {
	for _, s := range c.Scopes {
		if s == "*" || s == of.ID || s == "read" && !of.Write {
			return true
		}
	}
	return false
}

// Call is one request for a capability.
type Call struct {
	Caller     Caller
	Capability string // its id
	Input      json.RawMessage
	// Key makes the call happen once: an invocation's or an order's id at the
	// caller's platform. Without it a call that answers at once is simply done.
	Key string
	// Choose says that the caller's platform lets a person choose: the task gathers
	// proposals instead of failing without a choice.
	Choose bool
	// KeepRefusals makes a refusal before anything ran the key's answer too, for
	// platforms that give their first answer for ever. Others let a caller mend the
	// input and take the same key again.
	KeepRefusals bool
	// ReplyTo is the door's own: what its courier needs to tell of the task's end.
	ReplyTo json.RawMessage

	// Task and Since are set while a task runs: its id, and when it first began.
	Task  string
	Since time.Time
}

// Result is what a capability found or did.
type Result struct {
	Summary   string          `json:"summary"` // a sentence for a person
	Data      json.RawMessage `json:"data"`    // as the output schema says
	Documents []Document      `json:"documents,omitempty"`
}

// Document is a text to keep beside a result: a report, a plan.
type Document struct {
	Title string `json:"title"`
	Name  string `json:"name"` // a file's
	Type  string `json:"type"` // text/markdown or application/json
	Body  []byte `json:"body"`
}
