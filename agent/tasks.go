package agent

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

const (
	// lookEvery is how often work of other processes is looked for.
	lookEvery = 2 * time.Second
	// maxAttempts ends a task that kills its process time and again.
	maxAttempts = 200
	// keepTasks is how long an answer is given again for its key.
	keepTasks  = 7 * 24 * time.Hour
	sweepEvery = time.Hour
)

// Run works on tasks and delivers events until ctx ends. Several processes may do
// so side by side. What it is at is given back, and done again by the next.
func (s *Service) Run(ctx context.Context) {
	var g errgroup.Group
	// A door each, so that a platform that does not answer holds up its own alone.
	rings := map[string]chan struct{}{}
	for door := range s.options.Couriers {
		rings[door] = make(chan struct{}, 1)
	}
	for door, ring := range rings {
		g.Go(func() error {
			s.loop(ctx, ring, func(ctx context.Context) (bool, error) { return s.deliverOne(ctx, door) })
			return nil
		})
	}
	for range s.options.Workers {
		g.Go(func() error {
			s.loop(ctx, s.wake, func(ctx context.Context) (bool, error) { return s.workOne(ctx, rings) })
			return nil
		})
	}
	g.Go(func() error { s.sweep(ctx); return nil })
	_ = g.Wait() // none returns an error
}

// loop does one after the other while there is something to do, and looks again
// when it is nudged or some time has passed.
func (s *Service) loop(ctx context.Context, nudged <-chan struct{}, one func(context.Context) (bool, error)) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		did, err := one(ctx)
		if err != nil && ctx.Err() == nil {
			s.options.Logger.Warn("tasks cannot be worked on now", zap.Error(err))
		}
		if did && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-nudged:
		case <-tick.C:
		}
	}
}

