package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// hooks are the parts that stand beside a daemon's timetable. Each may be nil,
// is called from several goroutines, and must not block.
type hooks struct {
	// observe is told of each resource's run as it ends.
	observe func([]sync.Outcome)
	// skipped is told of a moment that brought no run.
	skipped func(resource string)
	// panicked is told of a panic around a resource's run; one within it is in
	// the outcome.
	panicked func(resource string)
	// background runs beside the timetable until ctx ends. An error ends the
	// daemon: half of one is worse than a restart.
	background []func(ctx context.Context) error
}

// orNothing fills the gaps.
func (h hooks) orNothing() hooks {
	if h.observe == nil {
		h.observe = func([]sync.Outcome) {}
	}
	if h.skipped == nil {
		h.skipped = func(string) {}
	}
	if h.panicked == nil {
		h.panicked = func(string) {}
	}
	return h
}

// next is when each resource is due next; nil until the database was reached.
func (d *daemon) next() map[string]time.Time { return d.table.Next() }

// ready is nil when the database answers and fits, and no resource's last run
// met what only a person can mend.
func (d *daemon) ready(ctx context.Context) error {
	if !d.contact.Load() {
		return errors.New("PostgreSQL was not reached yet")
	}
	if err := d.app.mirror.Ready(ctx, d.app.config.Names()); err != nil {
		return err
	}
	for resource, err := range d.failures() {
		if f := classify(err); !f.retryable {
			return fmt.Errorf("%s: %s: %w", resource, f.code, err)
		}
	}
	return nil
}
