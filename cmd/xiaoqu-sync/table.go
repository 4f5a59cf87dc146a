package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// table prints aligned columns. Column widths count runes, so labels stay
// ASCII; values may be anything.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, heads ...any) *table {
	t := &table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.row(heads...)
	return t
}

func (t *table) row(cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		fmt.Fprint(t.w, c)
	}
	fmt.Fprintln(t.w)
}

func (t *table) flush() { _ = t.w.Flush() }
