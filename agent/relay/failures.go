package relay

import (
	"encoding/json"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// The protocol's error codes (RSP §9).
const (
	codeInput        = "invalid_input"
	codeUnavailable  = "not_available"
	codeUnauthorized = "unauthorized"
	codeLimited      = "rate_limited"
	codeTemporary    = "temporary"
	codePermanent    = "permanent"
	codeUnsupported  = "not_supported"
)

// maxWait is the longest that Relay waits before one attempt (RSP §10).
const maxWait = 30 * time.Second

// words are what a class of failures is called here: now, as the answer to an
// envelope, and at the end of a task.
//
// Relay repeats what is temporary or rate_limited, under the same key. That suits
// an internal failure of a call too: nothing was kept for its key, so that a repeat
// does it for the first time or finds the task. A task that ended is not repeated
// by anybody, so its end never says temporary. Nothing here says unauthorized: for
// Relay that means the user's binding, and it would remove it (RSP §11).
func words(c agent.Class) (now, end string) {
	switch c {
	case agent.Invalid, agent.NotFound: // an unknown action too, as in RSP appendix B
		return codeInput, codeInput
	case agent.Busy:
		return codeTemporary, codeUnavailable
	case agent.Limited:
		return codeLimited, codeUnavailable
	case agent.Temporary:
		return codeTemporary, codeUnavailable
	case agent.Internal:
		return codeTemporary, codePermanent
	default: // Permanent, Forbidden
		return codePermanent, codePermanent
	}
}

// fault is an error of the protocol. The whole of it can be shown to people.
type fault struct {
	Code       string  `json:"code"`
	Message    string  `json:"message"`
	RetryAfter int64   `json:"retry_after,omitempty"` // seconds
	Details    details `json:"details"`
}

// details say more than the protocol has words for.
type details struct {
	Reason      string          `json:"reason"` // our code, which is stable
	Field       string          `json:"field,omitempty"`
	Suggestions []string        `json:"suggestions,omitempty"`
	RequestID   string          `json:"request_id,omitempty"`
	Report      json.RawMessage `json:"report,omitempty"`
}

// passing is the fault of an envelope that could not be done now.
func passing(f *agent.Failure) *fault {
	code, _ := words(f.Class)
	out := faultOf(code, f)
	if code == codeLimited || code == codeTemporary {
		wait := min(f.RetryAfter, maxWait)
		out.RetryAfter = int64((wait + time.Second - 1) / time.Second)
	}
	return out
}

// final is the fault of a task that ended.
func final(f *agent.Failure) *fault {
	_, code := words(f.Class)
	return faultOf(code, f)
}

func faultOf(code string, f *agent.Failure) *fault {
	return &fault{Code: code, Message: f.Message, Details: details{
		Reason: f.Code, Field: f.Field, Suggestions: f.Suggestions, RequestID: f.RequestID, Report: f.Details,
	}}
}

// failed makes the answer a refusal of the door's own.
func (a answer) failed(code, reason, message string) answer {
	a.Status, a.Error = statusFailed, &fault{Code: code, Message: message, Details: details{Reason: reason}}
	return a
}

// failure makes the answer what an error says.
func (a answer) failure(err error) answer {
	a.Status, a.Error = statusFailed, passing(agent.AsFailure(err))
	return a
}
