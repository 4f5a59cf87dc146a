package figures

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// The drawing, in pixels. Two panels stand side by side.
const (
	plotWidth, plotHeight = 760, 300
	panelWidth            = 300
	panelHeight           = 190
	panelTop, panelLeft   = 50, 60
	panelGap              = 80
)

// style is for light and for dark pages: the reader's browser says which.
const style = `<style>
text{font:12px sans-serif;fill:#24292f}.axis{stroke:#8c959f;fill:none}.grid{stroke:#d0d7de;fill:none}
.a{stroke:#0969da;fill:none;stroke-width:2}.b{stroke:#bc4c00;fill:none;stroke-width:2}.fa{fill:#0969da}.fb{fill:#bc4c00}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.axis{stroke:#8b949e}.grid{stroke:#30363d}
.a{stroke:#58a6ff}.b{stroke:#ffa657}.fa{fill:#58a6ff}.fb{fill:#ffa657}}
</style>`

// series is one line of a panel.
type series struct {
	name, class string
	value       func(Point) float64
}

// Plot draws how cost grows with rows: CPU on the left, peak memory on the right,
// rows on a logarithmic scale. It needs two points at least.
func Plot(out io.Writer, curve []Point) error {
	if len(curve) < 2 {
		return fmt.Errorf("figures: plot: %d points", len(curve))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="Cost by rows">`+"\n%s\n",
		plotWidth, plotHeight, style)
	panel(&b, panelLeft, "CPU, ms per 1,000 rows", curve, []series{
		{"PostgreSQL", "b", func(p Point) float64 { return p.ServerCPU }},
		{"xiaoqu-sync", "a", func(p Point) float64 { return p.WorkerCPU }},
	})
	panel(&b, panelLeft+panelWidth+panelGap, "Peak memory of xiaoqu-sync, MiB", curve, []series{
		{"", "a", func(p Point) float64 { return p.PeakMemory }},
	})
	b.WriteString("</svg>\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// panel draws axes, grid and lines with its upper left corner at x, panelTop.
func panel(b *strings.Builder, x int, title string, curve []Point, lines []series) {
	top := ceiling(curve, lines)
	bottom := panelTop + panelHeight
	across := func(rows int) float64 {
		first, last := math.Log10(float64(curve[0].Rows)), math.Log10(float64(curve[len(curve)-1].Rows))
		return float64(x) + (math.Log10(float64(rows))-first)/(last-first)*panelWidth
	}
	up := func(v float64) float64 { return float64(bottom) - v/top*panelHeight }
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", x, panelTop-30, title)
	for i := range 5 {
		v := top * float64(i) / 4
		fmt.Fprintf(b, `<path class="grid" d="M%d %.1fh%d"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			x, up(v), panelWidth, x-6, up(v)+4, number(v))
	}
	for _, p := range curve {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", across(p.Rows), bottom+18, thousands(p.Rows))
	}
	fmt.Fprintf(b, `<path class="axis" d="M%d %dv%dh%d"/><text x="%d" y="%d" text-anchor="middle">rows of a first sync</text>`+"\n",
		x, panelTop, panelHeight, panelWidth, x+panelWidth/2, bottom+36)
	for i, l := range lines {
		path := ""
		for j, p := range curve {
			path += fmt.Sprintf("%c%.1f %.1f", "ML"[min(j, 1)], across(p.Rows), up(l.value(p)))
			fmt.Fprintf(b, `<circle class="f%s" cx="%.1f" cy="%.1f" r="3"/>`, l.class, across(p.Rows), up(l.value(p)))
		}
		fmt.Fprintf(b, `<path class="%s" d="%s"/>`+"\n", l.class, path)
		if l.name != "" {
			fmt.Fprintf(b, `<path class="%s" d="M%d %dh20"/><text x="%d" y="%d">%s</text>`+"\n",
				l.class, x+i*130, panelTop-14, x+i*130+26, panelTop-10, l.name)
		}
	}
}

// ceiling is a round number above all values.
func ceiling(curve []Point, lines []series) float64 {
	top := 0.0
	for _, p := range curve {
		for _, l := range lines {
			top = max(top, l.value(p))
		}
	}
	if top <= 0 {
		return 1
	}
	step := math.Pow(10, math.Floor(math.Log10(top)))
	for _, m := range []float64{1, 2, 4, 5, 8, 10} {
		if m*step >= top*1.05 {
			return m * step
		}
	}
	return 20 * step
}

func thousands(rows int) string {
	if rows >= 1_000_000 && rows%1_000_000 == 0 {
		return fmt.Sprintf("%d M", rows/1_000_000)
	}
	return fmt.Sprintf("%d k", rows/1000)
}
