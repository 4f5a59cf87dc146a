package board

import (
	"fmt"
	"strconv"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

const (
	chartRuns   = 40 // runs in a chart
	chartHeight = 36.0
	slotWidth   = 10.0 // of a run, in the drawing's own units
	barWidth    = 7.0
	stub        = 1.5 // height of a bar for nothing, so that the run is seen
)

// chart is a row of bars, the latest run at the right.
type chart struct {
	Width, Height string
	Bars          []bar
	Label         string // all of it in words, for those who do not see it
}

type bar struct {
	X, Y, W, H string
	Class      string
	Title      string
}

// draw makes a chart of values, each with its class and title; the values are in
// the order of time.
func draw(label string, values []float64, class, title func(i int) string) chart {
	c := chart{Width: number(chartRuns * slotWidth), Height: number(chartHeight), Label: label}
	top := 1e-9
	for _, v := range values {
		top = max(top, v)
	}
	for i, v := range values {
		h := max(v/top*chartHeight, stub)
		x := float64(chartRuns-len(values)+i)*slotWidth + (slotWidth-barWidth)/2
		c.Bars = append(c.Bars, bar{
			X: number(x), Y: number(chartHeight - h), W: number(barWidth), H: number(h), Class: class(i), Title: title(i),
		})
	}
	return c
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// charts draws how long the runs took and how many records came, runs being in
// the order of time.
func (b *board) charts(runs []mirror.Run, now time.Time, w words) (took, rows chart) {
	seconds, received := make([]float64, len(runs)), make([]float64, len(runs))
	var longest time.Duration
	var most int64
	for i, r := range runs {
		d := lasted(r, now)
		seconds[i], received[i] = d.Seconds(), float64(r.Counts.Received)
		longest, most = max(longest, d), max(most, r.Counts.Received)
	}
	at := func(i int) string { return b.clock(runs[i].StartedAt, now) }
	took = draw(fmt.Sprintf(w.ChartTook, len(runs), w.exact(longest)), seconds,
		func(i int) string { return ofOutcome(runs[i].Outcome) },
		func(i int) string {
			return fmt.Sprintf("%s · %s · %s", at(i), w.outcome(runs[i].Outcome), w.exact(lasted(runs[i], now)))
		})
	rows = draw(fmt.Sprintf(w.ChartRows, len(runs), count(most)), received,
		func(int) string { return "rows" },
		func(i int) string { return fmt.Sprintf("%s · %s", at(i), count(runs[i].Counts.Received)) })
	return took, rows
}

// lasted is how long a run took, or has been at work.
func lasted(r mirror.Run, now time.Time) time.Duration {
	end := now
	if r.EndedAt != nil {
		end = *r.EndedAt
	}
	return max(end.Sub(r.StartedAt), 0)
}
