package main

import (
	"context"
	"errors"
	"maps"
	"runtime/debug"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// manyPages is from how many pages on a moment leaves so much garbage that it is
// given back to the machine at once: an idle daemon would keep it for long.
const manyPages = 10

// work does the runs of one moment.
func (d *daemon) work(ctx context.Context, due []sync.Due, ended func(string)) {
	var names []string
	for _, one := range due {
		names = append(names, one.Resource)
	}
	if err := d.fit(ctx, names); err != nil {
		d.unfit(ctx, names, err, ended)
		return
	}
	d.away.Store(false)
	var pages atomic.Int64
	d.engine.SyncDue(ctx, due, func(o sync.Outcome) {
		pages.Add(o.Pages)
		ended(o.Resource)
		d.observe(o)
	})
	if pages.Load() >= manyPages {
		debug.FreeOSMemory()
	}
	d.notify.idle(d.next())
}

// fit looks at the schema each time: another release may have migrated it, or
// somebody dropped a table, since this process began.
func (d *daemon) fit(ctx context.Context, names []string) error {
	err := d.app.mirror.Ready(ctx, names)
	if isSchema(err) {
		err = d.app.prepare(ctx, names)
	}
	return err
}

func isSchema(err error) bool {
	var e *mirror.Error
	return errors.As(err, &e) && e.Kind == mirror.KindSchema
}

// unfit is a moment that the database spoilt before any run began.
func (d *daemon) unfit(ctx context.Context, names []string, err error, ended func(string)) {
	if ctx.Err() != nil {
		return
	}
	log := d.app.log.Error
	if d.away.Swap(true) {
		log = d.app.log.Warn
	}
	log("the database could not be used; the next moment tries again", zap.Strings("resources", names), zap.Error(err))
	for _, r := range names {
		ended(r)
		d.observe(sync.Outcome{Resource: r, Result: sync.Failed, Err: err})
	}
	if isSchema(err) {
		d.fail(err) // no later moment can help this binary
	}
}

// observe notes how a run ended, and tells.
func (d *daemon) observe(o sync.Outcome) {
	failed := <-d.failed
	switch o.Result {
	case sync.Failed, sync.Held:
		failed[o.Resource] = o.Err
	case sync.Interrupted:
	default:
		delete(failed, o.Resource)
	}
	d.failed <- failed
	d.hooks.observe([]sync.Outcome{o})
}

// failures are the resources whose last run failed, and why.
func (d *daemon) failures() map[string]error {
	failed := <-d.failed
	defer func() { d.failed <- failed }()
	return maps.Clone(failed)
}
