package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/bench/figures"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// simulatorFlag makes this program the simulated remote of another one.
const simulatorFlag = "-simulator"

type options struct {
	only   string
	rows   int
	rounds int
	quick  bool
	from   string
	json   string
	check  string
	page   string
	svg    string
}

func run(ctx context.Context, args []string, in io.Reader, out, progress io.Writer) error {
	if slices.Equal(args, []string{simulatorFlag}) {
		return simulate(in, out)
	}
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	report, err := obtain(ctx, o, progress)
	if err != nil {
		return err
	}
	if err := report.Text(out); err != nil {
		return err
	}
	return publish(report, o, out)
}

// obtain measures, or reads what was measured before.
func obtain(ctx context.Context, o options, progress io.Writer) (figures.Report, error) {
	if o.from != "" {
		return fromFile(o.from)
	}
	b := &bench{options: o, progress: progress, began: time.Now()}
	defer b.close()
	if err := b.open(ctx); err != nil {
		return figures.Report{}, err
	}
	for _, g := range groups() {
		if !slices.Contains(strings.Split(o.only, ","), g.name) {
			continue
		}
		if err := g.run(ctx, b); err != nil {
			return figures.Report{}, fmt.Errorf("%s: %w", g.name, err)
		}
	}
	return b.report, nil
}

func fromFile(name string) (figures.Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return figures.Report{}, err
	}
	defer func() { _ = f.Close() }()
	return figures.Read(f)
}

// group is one table of the report.
type group struct {
	name string
	run  func(context.Context, *bench) error
}

func groups() []group {
	return []group{
		{"drain", measureDrain},
		{"apply", measureApply},
		{"rebuild", measureRebuild},
		{"cost", measureCost},
		{"peer", measurePeer},
	}
}

func parse(args []string, errOut io.Writer) (options, error) {
	var all []string
	for _, g := range groups() {
		all = append(all, g.name)
	}
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.StringVar(&o.only, "only", strings.Join(all, ","), "the groups to measure")
	flags.IntVar(&o.rows, "rows", 1_000_000, "rows of the largest table")
	flags.IntVar(&o.rounds, "rounds", 5, "turns that each median is made of")
	flags.BoolVar(&o.quick, "quick", false, "small and few: to see that it works, not to believe")
	flags.StringVar(&o.from, "from", "", "measure nothing: take the figures of this file")
	flags.StringVar(&o.json, "json", "", "write the figures to this file as well")
	flags.StringVar(&o.check, "check", "", "compare the ratios with this file's and fail when one is worse by more than a fifth")
	flags.StringVar(&o.page, "page", "", "put the tables into this page, between its marks")
	flags.StringVar(&o.svg, "svg", "", "draw cost by rows into this file")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if o.quick {
		o.rows, o.rounds = min(o.rows, 20_000), min(o.rounds, 2)
	}
	for _, name := range strings.Split(o.only, ",") {
		if !slices.Contains(all, name) {
			return options{}, fmt.Errorf("no group %q; there are %s", name, strings.Join(all, ", "))
		}
	}
	if flags.NArg() > 0 || o.rows < 10_000 || o.rounds < 1 {
		return options{}, errors.New("no argument is taken, -rows is 10000 at least, -rounds is 1 at least")
	}
	return o, nil
}

// tolerance is how much worse a ratio may be than the baseline's: a fifth.
const tolerance = 0.2

// publish writes the report where the options say, and judges it.
func publish(r figures.Report, o options, out io.Writer) error {
	if o.json != "" {
		if err := toFile(o.json, r.Write); err != nil {
			return err
		}
	}
	if o.svg != "" && len(r.Curve) > 1 {
		draw := func(w io.Writer) error { return figures.Plot(w, r.Curve) }
		if err := toFile(o.svg, draw); err != nil {
			return err
		}
	}
	if o.page != "" {
		if err := intoPage(o.page, r); err != nil {
			return err
		}
	}
	if o.check == "" {
		return nil
	}
	return check(o.check, r, out)
}

func toFile(name string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

func intoPage(name string, r figures.Report) error {
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var tables strings.Builder
	r.Markdown(&tables)
	text, err := figures.Insert(string(page), tables.String())
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// check fails when a ratio is worse than the baseline allows. One that was not
// measured is told, not failed: the groups may have been chosen.
func check(name string, r figures.Report, out io.Writer) error {
	baseline, err := fromFile(name)
	if err != nil {
		return err
	}
	worse, missing := r.Compare(baseline, tolerance)
	for _, name := range missing {
		fmt.Fprintf(out, "not measured, so not compared: %s\n", name)
	}
	for _, w := range worse {
		fmt.Fprintf(out, "worse by %.0f %%: %s: %s: %.3g, was %.3g\n", w.By*100, w.Group, w.Name, w.Value, w.Before)
	}
	if len(worse) > 0 {
		return fmt.Errorf("%d ratios are worse than in %s by more than %.0f %%", len(worse), name, tolerance*100)
	}
	fmt.Fprintf(out, "no ratio is worse than in %s by more than %.0f %%\n", name, tolerance*100)
	return nil
}
