package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/bench/figures"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

const groupRebuild = "rebuild after an expired cursor"

// measureRebuild tells what a full pass costs, and what readers notice of it: they
// read by key all the time.
func measureRebuild(ctx context.Context, b *bench) error {
	if err := b.anew(ctx); err != nil {
		return err
	}
	b.say("rebuild: a mirror of %d rows", b.rows)
	if err := b.bring(ctx, madeOnDemand(b.rows, 0), resources(1)); err != nil {
		return err
	}
	b.report.Add(figures.Of(groupRebuild, "rows of the mirror", "", float64(b.rows)))
	for _, percent := range []int{0, 1, 100} {
		b.say("rebuild: %d %% different", percent)
		if err := b.rebuildOnce(ctx, percent); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) rebuildOnce(ctx context.Context, percent int) error {
	slowest, stop, err := b.read(ctx)
	if err != nil {
		return err
	}
	pages := madeOnDemand(b.rows, percent)
	pages.expired = true
	before, err := b.written(ctx)
	if err != nil {
		return err
	}
	// The staging ends with the commit of the last page.
	began, staged, middle := time.Now(), time.Time{}, int64(0)
	b.watch = func(p sync.Progress) {
		if p.Pages == int64(pages.count) {
			staged = time.Now()
			middle, err = b.written(ctx)
		}
	}
	out := b.engine(pages).Sync(ctx, resources(1))[0]
	b.watch = nil
	merge, staging := time.Since(staged), staged.Sub(began)
	after, afterErr := b.written(ctx)
	if err := errors.Join(err, afterErr, stop(), out.Err); err != nil {
		return err
	}
	what := fmt.Sprintf("%d %% different: ", percent)
	rows := float64(b.rows)
	b.report.Add(
		figures.Of(groupRebuild, what+"staging", "rows/s", rows/staging.Seconds()),
		figures.Of(groupRebuild, what+"merge", "s", merge.Seconds()),
		figures.Of(groupRebuild, what+"merge against staging", figures.Ratio, merge.Seconds()/staging.Seconds()).Toward(figures.Lower, 0),
		figures.Of(groupRebuild, what+"WAL of staging", "B/row", float64(middle-before)/rows),
		figures.Of(groupRebuild, what+"WAL of the merge", "B/row", float64(after-middle)/rows),
		figures.Of(groupRebuild, what+"longest read by key", "ms", slowest().Seconds()*1000),
	)
	return nil
}

// read reads by key on a connection of its own until stop is called. slowest is
// asked after that.
func (b *bench) read(ctx context.Context) (slowest func() time.Duration, stop func() error, err error) {
	conn, err := pgx.Connect(ctx, b.url)
	if err != nil {
		return nil, nil, err
	}
	done, ended := make(chan struct{}), make(chan error, 1)
	var longest time.Duration
	go func() {
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		pace := time.NewTicker(2 * time.Millisecond) // a reader, not a load
		defer pace.Stop()
		for i := 0; ; i++ {
			select {
			case <-done:
				ended <- nil
				return
			case <-pace.C:
			}
			began := time.Now()
			var n int
			err := conn.QueryRow(ctx, "select count(record) from xiaoqu.contracts_live where id = $1", idOf(i*7919%b.rows)).Scan(&n)
			if err != nil || n != 1 {
				ended <- fmt.Errorf("a reader met %d rows of one id: %w", n, err)
				return
			}
			longest = max(longest, time.Since(began))
		}
	}()
	stop = func() error { close(done); return <-ended }
	return func() time.Duration { return longest }, stop, nil
}
