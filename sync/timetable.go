package sync

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// TimetableOptions say what a Timetable does and whom it tells.
type TimetableOptions struct {
	Plan Plan
	// Work does the runs that are due together, side by side, and calls ended
	// for each resource as soon as it is free for its next run.
	Work func(ctx context.Context, due []Due, ended func(resource string))
	// Skipped is told of a moment that brought no run, because the resource's
	// last run was still at work or the process asleep. May be nil.
	Skipped func(resource string)
	// Panicked is told of a panic in Work. May be nil.
	Panicked func(resources []string)
	// Beat is called at least every BeatEvery for as long as the timetable is
	// alive. May be nil; BeatEvery 0 is a minute.
	Beat      func()
	BeatEvery time.Duration
	Logger    *zap.Logger // required
}

// Timetable does work when a plan says so. A resource never has two runs at
// once: a moment that comes while its run is at work is skipped and counted,
// so that nothing piles up however long a run takes.
type Timetable struct {
	opts  TimetableOptions
	plans chan Plan
	next  atomic.Pointer[map[string]time.Time]
}

// maxNap is the longest time between two looks at the clock: it may be set, and
// it goes on while a machine sleeps.
const maxNap = time.Minute

// NewTimetable makes one; nothing happens before Run.
func NewTimetable(o TimetableOptions) *Timetable {
	if o.BeatEvery <= 0 {
		o.BeatEvery = maxNap
	}
	if o.Skipped == nil {
		o.Skipped = func(string) {}
	}
	if o.Panicked == nil {
		o.Panicked = func([]string) {}
	}
	if o.Beat == nil {
		o.Beat = func() {}
	}
	return &Timetable{opts: o, plans: make(chan Plan)}
}

// Next is when each resource is due next; nil before Run. A run may begin a
// little later, by its jitter.
func (t *Timetable) Next() map[string]time.Time {
	if next := t.next.Load(); next != nil {
		return maps.Clone(*next)
	}
	return nil
}

// Replace goes over to another plan; it may name other schedules, not other
// resources. It returns when ctx or Run ends without having taken it.
func (t *Timetable) Replace(ctx context.Context, p Plan) {
	select {
	case t.plans <- p:
	case <-ctx.Done():
	}
}

// wall is the time of day. Without the monotonic reading, which stands still
// while a machine sleeps.
func wall() time.Time { return time.Now().Round(0) }

// Run follows the plan until ctx ends, waits for the runs at work, and returns
// the cause. Resources whose run was missed since their last success get one at
// once. A panic in a run is logged and counted, and later runs still happen.
func (t *Timetable) Run(ctx context.Context, successes map[string]time.Time) error {
	began := wall()
	a := newAgenda(t.opts.Plan, rand.Uint64(), began)
	h := newHands(t.opts)
	h.start(ctx, a.catchUp(successes, began))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := wall()
		due, missed := a.take(now)
		h.start(ctx, due)
		h.missed(missed)
		next := maps.Clone(a.next)
		t.next.Store(&next)
		t.opts.Beat()
		timer.Reset(a.wake(now, min(maxNap, t.opts.BeatEvery)))
		select {
		case <-timer.C:
		case p := <-t.plans:
			a.replace(p, wall())
		case e := <-h.events:
			h.note(e)
		case <-ctx.Done():
		}
	}
	for h.batches > 0 {
		h.note(<-h.events)
	}
	t.opts.Logger.Info("the timetable ends", zap.Duration("since", wall().Sub(began).Round(time.Second)),
		zap.Int("begun", h.begun), zap.Int("skipped", h.skipped), zap.Int("panics", h.panics))
	return context.Cause(ctx)
}
