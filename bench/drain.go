package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xiaoqu-sync/xiaoqu-sync/bench/figures"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

const groupDrain = "sync against draining the same pages with a bare HTTP client"

// measureDrain tells how much longer a sync takes than the remote itself needs.
// Each resource has enough rows for two seconds at least where the remote is slow:
// signing in and out is not what is measured.
func measureDrain(ctx context.Context, b *bench) error {
	for _, pace := range []struct {
		latency time.Duration
		rows    int
	}{{0, 20_000}, {5 * time.Millisecond, 20_000}, {20 * time.Millisecond, 40_000}, {50 * time.Millisecond, 20_000}} {
		if err := b.drainAt(ctx, pace.latency, min(pace.rows, b.rows)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) drainAt(ctx context.Context, latency time.Duration, rows int) error {
	s, err := startSimulator(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.fill(rows, rows, rows); err != nil {
		return err
	}
	if err := s.pace(latency); err != nil {
		return err
	}
	worker, err := client(s)
	if err != nil {
		return err
	}
	defer func() { _ = worker.Close() }()
	for _, n := range []int{1, 3} {
		b.say("drain: %v, %d resources", latency, n)
		if err := b.drainOnce(ctx, s, worker, latency, n, rows); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) drainOnce(ctx context.Context, s *simulator, worker *remote.Client, latency time.Duration, n, rows int) error {
	floor, err := shake(ctx, s, false)
	if err != nil {
		return err
	}
	names, tokens := resources(n), make([]string, n)
	first, err := b.turns(ctx, b.rounds,
		contender{do: func(ctx context.Context) error { return floor.round(ctx, names, make([]string, n), tokens) }},
		contender{before: b.empty, do: func(ctx context.Context) error { return b.bring(ctx, worker, names) }})
	if err != nil {
		return err
	}
	again, err := b.turns(ctx, max(b.rounds, 2*b.rounds-1),
		contender{do: func(ctx context.Context) error { return floor.round(ctx, names, tokens, make([]string, n)) }},
		contender{do: func(ctx context.Context) error { return b.bring(ctx, worker, names) }})
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%v a page, %d resources", latency, n)
	if n == 1 {
		what = what[:len(what)-1]
	}
	ratio := figures.Of(groupDrain, what+": first sync", figures.Ratio, figures.Ratios(first[1].wall, first[0].wall)...)
	if latency > 0 { // a remote that takes no time is no measure
		ratio = ratio.Toward(figures.Lower, drainTarget(latency, n))
	}
	b.report.Add(
		ratio,
		figures.Of(groupDrain, what+": rate of it", "rows/s", rates(n*rows, first[1].wall)...),
		figures.Of(groupDrain, what+": nothing changed", "ms more than draining", differences(again[1].wall, again[0].wall)...),
	)
	return nil
}

// drainTarget is what a first sync may take at most; 0 where nothing was promised.
func drainTarget(latency time.Duration, n int) float64 {
	switch {
	case latency == 20*time.Millisecond && n == 1:
		return 1.05
	case latency == 20*time.Millisecond:
		return 1.10
	case latency == 50*time.Millisecond:
		return 1.03
	}
	return 0
}

// differences are milliseconds, turn by turn.
func differences(more, less []float64) []float64 {
	d := make([]float64, len(more))
	for i := range d {
		d[i] = (more[i] - less[i]) * 1000
	}
	return d
}

// round drains the resources side by side, from their tokens, and notes the next
// ones.
func (c *bare) round(ctx context.Context, names, since, next []string) error {
	if err := c.greet(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		one := c.beside()
		g.Go(func() (err error) {
			next[i], _, err = one.drain(ctx, name, since[i])
			return err
		})
	}
	return g.Wait()
}
