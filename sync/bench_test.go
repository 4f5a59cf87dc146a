package sync_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// BenchmarkSyncAgainstDrain compares a first sync with draining the same pages
// by the same client without a database, interleaved. drain-ratio is the
// median of sync time over drain time.
func BenchmarkSyncAgainstDrain(b *testing.B) {
	for _, delay := range []time.Duration{0, 20 * time.Millisecond, 50 * time.Millisecond} {
		for _, resources := range [][]string{{"users"}, all} {
			b.Run(fmt.Sprintf("delay=%v/resources=%d", delay, len(resources)), func(b *testing.B) {
				benchmarkDrain(b, delay, resources)
			})
		}
	}
}

const benchRows = 10_000

func benchmarkDrain(b *testing.B, delay time.Duration, resources []string) {
	w := newWorld(b, func(o *remotetest.Options) { o.Strict = false })
	w.xiaoqu.Seed(benchRows, benchRows, benchRows)
	w.xiaoqu.PageDelay(delay)
	w.limit = 200
	var ratios, seconds []float64
	for b.Loop() {
		drained := timed(func() { drainAll(b, w, resources) })
		b.StopTimer()
		w.reset(b)
		b.StartTimer()
		synced := timed(func() { w.mustRun(b, resources...) })
		ratios = append(ratios, synced.Seconds()/drained.Seconds())
		seconds = append(seconds, synced.Seconds())
	}
	b.ReportMetric(median(ratios), "drain-ratio")
	b.ReportMetric(benchRows*float64(len(resources))/median(seconds), "rows/s")
}

func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// drainAll is what a sync would cost if the database were free: identity,
// tools, and every page of every resource side by side.
func drainAll(b *testing.B, w *world, resources []string) {
	b.Helper()
	if _, err := w.client.Identity(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, err := w.client.Tools(b.Context()); err != nil {
		b.Fatal(err)
	}
	done := make(chan error, len(resources))
	for _, r := range resources {
		go func() { done <- drain(b, w, r) }()
	}
	for range resources {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

func drain(b *testing.B, w *world, resource string) error {
	q := remote.Query{Resource: resource, Limit: w.limit}
	for {
		p, err := w.client.Changes(b.Context(), q)
		if err != nil || !p.HasMore {
			return err
		}
		q.Cursor = p.NextCursor
	}
}

// BenchmarkReaderDuringRebuild reads by key all through a rebuild in which one
// row of a hundred differs, and as long without one. p99-ratio is the reader's
// 99th percentile with over without.
func BenchmarkReaderDuringRebuild(b *testing.B) {
	w := newWorld(b, func(o *remotetest.Options) { o.Strict = false })
	w.xiaoqu.Seed(benchRows, 0, 0)
	w.limit = 200
	w.mustRun(b, "users")
	w.xiaoqu.PageDelay(20 * time.Millisecond)
	ids := w.xiaoqu.IDs("users")
	var with, without []float64
	slowest := time.Duration(0)
	for i := 0; b.Loop(); i++ {
		for _, id := range ids[:benchRows/100] {
			w.xiaoqu.Edit("users", id, fmt.Sprintf(`{"name":"edited %d"}`, i))
		}
		began := time.Now()
		busy := readWhile(b, w, ids, func() { w.task(b.Context(), (*sync.Engine).Rebuild, "users") })
		took := time.Since(began)
		idle := readWhile(b, w, ids, func() { <-time.NewTimer(took).C })
		with, without = append(with, percentile(busy, 99)), append(without, percentile(idle, 99))
		slowest = max(slowest, slices.Max(busy))
	}
	b.ReportMetric(median(with)/median(without), "p99-ratio")
	b.ReportMetric(median(with)*1000, "p99-ms")
	b.ReportMetric(slowest.Seconds()*1000, "slowest-ms")
}

// readWhile reads by key until f is done, and returns how long each read took.
func readWhile(b *testing.B, w *world, ids []string, f func()) []time.Duration {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), w.url)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(b.Context())) }()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	var took []time.Duration
	for i := 0; ; i++ {
		select {
		case <-done:
			return took
		default:
		}
		began := time.Now()
		var record string
		if err := conn.QueryRow(b.Context(), "select record::text from xiaoqu.users_live where id = $1", ids[i*7919%len(ids)]).Scan(&record); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
}

func percentile(took []time.Duration, p int) float64 {
	slices.Sort(took)
	return took[len(took)*p/100].Seconds()
}
