package sync

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

// keep watches over a seat's lease until ctx ends. When its connection breaks
// (PostgreSQL restarts or fails over) it takes the lease again, while the task
// goes on or waits for the database too: a step that finds the mirror moved by
// somebody else is refused, lease or not. An error is why the task has to end:
// ErrLeaseLost, or the database's own when it stays away.
func (e *Engine) keep(ctx context.Context, s *seat) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.lease.Lost():
		}
		s.job.log.Warn("the database connection that held the lease broke; taking the lease again")
		lease, err := e.retake(ctx, s.job.resource)
		if ctx.Err() != nil && lease == nil {
			return nil // nobody needs it any more
		}
		if err != nil {
			s.job.log.Warn("the lease could not be taken again; the run ends", zap.Error(err))
			return err
		}
		// The lost one is left as it is: its name is overwritten already.
		s.lease = lease
		s.job.log.Info("the lease is taken again")
	}
}

func (e *Engine) retake(ctx context.Context, resource string) (*mirror.Lease, error) {
	t, b := tried{}, e.pace.commitBackoff()
	for {
		lease, err := e.mirror.Lease(ctx, resource, e.opts.Holder)
		if err == nil {
			return lease, nil
		}
		var held *mirror.HeldError
		switch {
		case errors.As(err, &held):
			if t.waits >= maxCommitWaits || e.another(held.Holder) {
				return nil, ErrLeaseLost
			}
		case judgeCommit(err, t) != retry:
			return nil, err
		}
		t.waits++
		d := e.pace.pause(b, nil)
		e.opts.Logger.Debug("the lease could not be taken again yet", zap.String("resource", resource), zap.Duration("wait", d), zap.Error(err))
		if err := wait(ctx, d); err != nil {
			return nil, err
		}
	}
}

// another tells whether a holder is another worker for certain. A server that has
// not noticed the broken connection holds the lease for this very process, and who
// gave it back a moment ago, or has only just taken it, has no name. The database
// keeps microseconds.
func (e *Engine) another(h mirror.Holder) bool {
	own := e.opts.Holder
	same := h.Host == own.Host && h.PID == own.PID && h.Since.Sub(own.Since).Abs() < time.Millisecond
	return h != (mirror.Holder{}) && !same
}
