package agent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
)

// Options are what a Service needs.
type Options struct {
	Mirror   Mirror
	Worker   Worker // nil: nothing that writes can be allowed
	Tasks    Tasks
	Outbox   Outbox
	Couriers map[string]Courier // by door; a door without one is never told anything

	Resources []Resource
	Allow     []string      // ids of writing capabilities that are switched on
	MaxCalls  int           // answered at the same time; 0: 16
	Workers   int           // tasks at the same time; 0: 2
	Hold      time.Duration // how long a claim outlives its process; 0: 15 s
	Keep      time.Duration // of documents; 0: an hour
	Logger    *zap.Logger
}

// Service is the catalogue at work. It is safe for use by several goroutines.
type Service struct {
	options Options
	on      []*Capability
	slots   chan struct{}
	wake    chan struct{} // a task may be due
}

// New makes the catalogue for what is mirrored. It refuses an Allow that names no
// writing capability.
func New(o Options) (*Service, error) {
	o.MaxCalls, o.Workers = cmp.Or(o.MaxCalls, 16), cmp.Or(o.Workers, 2)
	o.Hold, o.Keep = cmp.Or(o.Hold, 15*time.Second), cmp.Or(o.Keep, time.Hour)
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	s := &Service{options: o, slots: make(chan struct{}, o.MaxCalls), wake: make(chan struct{}, 1)}
	all, err := s.catalogue()
	if err != nil {
		return nil, err
	}
	for _, id := range o.Allow {
		if !slices.ContainsFunc(all, func(c *Capability) bool { return c.ID == id && c.Write }) {
			return nil, fmt.Errorf("agent: %q is no capability that writes; there are %v", id, Writing())
		}
	}
	for _, c := range all {
		if !c.Write || slices.Contains(o.Allow, c.ID) && o.Worker != nil {
			s.on = append(s.on, c)
		}
	}
	slices.SortFunc(s.on, func(a, b *Capability) int { return cmp.Compare(a.ID, b.ID) })
	return s, nil
}

// Writing are the ids of all capabilities that write, for configuration.
func Writing() []string {
	return []string{string(JobApply), string(JobPlan), string(JobResolve), string(JobSync), string(JobVerify)}
}

// Reading are the ids of all capabilities that only read.
func Reading() []string {
	return []string{"changes.list", "mirror.freshness", "mirror.status", "quarantine.list", "records.get", "records.search"}
}

// Capabilities are those that are switched on, in the order of their ids.
func (s *Service) Capabilities() []*Capability { return slices.Clone(s.on) }

// Capability finds one that is switched on by its id or its name; nil when there is none.
func (s *Service) Capability(id string) *Capability {
	for _, c := range s.on {
		if c.ID == id || c.Name() == id {
			return c
		}
	}
	return nil
}

// Answer is what became of a call: a result, or the task that it began.
type Answer struct {
	Result *Result
	Task   *Task // of an asynchronous call, or of one with a key
}

// Do does a call, or begins its task. Every error is a *Failure. An answer that
// was kept for the call's key is returned again, failures too.
func (s *Service) Do(ctx context.Context, call Call) (Answer, error) {
	a, err := s.do(ctx, call)
	if err == nil {
		return a, nil
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return a, &Failure{Class: Temporary, Code: "interrupted", Message: "the call was given up before it was answered"}
	}
	f := AsFailure(err)
	if f.Class == Internal {
		s.options.Logger.Error("a call failed", zap.String("capability", call.Capability), zap.String("door", call.Caller.Door), zap.Error(err))
	}
	return a, f
}

func (s *Service) do(ctx context.Context, call Call) (Answer, error) {
	if len(bytes.TrimSpace(call.Input)) == 0 {
		call.Input = json.RawMessage("{}")
	}
	c := s.Capability(call.Capability)
	if c == nil {
		return s.refuse(ctx, call, &Failure{Class: NotFound, Code: "unknown_capability", Message: "there is no such capability, or it is switched off"})
	}
	if !call.Caller.May(c) {
		return s.refuse(ctx, call, &Failure{Class: Forbidden, Code: "not_allowed", Message: "this caller may not use " + c.ID})
	}
	if f := c.input.check(call.Input); f != nil {
		return s.refuse(ctx, call, f)
	}
	call.Capability = c.ID
	if c.Async {
		return s.accept(ctx, c, call)
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return Answer{}, &Failure{Class: Limited, Code: "too_many_calls", Message: "too many calls at once", RetryAfter: time.Second}
	}
	if call.Key != "" {
		return s.once(ctx, c, call)
	}
	result, err := s.now(ctx, c, call)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Result: &result}, nil
}

