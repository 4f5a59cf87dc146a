package credentials

import (
	"context"
	"fmt"
	"strings"
	"unicode"
)

// Prefixes of the two kinds of credential (contract §3.1).
const (
	keyPrefix   = "xqok-"
	tokenPrefix = "xqak-"
)

// maxSecret bounds a key or a token, in bytes.
const maxSecret = 4096

// KeySource gives the service key. It is asked anew before every exchange, so
// a source that can change (a store, a mounted file) shows a rotated key
// without being told; a source that knows of a change by itself makes its
// owner call Service.Renew. Key must be safe for concurrent use.
type KeySource interface {
	Key(ctx context.Context) (Secret, error)
}

// Store is a KeySource that somebody else writes to while the program runs, as
// an operator does who rotates the key.
type Store interface {
	KeySource
	// Current is Key with what the store calls the key's version; "" when it
	// numbers none.
	Current(ctx context.Context) (key Secret, version string, err error)
	// Place says to an operator where a new key is to be written.
	Place() string
}

// EnvKey is the key in an environment variable.
type EnvKey struct {
	lookup func(string) (string, bool)
	name   string
}

// FromEnv reads the key from the variable name through lookup (os.LookupEnv).
func FromEnv(lookup func(string) (string, bool), name string) *EnvKey {
	return &EnvKey{lookup: lookup, name: name}
}

// Key gives the checked key, or an *Error of kind BadKey that says what is wrong
// with the variable and never what it holds.
func (e *EnvKey) Key(context.Context) (Secret, error) {
	raw, ok := e.lookup(e.name)
	if !ok {
		return Secret{}, badKey("%s is not set: set it to the service key that Xiaoqu's admin console shows once (it begins with %s)", e.name, keyPrefix)
	}
	key, _, err := ParseKey(raw, e.name)
	return key, err
}

// Note tells what had to be trimmed off the variable's value, "" when nothing
// was. It never holds any part of the key.
func (e *EnvKey) Note() string {
	raw, _ := e.lookup(e.name)
	_, note, err := ParseKey(raw, e.name)
	if err != nil {
		return ""
	}
	return note
}

// ParseKey checks a key as a person or a store handed it over; origin names the
// place that it came from. The note says what was trimmed, "" when nothing was.
// The error is an *Error of kind BadKey; neither text holds any part of the key.
func ParseKey(raw, origin string) (key Secret, note string, err error) {
	value := strings.TrimFunc(raw, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' })
	switch {
	case value == "":
		return Secret{}, "", badKey("%s is empty: set it to the service key that Xiaoqu's admin console shows once (it begins with %s)", origin, keyPrefix)
	case len(value) > maxSecret:
		return Secret{}, "", badKey("%s is longer than %d bytes: that is no service key", origin, maxSecret)
	case strings.HasPrefix(value, tokenPrefix):
		return Secret{}, "", badKey("%s holds an access token (%s) where the service key (%s) is wanted: tokens are fetched with the key, never configured", origin, tokenPrefix, keyPrefix)
	case strings.ContainsAny(value[:1], `"'`):
		return Secret{}, "", badKey("%s begins with a quotation mark: take the quotes away", origin)
	case !strings.HasPrefix(value, keyPrefix):
		return Secret{}, "", badKey("%s does not begin with %s: that is no service key", origin, keyPrefix)
	case value == keyPrefix:
		return Secret{}, "", badKey("%s ends after %s: the key is cut short", origin, keyPrefix)
	}
	if what, at := unfit(value); what != "" {
		return Secret{}, "", badKey("%s holds %s at position %d: copy the key again", origin, what, at)
	}
	return NewSecret(value), trimmed(raw, value, origin), nil
}

// unfit finds the first character that can't be part of a credential, since a
// header must carry it, and names it without showing what is around it.
func unfit(value string) (what string, position int) {
	position = 1
	for _, r := range value {
		switch {
		case r < 0x20 || r == 0x7f || unicode.IsControl(r):
			return fmt.Sprintf("a control character (U+%04X)", r), position
		case unicode.IsSpace(r):
			return "a space", position
		case r > 0x7e:
			return "a character outside ASCII", position
		}
		position++
	}
	return "", 0
}

func trimmed(raw, value, origin string) string {
	rest := strings.Replace(raw, value, "", 1)
	var what []string
	if strings.Contains(rest, "\ufeff") {
		what = append(what, "a byte order mark")
	}
	if strings.ContainsAny(rest, "\r\n") {
		what = append(what, "a newline")
	}
	if strings.Trim(rest, "\ufeff\r\n") != "" {
		what = append(what, "spaces")
	}
	if len(what) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s around the key was trimmed", origin, strings.Join(what, " and "))
}

func badKey(format string, args ...any) *Error {
	return &Error{Kind: BadKey, Op: "key", Message: fmt.Sprintf(format, args...)}
}
