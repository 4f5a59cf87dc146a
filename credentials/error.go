package credentials

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind says what a failure means for the caller.
type Kind int

// The kinds of failure.
const (
	// Refused: the remote says no, or we do before asking. A person must act.
	Refused Kind = iota + 1
	// Unreachable: no usable answer (transport, deadline, 5xx). It may pass.
	Unreachable
	// BadKey: the key that we were given can't be one. Nothing was sent.
	BadKey
	// Malformed: the answer is not what contract §3.2 promises.
	Malformed
	// Limited: the remote asks for patience (429, RATE_LIMITED).
	Limited
	// StoreDown: the store of the key (Vault) gives no usable answer: not
	// reachable, sealed, overloaded. It may pass.
	StoreDown
	// StoreRefused: the store is there and does not give what was asked for: no
	// login, no right, nothing at that place. A person must act.
	StoreRefused
)

// String names the kind for logs.
func (k Kind) String() string {
	switch k {
	case Refused:
		return "refused"
	case Unreachable:
		return "unreachable"
	case BadKey:
		return "bad key"
	case Malformed:
		return "malformed"
	case Limited:
		return "limited"
	case StoreDown:
		return "store down"
	case StoreRefused:
		return "store refused"
	}
	return "unknown"
}

// Error is every failure of this package but a context's end. Its text, and
// that of its cause, holds no secret and nothing that the remote wrote except
// an error code of contract §5.
type Error struct {
	Kind       Kind
	Op         string        // what was attempted: "key", "ensure", "personal token", "vault"
	Message    string        // for people: what happened and what to do
	Code       string        // error code of contract §5, "" when the answer had none
	Status     int           // HTTP status, 0 when there was no answer
	RetryAfter time.Duration // what the server asked, at most 60 s, 0 when nothing usable
	Err        error         // cause, scrubbed; may be nil
}

// Error reads like "credentials: ensure: the service key was refused: HTTP 401".
func (e *Error) Error() string {
	text := "credentials: " + e.Op + ": " + e.Message
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Name is the failure's one name, for run logs and machines.
func (e *Error) Name() string {
	switch e.Kind {
	case Refused:
		return "CREDENTIALS_REFUSED"
	case BadKey:
		return "KEY_INVALID"
	case Malformed:
		return "MALFORMED"
	case Unreachable, Limited:
		return "UNREACHABLE"
	case StoreDown:
		return "VAULT_UNREACHABLE"
	case StoreRefused:
		return "VAULT_REFUSED"
	}
	return "INTERNAL"
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// passing tells the failures that may be gone at the next attempt.
func (e *Error) passing() bool { return e.Kind == Unreachable || e.Kind == Limited }

// cause stands for an error of a library. Such texts quote what came over the
// wire ("malformed HTTP response …"), so the text is scrubbed, and the error
// itself stays reachable for errors.Is only.
type cause struct {
	text string
	err  error
}

// Scrub gives err without the secrets and without whatever looks like one, cut to
// a readable length. errors.Is still sees err; errors.As does not.
func Scrub(err error, secrets ...string) error {
	r := NewRedactor()
	r.Add(secrets...)
	const limit = 300
	// Cut after the scrubbing: half a secret would not be found.
	text := strings.ToValidUTF8(r.String(err.Error()), "")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return &cause{text: text, err: err}
}

func (c *cause) Error() string        { return c.text }
func (c *cause) Is(target error) bool { return errors.Is(c.err, target) }

// verdict says what an answer's status and code (if any) read like to people.
func verdict(status int, code string) string {
	if code == "" {
		return fmt.Sprintf("HTTP %d", status)
	}
	return fmt.Sprintf("HTTP %d %s", status, code)
}
