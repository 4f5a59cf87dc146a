package sync

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// maxWait is the longest single wait (contract §5), whatever Retry-After says.
const maxWait = 60 * time.Second

// pace is the first wait before a call is made again. Every other wait is in
// proportion.
type pace time.Duration

// contractPace makes the waits 1, 2, 4 … 60 s (contract §5).
const contractPace = pace(time.Second)

// longest is the longest wait at this pace.
func (p pace) longest() time.Duration {
	return time.Duration(p) * (maxWait / time.Duration(contractPace))
}

// backoff gives the waits before a call, a little apart from each other so that
// the resources do not come back in step.
func (p pace) backoff() backoff.BackOff { return p.from(time.Duration(p)) }

// commitBackoff begins sooner, with 100 ms: a broken connection or a deadlock
// is over in a moment, and PostgreSQL is not a service that counts our calls.
func (p pace) commitBackoff() backoff.BackOff { return p.from(time.Duration(p) / 10) }

func (p pace) from(first time.Duration) backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(first),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(p.longest()),
		backoff.WithRandomizationFactor(0.1),
		backoff.WithMaxElapsedTime(0), // the number of waits is bounded instead
	)
}

// pause is the next wait: the back-off's, or what the server asked if longer.
// The cap comes after the jitter, because the library applies it before.
func (p pace) pause(b backoff.BackOff, err error) time.Duration {
	d := b.NextBackOff()
	var e *remote.Error
	if errors.As(err, &e) {
		d = max(d, e.RetryAfter)
	}
	return min(d, p.longest())
}

// wait sleeps for d, or returns the context's cause when it ends first.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// commitGrace is how long a page that is being committed may still take when
// the run is asked to stop: it then ends instead of being fetched again.
const commitGrace = 3 * time.Second

// graceful gives a context that outlives ctx by grace.
func graceful(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-late.Done():
		}
	})
	return late, func() { stop(); cancel() }
}

// caller repeats one remote call as the policy says.
type caller struct {
	source  Source
	log     *zap.Logger
	pace    pace
	waiting func(why remote.Code, wait time.Duration) // may be nil
	retries int64                                     // calls made again, for the run log
}

// call runs f until it succeeds or the policy gives up. f gets the limit to
// ask with; it starts at limit and is halved for answers that are too large.
// The error is f's last one, or the context's cause.
func (c *caller) call(ctx context.Context, limit int, f func(ctx context.Context, limit int) error) error {
	t, b := tried{limit: limit}, c.pace.backoff()
	for {
		err := f(ctx, t.limit)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := c.mend(ctx, err, &t, b); err != nil {
			return err
		}
		c.retries++
	}
}

// mend does what the policy says about err. A nil return means: call again.
func (c *caller) mend(ctx context.Context, err error, t *tried, b backoff.BackOff) error {
	var e *remote.Error
	_ = errors.As(err, &e) // every verdict but halt and rebuild has one
	switch judge(err, *t) {
	case retry:
		t.waits++
		t.cutShort = t.cutShort || e.CutShort
		d := c.pace.pause(b, err)
		c.log.Warn("the remote did not answer; waiting to ask again",
			zap.String("code", string(e.Code)), zap.String("tool", e.Tool),
			zap.String("request_id", e.RequestID), zap.Duration("wait", d),
			zap.Int("attempt", t.waits), zap.Error(err))
		if c.waiting != nil {
			c.waiting(e.Code, d)
		}
		return wait(ctx, d)
	case newSession:
		t.sessions++
		c.log.Info("the remote forgot the session; shaking hands again", zap.String("tool", e.Tool))
		return nil
	case renew:
		t.renewed = true
		c.log.Warn("the remote refused the token; asking for a new one",
			zap.String("tool", e.Tool), zap.String("request_id", e.RequestID))
		return c.source.Renew(ctx, e.Generation)
	case smaller:
		t.limit /= 2
		c.log.Warn("the page was too large; asking for fewer records",
			zap.String("tool", e.Tool), zap.Int("limit", t.limit))
		return nil
	default:
		return err
	}
}
