package remote

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Code names a refusal or a failure.
type Code string

// The five codes of contract §5, verbatim, and three of our own for what the contract has no word for.
const (
	Unauthenticated  Code = "UNAUTHENTICATED"
	PermissionDenied Code = "PERMISSION_DENIED"
	RateLimited      Code = "RATE_LIMITED"
	CursorExpired    Code = "SYNC_CURSOR_EXPIRED"
	InvalidArgument  Code = "INVALID_ARGUMENT"
	Unreachable      Code = "UNREACHABLE"  // no answer, or none of the remote's own making: asking again may help
	SessionLost      Code = "SESSION_LOST" // the session is gone: the same call works after a new handshake
	Malformed        Code = "MALFORMED"    // an answer that breaks the contract
)

// Bounds of what an error repeats from the remote, in bytes.
const (
	maxMessage   = 300
	maxRequestID = 128
)

// Error is every refusal and failure of the remote.
type Error struct {
	Code       Code
	Tool       string        // tool or method: "users.changes.list", "initialize", "tools/list"
	RequestID  string        // contract §4.2; "" when the answer had none
	Message    string        // at most 300 bytes, no control characters, no secret
	RetryAfter time.Duration // what the server asked for, at most 24 h; 0 when nothing usable
	Status     int           // HTTP status; 0 when there was no answer
	CutShort   bool          // the answer was empty or ended early: asking once more may help
	TooLarge   bool          // MALFORMED because the answer passed the byte limit: a smaller page may help
	Generation int           // generation of the token that the call was made with, for Renew
	Err        error         // the transport's cause; may be nil
}

// Error reads "remote: users.changes.list: RATE_LIMITED (request r_12): text".
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "remote: %s: %s", e.Tool, e.Code)
	if e.RequestID != "" {
		fmt.Fprintf(&b, " (request %s)", e.RequestID)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	return b.String()
}

// Unwrap gives the transport's cause.
func (e *Error) Unwrap() error { return e.Err }

const redacted = "[redacted]"

// secretText finds keys, tokens and mobile numbers by their form, for texts in which the remote repeats what it was sent
// or what it knows (contract §3.3, §4.2: neither is ever logged).
var secretText = regexp.MustCompile(`(?i)\b(?:xq[ao]k-[\w.-]+|bearer\s+\S+)|(?:\+|\b)(?:86[- ]?)?1[3-9]\d{9}\b`)

// clean makes a text of the remote fit for an error or a log line: at most limit bytes, on one line, and without the
// given secrets or anything that has the form of one.
func clean(text string, limit int, secrets ...string) string {
	if len(text) > 16*limit {
		text = text[:16*limit] // enough to redact before cutting, bounded work
	}
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, redacted)
		}
	}
	text = secretText.ReplaceAllString(text, redacted)
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.TrimSpace(text)
	if len(text) <= limit {
		return text
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
