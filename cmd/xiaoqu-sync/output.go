package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// answer is what a verb found out. Its JSON is the envelope's data.
type answer interface {
	// text writes the answer for a person.
	text(w io.Writer)
}

// warner is an answer that has something to add without having failed.
type warner interface{ warnings() []string }

// revealer is an answer that is asked for because of the secret in it.
type revealer interface{ revealed() bool }

// envelope is the one JSON form of every verb's answer (AgentUse).
type envelope struct {
	OK       bool       `json:"ok"`
	Data     any        `json:"data,omitempty"`
	Warnings *[]string  `json:"warnings,omitempty"`
	Error    *wireError `json:"error,omitempty"`
	Meta     meta       `json:"meta"`
}

type wireError struct {
	Code        string   `json:"code"`
	Message     string   `json:"message"`
	Details     any      `json:"details"`
	Retryable   bool     `json:"retryable"`
	Suggestions []string `json:"suggestions"`
	RequestID   string   `json:"request_id"`
}

type meta struct {
	OperationID   string    `json:"operation_id"`
	Timestamp     time.Time `json:"timestamp"`
	SchemaVersion string    `json:"schema_version"`
}

// envelopeVersion is the version of the JSON answers.
const envelopeVersion = "1.0"

func newMeta() meta {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	return meta{
		OperationID:   "op-" + hex.EncodeToString(id),
		Timestamp:     time.Now().UTC().Truncate(time.Millisecond),
		SchemaVersion: envelopeVersion,
	}
}

// finish prints how the verb ended, in the form that was asked for, and
// returns the exit code. It is the only place that prints a result.
func (p *program) finish(err error) int {
	if err == nil {
		p.print(p.answer)
		return exitDone
	}
	f := classify(err)
	f.message = printable(p.redactor.String(f.message))
	if p.output == outputJSON {
		p.printJSON(envelope{Error: &wireError{
			Code: f.code, Message: f.message, Details: detailsOrEmpty(f.details), Retryable: f.retryable,
			Suggestions: orEmpty(f.suggestions), RequestID: f.requestID,
		}, Meta: newMeta()})
		return f.exit
	}
	if p.answer != nil {
		p.answer.text(p.display())
	}
	fmt.Fprintf(p.errOut, "xiaoqu-sync: %s\n", f.message)
	for _, s := range f.suggestions {
		fmt.Fprintf(p.errOut, "  → %s\n", s)
	}
	return f.exit
}

func (p *program) print(a answer) {
	if a == nil { // help has printed itself
		return
	}
	var warnings []string
	if w, ok := a.(warner); ok {
		warnings = w.warnings()
	}
	if p.output == outputJSON {
		all := orEmpty(warnings)
		p.printJSON(envelope{OK: true, Data: a, Warnings: &all, Meta: newMeta()})
		return
	}
	a.text(p.display())
	for _, w := range warnings {
		fmt.Fprintf(p.errOut, "warning: %s\n", w)
	}
}

// display is standard output, with colours when it is a terminal and nobody
// asked for none (NO_COLOR).
func (p *program) display() io.Writer {
	if no, _ := p.lookup("NO_COLOR"); no == "" && terminal(p.out) {
		return display{p.out}
	}
	return p.out
}

func (p *program) printJSON(e envelope) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(e); err != nil {
		fmt.Fprintf(p.errOut, "xiaoqu-sync: the answer cannot be written as JSON: %v\n", err)
		return
	}
	text := b.String()
	if r, ok := e.Data.(revealer); !ok || !r.revealed() {
		text = p.redactor.String(text)
	}
	fmt.Fprint(p.out, text)
}

// printable takes out what would move a terminal's cursor: texts of the remote
// are quoted in ours.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return ' '
		}
		return r
	}, s)
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func detailsOrEmpty(d any) any {
	if d == nil {
		return struct{}{}
	}
	return d
}
