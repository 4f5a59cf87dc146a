package credentials

import (
	"fmt"
	"io"
	"log/slog"
)

// mask stands wherever a secret stood.
const mask = "[redacted]"

// Secret holds a value that must not be shown: a key, a token, a password. It
// prints as [redacted] under every verb of fmt and in JSON, YAML, slog and zap.
// Only Reveal gives the value. The zero Secret is empty; secrets can't be
// compared with ==.
type Secret struct {
	// A closure, since fmt walks the unexported fields of a struct around us by
	// reflection, past our methods, and would find a string there.
	reveal func() string
}

// NewSecret wraps value. An empty value makes the zero Secret.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{reveal: func() string { return value }}
}

// Reveal gives the value itself, for the one place that sends it.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// IsZero tells that there is no value.
func (s Secret) IsZero() bool { return s.reveal == nil }

// String gives [redacted]; so zap.Any and zap.Stringer are safe.
func (s Secret) String() string { return mask }

// Format writes [redacted] for every verb and flag, %#v and %x too.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, mask) }

// MarshalText gives [redacted], which JSON and YAML encoders use as well.
func (s Secret) MarshalText() ([]byte, error) { return []byte(mask), nil }

// LogValue gives [redacted] to slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(mask) }
