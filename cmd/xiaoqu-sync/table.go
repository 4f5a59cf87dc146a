package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// colour is how a row stands out on a terminal, and only there.
type colour string

const (
	plain  colour = ""
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
	red    colour = "\x1b[31m"
)

const colourOff = "\x1b[0m"

// display is a terminal that shows colours.
type display struct{ io.Writer }

// table prints aligned columns. Widths count characters, so colours are laid
// over whole lines when the columns stand.
type table struct {
	to      io.Writer
	text    bytes.Buffer
	tabs    *tabwriter.Writer
	colours []colour
}

func newTable(to io.Writer, heads ...any) *table {
	t := &table{to: to}
	t.tabs = tabwriter.NewWriter(&t.text, 0, 0, 2, ' ', 0)
	t.row(plain, heads...)
	return t
}

// row adds a line. A cell's own line breaks and tabs become spaces, and nothing
// in it can move the cursor.
func (t *table) row(c colour, cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = strings.Join(strings.FieldsFunc(fmt.Sprint(cell), unicode.IsControl), " ")
	}
	fmt.Fprintln(t.tabs, strings.Join(texts, "\t"))
	t.colours = append(t.colours, c)
}

// flush prints what was added.
func (t *table) flush() {
	_ = t.tabs.Flush() // into memory
	_, shows := t.to.(display)
	for i, line := range strings.SplitAfter(strings.TrimSuffix(t.text.String(), "\n"), "\n") {
		if shows && i < len(t.colours) && t.colours[i] != plain {
			body := strings.TrimSuffix(line, "\n")
			line = string(t.colours[i]) + body + colourOff + strings.TrimPrefix(line, body)
		}
		fmt.Fprint(t.to, line)
	}
	fmt.Fprintln(t.to)
}
