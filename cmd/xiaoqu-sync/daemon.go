package main

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// daemon is the verb run at work. The app's pool and the remote's session stay
// open from one tick to the next.
type daemon struct {
	app     *app
	hooks   hooks
	notify  *notifier
	table   *sync.Timetable
	engine  *sync.Engine // nil until the database was reached
	contact atomic.Bool
	failed  chan map[string]error // by resource: why its last run failed; the map is held by whoever took it
	away    atomic.Bool           // the database was away at the last look
	fail    context.CancelCauseFunc
}

func newDaemon(a *app, h hooks) (*daemon, error) {
	d := &daemon{app: a, hooks: h.orNothing(), notify: newNotifier(a), failed: make(chan map[string]error, 1)}
	d.failed <- map[string]error{}
	plan, err := d.planOf(a.config)
	if err != nil {
		return nil, err
	}
	d.table = sync.NewTimetable(sync.TimetableOptions{
		Plan: plan, Work: d.work, Skipped: d.hooks.skipped, Logger: a.log.Named("timetable"),
		Panicked: func(resources []string) {
			for _, r := range resources {
				d.hooks.panicked(r)
			}
		},
		Beat: d.notify.alive, BeatEvery: d.notify.interval,
	})
	return d, nil
}

// run works until ctx ends, and returns why it did.
func (d *daemon) run(ctx context.Context, hangups <-chan os.Signal) error {
	ctx, d.fail = context.WithCancelCause(ctx)
	defer d.fail(nil)
	context.AfterFunc(ctx, d.notify.stopping)
	d.app.log.Info("the daemon begins", zap.Int("pid", os.Getpid()), zap.String("version", buildVersion().Version))
	g, ctx := errgroup.WithContext(ctx)
	for _, f := range d.hooks.background {
		g.Go(func() error { return f(ctx) })
	}
	g.Go(func() error { return d.serve(ctx) })
	g.Go(func() error {
		for {
			select {
			case <-hangups:
				d.reload(ctx)
			case <-ctx.Done():
				return nil
			}
		}
	})
	return g.Wait()
}

// serve reaches the database and follows the timetable.
func (d *daemon) serve(ctx context.Context) error {
	if err := d.reach(ctx); err != nil {
		return err
	}
	ages, err := d.app.mirror.Ages(ctx, d.app.config.Names())
	if err != nil {
		d.app.log.Warn("how fresh the mirror is could not be read; running everything at once", zap.Error(err))
	}
	successes := map[string]time.Time{}
	for r, age := range ages {
		successes[r] = time.Now().Add(-age)
	}
	d.contact.Store(true)
	d.notify.ready()
	return d.table.Run(ctx, successes)
}

// reach opens what the runs need, and waits for what is away: a daemon must
// outlive a restart of its database. What only a person can mend ends it.
func (d *daemon) reach(ctx context.Context) error {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(time.Second), backoff.WithMultiplier(2),
		backoff.WithMaxInterval(time.Minute), backoff.WithMaxElapsedTime(0),
	)
	for {
		err := d.open(ctx)
		if err == nil || ctx.Err() != nil {
			return orCause(ctx, err)
		}
		f := classify(err)
		if f.exit == exitUsage || f.exit == exitSchema || f.exit == exitInternal {
			return err
		}
		wait := b.NextBackOff()
		d.app.log.Warn("not ready to start; waiting to try again", zap.String("code", f.code), zap.Duration("wait", wait), zap.Error(err))
		d.notify.waiting(f.code, wait)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// orCause is why ctx ended, when it did, and err otherwise.
func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (d *daemon) open(ctx context.Context) error {
	client, err := d.app.remote(ctx, credentials.DefaultGrace)
	if err != nil {
		return err
	}
	if err := d.app.prepare(ctx, d.app.config.Names()); err != nil {
		return err
	}
	o := d.app.engineOptions()
	o.Watch = d.app.watched(d.notify.progress)
	d.engine = sync.NewEngine(client, d.app.mirror, o)
	return nil
}
