package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one mistake, or one remark, in what was given. It never holds a
// secret.
type Problem struct {
	Source  string `json:"source,omitempty"` // the file's name, "environment", "flag", or "" for what is nowhere
	Line    int    `json:"line,omitempty"`   // in the file, from 1; 0 when there is none
	Column  int    `json:"column,omitempty"` // in characters, from 1
	Field   string `json:"field,omitempty"`  // path of the setting, or name of the variable or flag
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // what to do, "" when the message says it
	Warning bool   `json:"warning,omitempty"`
}

// String reads: file.yaml:3:5: database.url: what is wrong (what to do).
func (p Problem) String() string {
	var b strings.Builder
	if p.Source != "" {
		b.WriteString(p.Source)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Problems are all mistakes of one configuration: by source, then by place.
type Problems []Problem

// Error has one line for each mistake.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Field, b.Field),
		)
	})
}

// rank puts the file first and what is nowhere last.
func rank(p Problem) int {
	switch p.Source {
	case sourceEnvironment:
		return 1
	case sourceFlag:
		return 2
	case "":
		return 3
	}
	return 0
}

// mistake is what is wrong with one value, before its place is known.
type mistake struct{ message, hint string }

func (m *mistake) Error() string { return m.message }

func wrong(hint, format string, args ...any) error {
	return &mistake{message: fmt.Sprintf(format, args...), hint: hint}
}
