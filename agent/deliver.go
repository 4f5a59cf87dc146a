package agent

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

const (
	deliverTime = 20 * time.Second // for one attempt
	deliverHold = time.Minute      // longer than that
	// giveUp ends the attempts at an event that its platform never takes.
	giveUp = 72 * time.Hour
	// maxPause bounds the wait between two attempts.
	maxPause = 10 * time.Minute
)

// deliverOne claims an event of the door's and makes one attempt to deliver it.
func (s *Service) deliverOne(ctx context.Context, door string) (bool, error) {
	// As with tasks, a stop does not break a claim off: the event is given back below.
	end := context.WithoutCancel(ctx)
	e, t, err := s.options.Outbox.ClaimEvent(end, []string{door}, deliverHold)
	if err != nil || e == nil {
		return false, err
	}
	attempt, cancel := context.WithTimeout(ctx, deliverTime)
	defer cancel()
	verdict, why := s.deliver(attempt, *t, *e)
	wait := min(pause(e.Attempts+1)<<min(max(e.Attempts-6, 0), 4), maxPause)
	if ctx.Err() != nil && verdict != Delivered {
		verdict, why, wait = Again, ctx.Err(), 0
	}
	if verdict == Again && time.Since(e.At) > giveUp {
		verdict = Refused
	}
	reason := ""
	if why != nil {
		reason = why.Error()
		log := s.options.Logger.Info
		if verdict == Refused {
			log = s.options.Logger.Error
		}
		log("an event was not taken", zap.String("task", t.ID), zap.String("event", e.ID), zap.String("kind", string(e.Kind)), zap.String("verdict", string(verdict)), zap.Error(why))
	}
	return true, s.options.Outbox.SettleEvent(end, *e, verdict, wait, reason)
}

// deliver has the courier try. A panic of its is one attempt that failed.
func (s *Service) deliver(ctx context.Context, t Task, e Event) (v Verdict, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.options.Logger.Error("a courier panicked", zap.String("event", e.ID), zap.Any("panic", p), zap.Stack("stack"))
			v, err = Again, errors.New("the courier panicked")
		}
	}()
	return s.options.Couriers[t.Door].Deliver(ctx, t, e)
}
