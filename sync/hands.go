package sync

import (
	"context"
	"errors"
	"maps"

	"go.uber.org/zap"
)

// hands do the work, and know which resources are in them.
type hands struct {
	opts    TimetableOptions
	busy    map[string]int // the batch that has the resource
	told    map[string]int // the batch whose overlap was logged
	events  chan event
	serial  int
	batches int // at work

	begun, skipped, panics int
}

// event is the end of a resource's run, or of a batch when resource is "".
type event struct {
	batch    int
	resource string
	err      error
}

func newHands(o TimetableOptions) *hands {
	return &hands{opts: o, busy: map[string]int{}, told: map[string]int{}, events: make(chan event)}
}

// start begins the runs of what is due, all in one batch, and skips what is
// still in hand.
func (h *hands) start(ctx context.Context, due []Due) {
	var free []Due
	var names []string
	for _, d := range due {
		if _, busy := h.busy[d.Resource]; busy {
			h.overlap(d.Resource)
			continue
		}
		free, names = append(free, d), append(names, d.Resource)
	}
	if len(free) == 0 {
		return
	}
	h.serial++
	h.batches++
	h.begun += len(free)
	batch := h.serial
	for _, r := range names {
		h.busy[r] = batch
	}
	go func() {
		err := guard(func() error {
			h.opts.Work(ctx, free, func(resource string) { h.events <- event{batch: batch, resource: resource} })
			return nil
		})
		if err != nil {
			h.panicked(names, err)
		}
		h.events <- event{batch: batch, err: err}
	}()
}

// overlap skips a moment because the last run is still at work. A run of hours
// says so once.
func (h *hands) overlap(resource string) {
	h.skipped++
	h.opts.Skipped(resource)
	if h.told[resource] != h.busy[resource] {
		h.told[resource] = h.busy[resource]
		h.opts.Logger.Info("a run is due and the last one is still at work; skipping until it ends", zap.String("resource", resource))
	}
}

// missed counts moments that passed while nobody was awake.
func (h *hands) missed(moments map[string]int) {
	for r, n := range moments {
		h.skipped += n
		for range n {
			h.opts.Skipped(r)
		}
		h.opts.Logger.Warn("runs were missed: this process or its machine was asleep", zap.String("resource", r), zap.Int("runs", n))
	}
}

func (h *hands) panicked(resources []string, err error) {
	var p *PanicError
	if errors.As(err, &p) {
		h.opts.Logger.Error("a run panicked; the next will be tried in its time", zap.Strings("resources", resources),
			zap.Error(err), zap.ByteString("stack", p.Stack))
	}
	h.opts.Panicked(resources)
}

// note frees what has ended.
func (h *hands) note(e event) {
	if e.resource != "" {
		if h.busy[e.resource] == e.batch {
			delete(h.busy, e.resource)
		}
		return
	}
	h.batches--
	if e.err != nil {
		h.panics++
	}
	maps.DeleteFunc(h.busy, func(_ string, batch int) bool { return batch == e.batch })
}
