package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/bench/figures"
)

const groupCost = "what it costs"

// costRows is how many rows the comparisons of CPU and allocations read in a turn.
const costRows = 20_000

// measureCost tells what a page takes of the worker's CPU, and how the real
// binary's needs grow with the rows.
func measureCost(ctx context.Context, b *bench) error {
	if err := b.anew(ctx); err != nil {
		return err
	}
	s, err := startSimulator(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := b.cpu(ctx, s); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "xiaoqu-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p := program{binary: filepath.Join(dir, "xiaoqu-sync"), env: s.environment(b.url)}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", p.binary, "github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build xiaoqu-sync: %w\n%s", err, text)
	}
	if err := b.growth(ctx, s, p); err != nil {
		return err
	}
	return b.idle(ctx, s, p)
}

// cpu compares the worker with the bare client, page for page, and counts its
// allocations.
func (b *bench) cpu(ctx context.Context, s *simulator) error {
	rows := min(costRows, b.rows/2)
	b.say("cost: CPU of %d rows", rows)
	if err := s.fill(0, 0, rows); err != nil {
		return err
	}
	floor, err := shake(ctx, s, true)
	if err != nil {
		return err
	}
	worker, err := client(s)
	if err != nil {
		return err
	}
	defer func() { _ = worker.Close() }()
	var bytes, objects []float64
	ms, err := b.turns(ctx, b.rounds,
		contender{do: func(ctx context.Context) error {
			return floor.round(ctx, resources(1), make([]string, 1), make([]string, 1))
		}},
		contender{before: b.empty, do: func(ctx context.Context) error {
			before := allocated()
			err := b.bring(ctx, worker, resources(1))
			after := allocated()
			bytes = append(bytes, float64(after.TotalAlloc-before.TotalAlloc)/float64(rows))
			objects = append(objects, float64(after.Mallocs-before.Mallocs)/float64(rows))
			return err
		}})
	if err != nil {
		return err
	}
	b.report.Add(
		figures.Of(groupCost, "worker's CPU a page against a bare HTTP client's that parses to raw JSON", figures.Ratio, figures.Ratios(ms[1].worker, ms[0].worker)...).
			Toward(figures.Lower, 2.5),
		figures.Of(groupCost, "CPU of the bare client", "ms/1000 rows", each(ms[0].worker, 1e6/float64(rows))...),
		figures.Of(groupCost, "CPU of the worker", "ms/1000 rows", each(ms[1].worker, 1e6/float64(rows))...),
		figures.Of(groupCost, "CPU of PostgreSQL", "ms/1000 rows", each(ms[1].server, 1e6/float64(rows))...),
		figures.Of(groupCost, "allocated by the worker", "B/row", bytes...),
		figures.Of(groupCost, "allocations of the worker", "/row", objects...),
	)
	return nil
}

func allocated() runtime.MemStats {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m
}

// growth runs the real binary over ever more rows.
func (b *bench) growth(ctx context.Context, s *simulator, p program) error {
	there := 0
	for _, rows := range slices.Compact([]int{min(10_000, b.rows), min(100_000, b.rows), b.rows}) {
		b.say("cost: the binary, %d rows", rows)
		if err := s.fill(rows-there, 0, 0); err != nil {
			return err
		}
		there = rows
		if err := b.anew(ctx); err != nil {
			return err
		}
		server, began := b.serverCPU(), time.Now()
		used, err := p.run(ctx, "sync", "users")
		if err != nil {
			return err
		}
		thousands := float64(rows) / 1000
		point := figures.Point{
			Rows: rows, Seconds: time.Since(began).Seconds(), PeakMemory: used.peak,
			WorkerCPU: used.cpu.Seconds() * 1000 / thousands, ServerCPU: (b.serverCPU() - server).Seconds() * 1000 / thousands,
		}
		b.report.Curve = append(b.report.Curve, point)
		what := fmt.Sprintf("the binary, first sync of %d rows: ", rows)
		peak := figures.Of(groupCost, what+"peak memory", "MiB", point.PeakMemory)
		if rows == b.rows {
			peak = peak.Toward(figures.Lower, 48)
		}
		b.report.Add(
			figures.Of(groupCost, what+"rows", "rows/s", float64(rows)/point.Seconds),
			figures.Of(groupCost, what+"CPU of the worker", "ms/1000 rows", point.WorkerCPU),
			figures.Of(groupCost, what+"CPU of PostgreSQL", "ms/1000 rows", point.ServerCPU),
			peak,
		)
	}
	return nil
}

// idle tells how soon the binary speaks to the remote, and what the daemon uses
// when there is nothing to do.
func (b *bench) idle(ctx context.Context, s *simulator, p program) error {
	b.say("cost: start and rest")
	var waits []float64
	for range b.rounds {
		began := time.Now()
		if _, err := p.run(ctx, "sync", "properties"); err != nil {
			return err
		}
		n, err := s.ask(order{Do: "last"})
		if err != nil {
			return err
		}
		waits = append(waits, n.Last.Sub(began).Seconds()*1000)
	}
	share, err := p.rest(ctx, b.quick)
	if err != nil {
		return err
	}
	b.report.Add(
		figures.Of(groupCost, "the binary, start to first request", "ms", waits...),
		figures.Of(groupCost, "the daemon at rest", "% of a core", share*100),
	)
	return nil
}