// refuse says why a call is not done, for ever if its platform wants that. An
// answer that the key has already is given instead.
func (s *Service) refuse(ctx context.Context, call Call, f *Failure) (Answer, error) {
	if !call.KeepRefusals || call.Key == "" || len(call.Input) > maxInput || !json.Valid(call.Input) {
		return Answer{}, f
	}
	call.ReplyTo = nil // nobody waits for the end of what was refused
	t, fresh, err := s.options.Tasks.Begin(context.WithoutCancel(ctx), newTask(call), true, s.options.Hold)
	if err != nil {
		return Answer{}, err
	}
	if !fresh {
		return s.again(t, call)
	}
	if _, err := s.options.Tasks.Finish(context.WithoutCancel(ctx), t, Outcome{State: Failed, Failure: f}); err != nil {
		return Answer{}, err
	}
	return Answer{Task: &t}, f
}

// now runs a capability.
func (s *Service) now(ctx context.Context, c *Capability, call Call) (r Result, err error) {
	err = s.guarded(ctx, c, func(ctx context.Context) (err error) {
		r, err = c.run(ctx, call)
		return err
	})
	return r, err
}

// guarded runs a part of a capability within its time. A panic is its failure, and
// not the process's end.
func (s *Service) guarded(ctx context.Context, c *Capability, f func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			s.options.Logger.Error("a capability panicked", zap.String("capability", c.ID), zap.Any("panic", p), zap.Stack("stack"))
			err = &Failure{Class: Internal, Code: "internal_error", Message: "the call failed by a mistake of the server"}
		}
	}()
	err = f(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = &Failure{Class: Temporary, Code: "timed_out", Message: c.ID + " took longer than its time limit", RetryAfter: time.Second}
	}
	return err
}

// once runs a call that has a key, and keeps its answer unless it may change.
func (s *Service) once(ctx context.Context, c *Capability, call Call) (Answer, error) {
	// A caller who goes away meanwhile must not leave a row that nobody works on.
	t, fresh, err := s.options.Tasks.Begin(context.WithoutCancel(ctx), newTask(call), true, c.Timeout+s.options.Hold)
	if err != nil {
		return Answer{}, err
	}
	if !fresh {
		return s.again(t, call)
	}
	result, err := s.now(ctx, c, call)
	ctx = context.WithoutCancel(ctx) // whatever became of the caller, the end is noted
	if err != nil {
		f := AsFailure(err)
		if f.Class.Passing() || f.Class == Internal {
			return Answer{}, errors.Join(err, s.options.Tasks.Forget(ctx, t))
		}
		_, noted := s.options.Tasks.Finish(ctx, t, Outcome{State: Failed, Failure: f})
		return Answer{Task: &t}, errors.Join(err, noted)
	}
	if _, err := s.options.Tasks.Finish(ctx, t, Outcome{State: Completed, Result: &result, Keep: s.options.Keep}); err != nil {
		return Answer{}, err
	}
	t.State, t.Result = Completed, &result
	return Answer{Task: &t, Result: &result}, nil
}

// accept begins a task.
func (s *Service) accept(ctx context.Context, c *Capability, call Call) (Answer, error) {
	call.Key = cmp.Or(call.Key, rand.Text())
	call.Choose = call.Choose && c.Choice != ""
	t, fresh, err := s.options.Tasks.Begin(ctx, newTask(call), false, 0)
	if err != nil {
		return Answer{}, err
	}
	if !fresh {
		return s.again(t, call)
	}
	nudge(s.wake)
	return Answer{Task: &t}, nil
}

// again is the answer to a key that was seen before.
func (s *Service) again(t Task, call Call) (Answer, error) {
	if name(t.Capability) != name(call.Capability) || !sameJSON(t.Input, call.Input) {
		return Answer{}, &Failure{
			Class: Invalid, Code: "key_reused", Message: "this invocation or order was used for another request",
			Suggestions: []string{"take a new id for a new request"},
		}
	}
	c := s.Capability(t.Capability)
	switch {
	case t.State == Failed && t.Failure != nil:
		return Answer{Task: &t}, t.Failure
	case t.State == Running && (c == nil || !c.Async):
		return Answer{Task: &t}, &Failure{Class: Temporary, Code: "in_progress", Message: "the same call is being answered", RetryAfter: time.Second}
	}
	return Answer{Task: &t, Result: t.Result}, nil
}

func newTask(call Call) Task {
	return Task{
		ID: "task_" + rand.Text(), Door: call.Caller.Door, Key: call.Key, Caller: call.Caller.Name,
		Capability: call.Capability, Input: call.Input, ReplyTo: call.ReplyTo, Choose: call.Choose,
	}
}

// sameJSON compares but for space.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
