package sync_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
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
