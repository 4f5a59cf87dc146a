package figures

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Better says which way a figure improves.
type Better string

// The two ways. A figure without one is told and never judged.
const (
	Lower  Better = "lower"
	Higher Better = "higher"
)

// Ratio is the unit of a figure that holds on any machine: two measures taken in
// turns, one divided by the other.
const Ratio = "×"

// Figure is one thing that was measured.
type Figure struct {
	Group  string  `json:"group"`
	Name   string  `json:"name"`
	Value  float64 `json:"value"` // the median
	Unit   string  `json:"unit"`
	Low    float64 `json:"low"` // of the runs; Low and High are the value when there was one run
	High   float64 `json:"high"`
	Better Better  `json:"better,omitempty"`
	Target float64 `json:"target,omitempty"` // that the value has to keep to, 0: none
}

// Judged tells whether the figure has a target, and whether it is met.
func (f Figure) Judged() (met, judged bool) {
	switch {
	case f.Target == 0 || f.Better == "":
		return false, false
	case f.Better == Lower:
		return f.Value <= f.Target, true
	default:
		return f.Value >= f.Target, true
	}
}

// Of makes a figure out of one value for each run. It needs at least one.
func Of(group, name, unit string, values ...float64) Figure {
	return Figure{Group: group, Name: name, Unit: unit, Value: Median(values), Low: slices.Min(values), High: slices.Max(values)}
}

// Toward says which way the figure improves, and its target, 0 for none.
func (f Figure) Toward(b Better, target float64) Figure {
	f.Better, f.Target = b, target
	return f
}

// Median is the middle one of the values, of an even number the mean of both.
// It leaves them in their order; of none it is 0.
func Median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Ratios divides measures that were taken in turns, run by run.
func Ratios(over, under []float64) []float64 {
	r := make([]float64, min(len(over), len(under)))
	for i := range r {
		r[i] = over[i] / under[i]
	}
	return r
}

// Point is what a number of rows costs.
type Point struct {
	Rows       int     `json:"rows"`
	WorkerCPU  float64 `json:"worker_cpu_ms_per_1000_rows"`
	ServerCPU  float64 `json:"postgresql_cpu_ms_per_1000_rows"`
	Seconds    float64 `json:"seconds"`
	PeakMemory float64 `json:"peak_mib"`
}

// Report is all of a run.
type Report struct {
	Machine map[string]string `json:"machine"`
	Figures []Figure          `json:"figures"`
	Curve   []Point           `json:"curve,omitempty"`
	Notes   []string          `json:"notes,omitempty"` // what was left out, and why
}

// Add takes figures in.
func (r *Report) Add(fs ...Figure) { r.Figures = append(r.Figures, fs...) }

// Read reads a report that Write wrote.
func Read(in io.Reader) (Report, error) {
	var r Report
	d := json.NewDecoder(in)
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Report{}, fmt.Errorf("figures: read: %w", err)
	}
	return r, nil
}

// Write writes the report as JSON.
func (r Report) Write(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("figures: write: %w", err)
	}
	return nil
}

// Worse is a ratio that has become worse than a baseline allows.
type Worse struct {
	Figure         // as it is now
	Before float64 // as it was
	By     float64 // the share by which it is worse: 0.25 is a quarter
}

// Compare sets the report against a baseline, ratio by ratio, the worst first:
// what is worse by more than tolerance (0.2 is a fifth), and which of the
// baseline's ratios were not measured. Times and sizes are not compared: they are
// another machine's.
func (r Report) Compare(baseline Report, tolerance float64) (worse []Worse, missing []string) {
	now := map[string]Figure{}
	for _, f := range r.Figures {
		now[f.key()] = f
	}
	for _, before := range baseline.Figures {
		if before.Unit != Ratio || before.Better == "" || before.Value <= 0 {
			continue
		}
		f, there := now[before.key()]
		if !there {
			missing = append(missing, before.key())
			continue
		}
		if by := f.worseThan(before); by > tolerance {
			worse = append(worse, Worse{Figure: f, Before: before.Value, By: by})
		}
	}
	slices.SortStableFunc(worse, func(a, b Worse) int { return cmp.Compare(b.By, a.By) })
	return worse, missing
}

func (f Figure) key() string { return f.Group + ": " + f.Name }

// worseThan is the share by which a figure is worse than before, negative when it
// is better. Twice as slow is 1 whichever way the ratio is written.
func (f Figure) worseThan(before Figure) float64 {
	switch {
	case before.Better == Lower:
		return f.Value/before.Value - 1
	case f.Value <= 0:
		return 1
	default:
		return before.Value/f.Value - 1
	}
}
