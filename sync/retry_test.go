package sync

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// renewals is a Source of which only Renew is ever called.
type renewals struct {
	Source
	n int
}

func (r *renewals) Renew(context.Context, int) error { r.n++; return nil }

// waits runs calls that fail with errs one after the other, and returns how
// long each wait was and how the call ended.
func waits(t *testing.T, errs ...error) (gaps []time.Duration, renewed int, end error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		src := &renewals{}
		c := &caller{source: src, log: zap.NewNop(), pace: contractPace}
		last, i := time.Now(), 0
		end = c.call(t.Context(), 200, func(context.Context, int) error {
			if i > 0 {
				gaps = append(gaps, time.Since(last))
			}
			last = time.Now()
			if i++; i <= len(errs) {
				return errs[i-1]
			}
			return nil
		})
		renewed = src.n
	})
	return gaps, renewed, end
}

func repeat(err error, n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func TestWaitsDoubleUpToAMinuteAndEnd(t *testing.T) {
	limited := &remote.Error{Code: remote.RateLimited}
	gaps, _, end := waits(t, repeat(limited, 20)...)
	if !errors.Is(end, limited) {
		t.Errorf("ended with %v, want the remote's last word", end)
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 60}
	if len(gaps) != len(want) {
		t.Fatalf("%d waits, want %d: %v", len(gaps), len(want), gaps)
	}
	for i, w := range want {
		w *= time.Second
		if gaps[i] < w*85/100 || gaps[i] > min(w*115/100, maxWait) {
			t.Errorf("wait %d took %v, want about %v and never more than %v", i+1, gaps[i], w, maxWait)
		}
	}
}

func TestRetryAfterIsHonouredUpToAMinute(t *testing.T) {
	cases := map[time.Duration]time.Duration{
		7 * time.Second:      7 * time.Second,
		24 * time.Hour:       maxWait,
		500 * time.Second:    maxWait,
		5 * time.Millisecond: time.Second, // shorter than ours: ours
	}
	for asked, want := range cases {
		gaps, _, end := waits(t, &remote.Error{Code: remote.RateLimited, RetryAfter: asked})
		if end != nil || len(gaps) != 1 {
			t.Fatalf("Retry-After %v: %v, %v", asked, gaps, end)
		}
		if gaps[0] < want*85/100 || gaps[0] > want*115/100 {
			t.Errorf("Retry-After %v: waited %v, want about %v", asked, gaps[0], want)
		}
	}
}

func TestATokenIsRenewedOnceAndTheCallRepeatedAtOnce(t *testing.T) {
	refused := &remote.Error{Code: remote.Unauthenticated}
	gaps, renewed, end := waits(t, refused)
	if end != nil || renewed != 1 || len(gaps) != 1 || gaps[0] != 0 {
		t.Errorf("gaps %v, end %v, renewed %d", gaps, end, renewed)
	}
	_, renewed, end = waits(t, refused, refused)
	if !errors.Is(end, refused) || renewed != 1 {
		t.Errorf("a fresh token refused: end %v, renewed %d", end, renewed)
	}
}

func TestALostSessionIsRepeatedAtOnce(t *testing.T) {
	gaps, _, end := waits(t, &remote.Error{Code: remote.SessionLost})
	if end != nil || len(gaps) != 1 || gaps[0] != 0 {
		t.Errorf("gaps %v, end %v", gaps, end)
	}
}

func TestTooLargeHalvesTheLimit(t *testing.T) {
	c := &caller{log: zap.NewNop(), pace: contractPace}
	var limits []int
	err := c.call(t.Context(), 5, func(_ context.Context, limit int) error {
		limits = append(limits, limit)
		return &remote.Error{Code: remote.Malformed, TooLarge: true}
	})
	if err == nil || len(limits) != 3 || limits[0] != 5 || limits[1] != 2 || limits[2] != 1 {
		t.Errorf("limits %v, error %v", limits, err)
	}
}

func TestAStopEndsAWaitAtOnceWithItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(300*time.Millisecond, func() { cancel(stop) })
		began := time.Now()
		c := &caller{log: zap.NewNop(), pace: contractPace}
		err := c.call(ctx, 0, func(context.Context, int) error { return &remote.Error{Code: remote.Unreachable} })
		if !errors.Is(err, stop) || time.Since(began) != 300*time.Millisecond {
			t.Errorf("ended after %v with %v", time.Since(began), err)
		}
	})
}

func TestEveryWaitForTheRemoteIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var why []remote.Code
		var told time.Duration
		c := &caller{log: zap.NewNop(), waiting: func(code remote.Code, d time.Duration) {
			why, told = append(why, code), told+d
		}}
		errs := []error{&remote.Error{Code: remote.RateLimited}, &remote.Error{Code: remote.SessionLost}, &remote.Error{Code: remote.Unreachable}}
		began := time.Now()
		err := c.call(t.Context(), 0, func(context.Context, int) error {
			if len(errs) == 0 {
				return nil
			}
			next := errs[0]
			errs = errs[1:]
			return next
		})
		if err != nil || len(why) != 2 || why[0] != remote.RateLimited || why[1] != remote.Unreachable || told != time.Since(began) {
			t.Errorf("told %v and %v of %v, end %v", why, told, time.Since(began), err)
		}
	})
}
