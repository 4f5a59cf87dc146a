package figures

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Text prints the report for a terminal.
func (r Report) Text(out io.Writer) error {
	for _, name := range slices.Sorted(maps.Keys(r.Machine)) {
		fmt.Fprintf(out, "%-12s %s\n", name, r.Machine[name])
	}
	group := ""
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range r.Figures {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(t, "\n%s\t\t\t\n", group)
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", f.Name, f.value(), f.spread(), f.verdict())
	}
	for _, n := range r.Notes {
		fmt.Fprintf(t, "\nnote: %s\n", n)
	}
	return t.Flush()
}

// Markdown prints the report as tables for a page.
func (r Report) Markdown(out io.Writer) {
	fmt.Fprint(out, "| machine | |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(r.Machine)) {
		fmt.Fprintf(out, "| %s | %s |\n", name, r.Machine[name])
	}
	group := ""
	for _, f := range r.Figures {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(out, "\n### %s\n\n| what | median | of the runs | target |\n|---|---|---|---|\n", strings.ToUpper(group[:1])+group[1:])
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", f.Name, f.value(), f.spread(), f.verdict())
	}
	for _, n := range r.Notes {
		fmt.Fprintf(out, "\n%s\n", n)
	}
}

func (f Figure) value() string {
	if f.Unit == Ratio {
		return number(f.Value) + " " + Ratio
	}
	return strings.TrimSpace(number(f.Value) + " " + f.Unit)
}

func (f Figure) spread() string {
	if f.Low == f.High {
		return ""
	}
	return number(f.Low) + " – " + number(f.High)
}

func (f Figure) verdict() string {
	met, judged := f.Judged()
	if !judged {
		return ""
	}
	bound := "≤ "
	if f.Better == Higher {
		bound = "≥ "
	}
	word := "met"
	if !met {
		word = "not met"
	}
	return bound + number(f.Target) + ", " + word
}

// number keeps three digits that say something.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.01 || a == 0:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
}

// The lines between which Insert puts its text.
const (
	beginMark = "<!-- measured: begin -->"
	endMark   = "<!-- measured: end -->"
)

// Insert puts text between the two marks of a page, in place of what was there.
func Insert(page, text string) (string, error) {
	before, rest, begun := strings.Cut(page, beginMark)
	_, after, ended := strings.Cut(rest, endMark)
	if !begun || !ended {
		return "", fmt.Errorf("figures: insert: the page has no lines %q and %q", beginMark, endMark)
	}
	return before + beginMark + "\n" + strings.Trim(text, "\n") + "\n" + endMark + after, nil
}
