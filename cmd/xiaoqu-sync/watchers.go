package main

import (
	"context"
	"net"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync/board"
	"github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync/metrics"
	"github.com/xiaoqu-sync/xiaoqu-sync/config"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// newRecorder counts for Prometheus what this process does.
func (a *app) newRecorder() *metrics.Recorder {
	v := buildVersion()
	return metrics.New(metrics.Options{
		Resources: a.config.Names(), Mirror: a.mirror, Self: a.holder(),
		Build: metrics.Build{Version: v.Version, Revision: v.Revision, Go: v.Go},
	})
}

// watched adds the recorder to who is told of progress.
func (a *app) watched(watch func(sync.Progress)) func(sync.Progress) {
	return func(p sync.Progress) {
		a.metrics.Page(p)
		if watch != nil {
			watch(p)
		}
	}
}

// counted counts what a verb's runs did, and leaves it for node_exporter where
// --metrics-file says. A file that cannot be written changes nothing else.
func (a *app) counted(outcomes []sync.Outcome) {
	a.metrics.Observe(outcomes)
	if a.program.metricsFile == "" {
		return
	}
	a.noteKeyVersion()
	if err := a.metrics.WriteTextfile(a.program.metricsFile); err != nil {
		a.log.Warn("the metrics file could not be written", zap.Error(err))
	}
}

// noteKeyVersion counts a version that is a number; since when it is there is
// known to nobody but its store, so it counts from when this process saw it.
func (a *app) noteKeyVersion() {
	version := a.keyVersion()
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil || version == a.countedKey {
		return
	}
	a.countedKey = version
	a.metrics.KeyVersion(n, time.Now())
}

// watchers are the parts that stand beside a daemon.
func (a *app) watchers(ctx context.Context) (hooks, error) {
	alerts, err := a.alerter()
	if err != nil {
		return hooks{}, err
	}
	return hooks{
		observe: func(outcomes []sync.Outcome) {
			a.metrics.Observe(outcomes)
			alerts.Observe(ctx, outcomes)
		},
		skipped:    a.metrics.SkippedTick,
		panicked:   func(string) { a.metrics.Panicked() },
		background: []func(context.Context) error{alerts.Run},
	}, nil
}

// keyVersionEvery is how often the daemon looks which key is in use.
const keyVersionEvery = 15 * time.Second

// tellKeyVersion has the metrics know the version of the service key in use.
func (d *daemon) tellKeyVersion(ctx context.Context) error {
	t := time.NewTicker(keyVersionEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if d.contact.Load() { // before that there is no key yet
				d.app.noteKeyVersion()
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// showBoard serves health, metrics and the page for people beside the daemon.
// An address that cannot be listened on is a mistake that ends the start.
func (d *daemon) showBoard(ctx context.Context) error {
	listen := d.app.config.HTTP.Listen
	if listen == "" {
		return nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return config.Problems{{
			Field: "http.listen", Message: "cannot be listened on: " + err.Error(),
			Hint: `another address, or "" for none (XIAOQU_HTTP_LISTEN)`,
		}}
	}
	h := board.New(board.Options{
		Resources: d.app.config.Names(), Mirror: d.app.mirror, Ready: d.ready, Metrics: d.app.metrics.Handler(),
		Timetable: d.tick, Retryable: passes, Redact: d.app.program.redactor.String,
		Zone: d.app.config.TimeZone, Version: buildVersion().Version, Logger: d.app.log.Named("http"),
	})
	d.hooks.background = append(d.hooks.background, func(ctx context.Context) error { return board.ServeOn(ctx, l, h) })
	d.app.log.Info("health, metrics and the status page are served", zap.String("address", l.Addr().String()))
	return nil
}

// tick is when a resource is due, and when its data is too old.
func (d *daemon) tick(resource string) board.Tick {
	return board.Tick{Next: d.next()[resource], Late: d.app.config.Alerts.StaleAfter}
}
