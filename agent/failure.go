package agent

import (
	"encoding/json"
	"errors"
	"time"
)

// Class is what a failure means for whoever asked. Each door has one table from
// classes to its platform's words.
type Class string

// Invalid: the input is wrong. Forbidden: not allowed to this caller. NotFound: no
// such thing. Busy: something else is at work on it, or the moment is wrong; later
// may do. Limited: too much at once. Temporary: nothing was done, and it may pass.
// Permanent: it will not pass by itself, somebody must act. Internal: our mistake.
const (
	Invalid   Class = "invalid"
	Forbidden Class = "forbidden"
	NotFound  Class = "not_found"
	Busy      Class = "busy"
	Limited   Class = "limited"
	Temporary Class = "temporary"
	Permanent Class = "permanent"
	Internal  Class = "internal"
)

// Passing reports whether the same call may do later: such a failure is never kept
// as a call's answer.
func (c Class) Passing() bool {
	return c == Busy || c == Limited || c == Temporary
}

// Failure is why a call was not done. Its texts hold no record, no secret and no
// personal data, so that they can be shown to whoever asked.
type Failure struct {
	Class       Class         `json:"class"`
	Code        string        `json:"code"` // stable, lower case with underscores
	Message     string        `json:"message"`
	Field       string        `json:"field,omitempty"` // of the input, as in "filters[0].value"
	Suggestions []string      `json:"suggestions,omitempty"`
	RequestID   string        `json:"request_id,omitempty"` // of the remote's last call
	RetryAfter  time.Duration `json:"retry_after,omitempty"`
	// Details is more for machines, such as the report of what was done before.
	Details json.RawMessage `json:"details,omitempty"`
}

// Error is the failure's code and message.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// AsFailure makes any error a failure. What is not one already is internal, and
// its text stays inside.
func AsFailure(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return &Failure{
		Class: Internal, Code: "internal_error", Message: "the call failed for a reason that only the operator's log tells",
		Suggestions: []string{"tell the operator the time and the request id of this call"},
	}
}