func (s *Service) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if n, err := s.options.Tasks.Sweep(ctx, keepTasks); err != nil && ctx.Err() == nil {
			s.options.Logger.Warn("old tasks could not be removed", zap.Error(err))
		} else if n > 0 {
			s.options.Logger.Info("old tasks removed", zap.Int64("tasks", n))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// workOne claims a task and makes one attempt at it. rings tell a door's courier.
func (s *Service) workOne(ctx context.Context, rings map[string]chan struct{}) (bool, error) {
	// A claim that a stop broke off would be nobody's until it runs out.
	end := context.WithoutCancel(ctx)
	t, err := s.options.Tasks.Claim(end, s.able(), s.options.Hold)
	if err != nil || t == nil {
		return false, err
	}
	if ctx.Err() != nil {
		return false, s.options.Tasks.Postpone(end, *t, 0)
	}
	nudge(s.wake) // there may be another, for another worker
	o, wait, done := s.attempt(ctx, *t)
	if !done {
		return true, s.options.Tasks.Postpone(end, *t, wait)
	}
	o.Tell, o.Keep = true, s.options.Keep
	ok, err := s.options.Tasks.Finish(end, *t, o)
	if ring := rings[t.Door]; err == nil && ok && ring != nil {
		nudge(ring)
	}
	return true, err
}

// able are the capabilities whose tasks this process may do. Another on the same
// database may be allowed more, or less.
func (s *Service) able() []string {
	ids := []string{}
	for _, c := range s.on {
		if c.Async {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// attempt runs the task's capability. It is done unless the same may do later, and
// there is time for that.
func (s *Service) attempt(ctx context.Context, t Task) (o Outcome, wait time.Duration, done bool) {
	c := s.Capability(t.Capability)
	if c == nil {
		return failed(&Failure{Class: Permanent, Code: "unknown_capability", Message: t.Capability + " was switched off"}), 0, true
	}
	left := c.Timeout
	if t.StartedAt != nil {
		left -= time.Since(*t.StartedAt)
	}
	if left <= 0 || t.Attempt > maxAttempts {
		return failed(&Failure{Class: Permanent, Code: "timed_out", Message: t.Capability + " was not done within its time"}), 0, true
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	o, err := s.held(ctx, c, t)
	if err == nil {
		return o, 0, true
	}
	f := AsFailure(err)
	switch {
	case errors.Is(err, errLost):
		return o, 0, false // it is somebody else's now
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return o, 0, false // a stop, not a failure
	case f.Class.Passing():
		wait = max(f.RetryAfter, pause(t.Attempt))
		if wait < left {
			return o, wait, false
		}
		f = lasting(f)
	case f.Class == Internal:
		s.options.Logger.Error("a task failed", zap.String("task", t.ID), zap.String("capability", t.Capability), zap.Error(err))
	}
	return failed(f), 0, true
}

// lasting is a passing failure when there is no time left to try again: the task's
// end will not pass.
func lasting(f *Failure) *Failure {
	last := *f
	last.Class, last.RetryAfter = Permanent, 0
	return &last
}

func failed(f *Failure) Outcome { return Outcome{State: Failed, Failure: f} }

// errLost ends the run of a task whose claim was lost.
var errLost = errors.New("agent: the claim was lost")

// held runs the capability while the claim is renewed; a lost claim ends it.
func (s *Service) held(ctx context.Context, c *Capability, t Task) (Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var g errgroup.Group
	g.Go(func() error {
		s.renew(ctx, t, cancel)
		return nil
	})
	defer func() { cancel(nil); _ = g.Wait() }()
	o, err := s.tried(ctx, c, t)
	if err != nil && errors.Is(context.Cause(ctx), errLost) {
		err = errLost
	}
	return o, err
}

// tried gathers the task's proposals, or runs it.
func (s *Service) tried(ctx context.Context, c *Capability, t Task) (Outcome, error) {
	call := Call{
		Caller: Caller{Door: t.Door, Name: t.Caller}, Capability: c.ID, Input: t.Input, Key: t.Key, Task: t.ID, Since: t.CreatedAt,
	}
	if t.Choose && t.Chosen == "" {
		o := Outcome{State: Choosing}
		err := s.guarded(ctx, c, func(ctx context.Context) (err error) {
			o.Proposals, err = c.propose(ctx, call)
			return err
		})
		return o, err
	}
	if t.Chosen != "" {
		var err error
		if call.Input, err = t.decided(c.Choice); err != nil {
			return Outcome{}, err
		}
	}
	// What is mirrored may have changed since the door let it in.
	if f := c.input.check(call.Input); f != nil {
		return Outcome{}, f
	}
	result, err := s.now(ctx, c, call)
	return Outcome{State: Completed, Result: &result}, err
}

func (s *Service) renew(ctx context.Context, t Task, lost context.CancelCauseFunc) {
	tick := time.NewTicker(s.options.Hold / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// An error may pass before the claim runs out, and Finish looks again.
		if ok, err := s.options.Tasks.Hold(ctx, t, s.options.Hold); err == nil && !ok {
			lost(errLost)
			return
		}
	}
}

// decided is the task's input with the choice, and with what the choice is about.
func (t Task) decided(property string) (json.RawMessage, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(t.Input, &o); err != nil {
		return nil, err
	}
	about := ""
	for _, p := range t.Proposals {
		if p.ID == t.Chosen {
			about = p.About
		}
	}
	for name, value := range map[string]string{property: t.Chosen, "plan": about} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		o[name] = text
	}
	return json.Marshal(o)
}

// pause is how long to wait after so many attempts: 1, 2, 4 … 60 seconds.
func pause(attempts int) time.Duration {
	return min(time.Second<<min(max(attempts-1, 0), 6), time.Minute)
}

// Task reads a task that the caller began; a *Failure when there is none.
func (s *Service) Task(ctx context.Context, door, caller, id string) (Task, error) {
	t, err := s.options.Tasks.Task(ctx, id)
	return s.own(t, err, door, caller)
}

// TaskOf reads the task of a door's key.
func (s *Service) TaskOf(ctx context.Context, door, caller, key string) (Task, error) {
	t, err := s.options.Tasks.ByKey(ctx, door, key)
	return s.own(t, err, door, caller)
}

// own hides the tasks of others. A caller of "" is the door's platform itself.
func (s *Service) own(t *Task, err error, door, caller string) (Task, error) {
	if err != nil {
		return Task{}, err
	}
	if t == nil || t.Door != door || caller != "" && t.Caller != caller {
		return Task{}, &Failure{Class: NotFound, Code: "unknown_task", Message: "there is no such task"}
	}
	return *t, nil
}

// Cancel ends a task that is not being worked on. The task is returned as it then
// is: one that runs, or has ended, stays as it was.
func (s *Service) Cancel(ctx context.Context, t Task) (Task, error) {
	now, err := s.options.Tasks.Cancel(ctx, t.ID)
	return s.own(now, err, t.Door, "")
}

// Choose lets a task go on with one of its proposals. The first choice stands; a
// *Failure when there is no such proposal, or nothing to choose any more.
func (s *Service) Choose(ctx context.Context, t Task, proposal string) (Task, error) {
	known := false
	for _, p := range t.Proposals {
		known = known || p.ID == proposal
	}
	if !known {
		return t, &Failure{Class: Invalid, Code: "unknown_proposal", Message: "the task has no such proposal"}
	}
	now, err := s.options.Tasks.Choose(ctx, t.ID, proposal)
	if t, err = s.own(now, err, t.Door, ""); err != nil {
		return t, err
	}
	if t.Chosen != proposal {
		return t, &Failure{Class: Permanent, Code: "not_choosable", Message: "the task takes no choice any more"}
	}
	nudge(s.wake)
	return t, nil
}
