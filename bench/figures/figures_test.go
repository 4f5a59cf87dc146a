package figures_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/bench/figures"
)

func TestMedianIsTheMiddleAndLeavesTheOrder(t *testing.T) {
	for name, c := range map[string]struct {
		values []float64
		want   float64
	}{
		"none":                               {nil, 0},
		"one":                                {[]float64{3}, 3},
		"odd":                                {[]float64{9, 1, 5}, 5},
		"even":                               {[]float64{9, 1, 5, 3}, 4},
		"one run that a neighbour disturbed": {[]float64{1, 1, 1, 1, 90}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			before := append([]float64(nil), c.values...)
			if got := figures.Median(c.values); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			if diff := cmp.Diff(before, c.values); diff != "" {
				t.Errorf("the values were moved: %s", diff)
			}
		})
	}
}

func ratio(name string, value float64, b figures.Better) figures.Figure {
	return figures.Of("g", name, figures.Ratio, value).Toward(b, 0)
}

func TestCompareNamesWhatBecameWorseAndNothingElse(t *testing.T) {
	baseline := figures.Report{Figures: []figures.Figure{
		ratio("slower is worse", 1, figures.Lower),
		ratio("a little slower", 1, figures.Lower),
		ratio("less is worse", 10, figures.Higher),
		ratio("a little less", 10, figures.Higher),
		ratio("better", 10, figures.Higher),
		ratio("not measured", 1, figures.Lower),
		ratio("told only", 1, ""),
		figures.Of("g", "a time", "s", 1).Toward(figures.Lower, 0),
	}}
	now := figures.Report{Figures: []figures.Figure{
		ratio("slower is worse", 1.3, figures.Lower),
		ratio("a little slower", 1.19, figures.Lower),
		ratio("less is worse", 5, figures.Higher),
		ratio("a little less", 8.4, figures.Higher),
		ratio("better", 30, figures.Higher),
		ratio("told only", 9, ""),
		figures.Of("g", "a time", "s", 9).Toward(figures.Lower, 0),
	}}
	worse, missing := now.Compare(baseline, 0.2)
	var names []string
	for _, w := range worse {
		names = append(names, w.Name)
	}
	if diff := cmp.Diff([]string{"less is worse", "slower is worse"}, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"g: not measured"}, missing); diff != "" {
		t.Error(diff)
	}
	if by := worse[0].By; by != 1 {
		t.Errorf("half the rate is worse by %v, want 1", by)
	}
}

func TestATargetIsMetOnItsOwnSide(t *testing.T) {
	for name, c := range map[string]struct {
		figure      figures.Figure
		met, judged bool
	}{
		"at most, kept":    {ratio("", 1.04, figures.Lower).Toward(figures.Lower, 1.05), true, true},
		"at most, broken":  {ratio("", 1.06, figures.Lower).Toward(figures.Lower, 1.05), false, true},
		"at least, kept":   {ratio("", 5.1, figures.Higher).Toward(figures.Higher, 5), true, true},
		"at least, broken": {ratio("", 4.9, figures.Higher).Toward(figures.Higher, 5), false, true},
		"no target":        {ratio("", 4.9, figures.Higher), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if met, judged := c.figure.Judged(); met != c.met || judged != c.judged {
				t.Errorf("met %v, judged %v", met, judged)
			}
		})
	}
}

func TestAReportIsReadAsItWasWritten(t *testing.T) {
	want := figures.Report{
		Machine: map[string]string{"cores": "2"},
		Figures: []figures.Figure{figures.Of("g", "n", figures.Ratio, 1, 3, 2).Toward(figures.Lower, 1.5)},
		Curve:   []figures.Point{{Rows: 10_000, WorkerCPU: 1, ServerCPU: 2, Seconds: 3, PeakMemory: 4}},
		Notes:   []string{"no node"},
	}
	var b bytes.Buffer
	if err := want.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := figures.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestInsertReplacesWhatStandsBetweenTheMarks(t *testing.T) {
	page := "head\n<!-- measured: begin -->\nold\n<!-- measured: end -->\ntail\n"
	got, err := figures.Insert(page, "new\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(page, "old", "new", 1); got != want {
		t.Errorf("%q", got)
	}
	if _, err := figures.Insert("no marks", "new"); err == nil {
		t.Error("a page without marks was taken")
	}
}
