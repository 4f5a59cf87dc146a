package sync

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// trial is a timetable under a clock of its own, and what it told.
type trial struct {
	*Timetable
	skipped, panicked, beats atomic.Int64
	log                      *observer.ObservedLogs
	ended                    chan error
	stop                     context.CancelCauseFunc
}

var errStop = errors.New("stop")

// begin runs a timetable of one schedule for all resources.
func begin(t *testing.T, schedule string, fresh bool, resources []string, work func(ctx context.Context, due []Due, ended func(string))) *trial {
	t.Helper()
	schedules, successes := map[string]string{}, map[string]time.Time{}
	for _, r := range resources {
		schedules[r] = schedule
		if fresh {
			successes[r] = time.Now()
		}
	}
	p, err := NewPlan(schedules, time.UTC, 0)
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.DebugLevel)
	tr := &trial{log: logs, ended: make(chan error, 1)}
	tr.Timetable = NewTimetable(TimetableOptions{
		Plan: p, Work: work, Logger: zap.New(core), Beat: func() { tr.beats.Add(1) }, BeatEvery: 15 * time.Second,
		Skipped: func(string) { tr.skipped.Add(1) }, Panicked: func([]string) { tr.panicked.Add(1) },
	})
	ctx, stop := context.WithCancelCause(t.Context())
	tr.stop = stop
	go func() { tr.ended <- tr.Run(ctx, successes) }()
	return tr
}

// pass lets time go by on the bubble's clock, and what is due then happen.
func pass(d time.Duration) {
	<-time.NewTimer(d).C
	synctest.Wait()
}

func (tr *trial) end(t *testing.T) {
	t.Helper()
	tr.stop(errStop)
	if err := <-tr.ended; !errors.Is(err, errStop) {
		t.Errorf("it ended with %v, not with the cause of its stop", err)
	}
}

func TestAFirstSyncOfThreeHoursPilesNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at, most, runs atomic.Int64
		var long atomic.Bool
		long.Store(true)
		tr := begin(t, "@every 5m", false, []string{"users"}, func(ctx context.Context, _ []Due, _ func(string)) {
			most.Store(max(most.Load(), at.Add(1)))
			defer at.Add(-1)
			runs.Add(1)
			if long.CompareAndSwap(true, false) {
				_ = wait(ctx, 3*time.Hour+time.Minute)
			}
		})
		pass(3*time.Hour + 2*time.Minute)
		if runs.Load() != 1 || tr.skipped.Load() != 36 {
			t.Errorf("%d runs and %d skipped after three hours, want 1 and 36", runs.Load(), tr.skipped.Load())
		}
		if n := tr.log.FilterMessageSnippet("still at work").Len(); n != 1 {
			t.Errorf("the log spoke of it %d times", n)
		}
		pass(30 * time.Minute)
		if runs.Load() != 7 || most.Load() != 1 {
			t.Errorf("%d runs half an hour later, at most %d at once", runs.Load(), most.Load())
		}
		tr.end(t)
	})
}

func TestALongRunOfOneResourceLetsTheOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var users, contracts, together atomic.Int64
		tr := begin(t, "@every 1m", true, []string{"users", "contracts"}, func(ctx context.Context, due []Due, ended func(string)) {
			if len(due) == 2 {
				together.Add(1)
			}
			for _, r := range names(due) {
				if r == "contracts" {
					contracts.Add(1)
					ended(r)
				}
			}
			if slices.Contains(names(due), "users") {
				users.Add(1)
				_ = wait(ctx, time.Hour)
			}
		})
		pass(30*time.Minute + time.Second)
		if users.Load() != 1 || contracts.Load() != 30 || tr.skipped.Load() != 29 || together.Load() != 1 {
			t.Errorf("runs of users %d, of contracts %d, together %d, skipped %d", users.Load(), contracts.Load(), together.Load(), tr.skipped.Load())
		}
		tr.end(t)
	})
}

func TestAPanicInARunDoesNotStopLaterRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		tr := begin(t, "@every 1m", true, []string{"users"}, func(context.Context, []Due, func(string)) {
			if runs.Add(1)%2 == 1 {
				panic("a bug")
			}
		})
		pass(10*time.Minute + time.Second)
		if runs.Load() != 10 || tr.panicked.Load() != 5 || tr.skipped.Load() != 0 {
			t.Errorf("%d runs, %d panics, %d skipped", runs.Load(), tr.panicked.Load(), tr.skipped.Load())
		}
		logged := tr.log.FilterMessageSnippet("a run panicked").All()
		if len(logged) != 5 || logged[0].ContextMap()["stack"] == "" {
			t.Errorf("logged: %v", logged)
		}
		tr.end(t)
	})
}

func TestACatchUpRunComesAtOnceAndOnlyWhenNeeded(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var runs atomic.Int64
			tr := begin(t, "0 2 * * *", fresh, []string{"users"}, func(context.Context, []Due, func(string)) { runs.Add(1) })
			pass(time.Second)
			if caughtUp := runs.Load() == 1; caughtUp == fresh {
				t.Errorf("fresh %v: %d runs at the start", fresh, runs.Load())
			}
			if next := tr.Next()["users"]; next.Hour() != 2 {
				t.Errorf("the next run is at %v", next)
			}
			tr.end(t)
		})
	}
}

func TestAStopWaitsForTheRunsAndTellsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		tr := begin(t, "@every 1m", false, []string{"users"}, func(ctx context.Context, _ []Due, _ func(string)) {
			<-ctx.Done()
			pass(2 * time.Second)
			cause = context.Cause(ctx)
		})
		synctest.Wait()
		tr.end(t)
		if !errors.Is(cause, errStop) {
			t.Errorf("the run saw %v", cause)
		}
	})
}

func TestTheTimetableBeatsWhileItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := begin(t, "0 2 1 1 *", true, []string{"users"}, func(context.Context, []Due, func(string)) {})
		pass(5*time.Minute + time.Second)
		if n := tr.beats.Load(); n < 20 || n > 25 {
			t.Errorf("%d beats in five minutes at one each 15 s", n)
		}
		tr.end(t)
	})
}

func TestAnotherPlanTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		tr := begin(t, "@every 24h", true, []string{"users"}, func(context.Context, []Due, func(string)) { runs.Add(1) })
		p, err := NewPlan(map[string]string{"users": "@every 1m"}, time.UTC, 0)
		if err != nil {
			t.Fatal(err)
		}
		tr.Replace(t.Context(), p)
		pass(10*time.Minute + time.Second)
		if runs.Load() != 10 {
			t.Errorf("%d runs in ten minutes", runs.Load())
		}
		tr.end(t)
	})
}
