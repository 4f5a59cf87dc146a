package alert

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

const (
	// hold is how long what was claimed is ours. It is longer than deliverTime, so
	// that two processes never have the same thing on the wire.
	hold        = 3 * time.Minute
	deliverTime = 2 * time.Minute
	settleTime  = 3 * time.Second

	maxAttempts = 12 // spread over a little more than an hour
	firstWait   = 5 * time.Second
	longestWait = 15 * time.Minute
)

// deliver sends what is due, to all targets side by side, so that a slow one
// holds up none but itself.
func (a *Alerter) deliver(ctx context.Context) error {
	names := make([]string, len(a.targets))
	for i, t := range a.targets {
		names[i] = t.name
	}
	due, err := a.opts.Store.ClaimAlerts(ctx, names, a.opts.Resources, hold)
	if err != nil || len(due) == 0 {
		return err
	}
	of := map[string][]mirror.Alert{}
	for _, d := range due {
		of[d.Target] = append(of[d.Target], d)
	}
	sending, cancel := context.WithTimeout(ctx, deliverTime)
	defer cancel()
	var g errgroup.Group
	for _, t := range a.targets {
		g.Go(func() error {
			for _, group := range gather(of[t.name]) {
				if err := a.tell(sending, t, group); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// tell sends one event and notes what came of it. The error is the database's.
func (a *Alerter) tell(ctx context.Context, t *target, group []mirror.Alert) error {
	e := a.event(group)
	told, wait := true, a.opts.RemindAfter
	switch {
	case ctx.Err() != nil: // not reached: as if it had not been claimed
		told, wait = false, 0
		setAttempts(group, group[0].Attempts-1)
	case wants(t.events, e.Class):
		if answer, err := a.send(ctx, t, e); err != nil {
			told, wait = a.missed(t, e, group, err)
		} else {
			a.opts.Logger.Info("alert delivered", zap.String("target", t.name), zap.String("class", string(e.Class)),
				zap.Strings("resources", e.names()), zap.String("event", e.ID), zap.String("answer", answer))
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	return a.opts.Store.SettleAlerts(last, group, told, wait)
}

// missed decides when a failed event is tried again. After the last attempt an end
// is forgotten, and a condition has its next chance as a reminder.
func (a *Alerter) missed(t *target, e Event, group []mirror.Alert, err error) (told bool, wait time.Duration) {
	attempt := group[0].Attempts
	log := a.opts.Logger.With(zap.String("target", t.name), zap.String("class", string(e.Class)),
		zap.Strings("resources", e.names()), zap.String("event", e.ID), zap.Int("attempt", attempt), zap.Error(err))
	if attempt < maxAttempts {
		wait = pause(attempt)
		log.Warn("alert not delivered; it is tried again", zap.Duration("wait", wait))
		return false, wait
	}
	log.Error("alert given up: nobody was told; `xiaoqu-sync alert test` tries the target")
	setAttempts(group, 0)
	return e.Class == Recovered, a.opts.RemindAfter
}

func setAttempts(group []mirror.Alert, n int) {
	for i := range group {
		group[i].Attempts = n
	}
}

// pause is how long to wait after that many failed attempts.
func pause(attempts int) time.Duration {
	growing := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(firstWait), backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0.2),
		backoff.WithMaxInterval(longestWait), backoff.WithMaxElapsedTime(0),
	)
	wait := firstWait
	for range attempts {
		wait = growing.NextBackOff()
	}
	return wait
}

// gather puts together what one event can tell: one message for three resources
// with the same trouble, since robots take twenty a minute.
func gather(alerts []mirror.Alert) [][]mirror.Alert {
	type kind struct {
		class, code string
		again, over bool
		attempts    int
	}
	var order []kind
	groups := map[kind][]mirror.Alert{}
	for _, al := range alerts {
		k := kind{al.Class, al.Code, al.ToldAt != nil, false, al.Attempts}
		if al.EndedAt != nil {
			k = kind{over: true, attempts: al.Attempts}
		}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], al)
	}
	out := make([][]mirror.Alert, len(order))
	for i, k := range order {
		out[i] = groups[k]
	}
	return out
}
