package sync

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

const (
	// signOutTime bounds the bookkeeping after the last page, so that a stop
	// stays under ten seconds.
	signOutTime = 3 * time.Second
	// leasePoll is how often a lease is tried that is waited for.
	leasePoll = 500 * time.Millisecond
)

// seat is a resource that this worker holds.
type seat struct {
	lease *mirror.Lease
	job   *job
	out   *Outcome
}

// errServed: the resource had the round that was due, by another worker.
var errServed = errors.New("sync: another worker has brought the resource up to date")

// signIn takes the leases and opens the runs. What it could not take is
// already settled in outcomes.
func (e *Engine) signIn(ctx context.Context, resources []string, t task, outcomes []Outcome) []*seat {
	var seats []*seat
	for i, r := range resources {
		out := &outcomes[i]
		out.Resource = r
		var s *seat
		err := guard(func() (err error) {
			s, err = e.sit(ctx, r, t, out)
			return err
		})
		if err == nil {
			seats = append(seats, s)
			continue
		}
		e.turnAway(ctx, t, out, err)
	}
	return seats
}

// turnAway settles a resource that this worker did not get. In a timetable
// stepping aside is what a replica does all day, and not worth a line.
func (e *Engine) turnAway(ctx context.Context, t task, out *Outcome, err error) {
	log, level := e.opts.Logger.With(zap.String("resource", out.Resource)), zap.InfoLevel
	if t.moments != nil {
		level = zap.DebugLevel
	}
	var held *mirror.HeldError
	switch {
	case errors.Is(err, errServed):
		out.Result = SteppedAside
		log.Log(level, "another worker has had the run that was due; stepping aside")
	case errors.As(err, &held):
		out.Result, out.Holder = SteppedAside, &held.Holder
		log.Log(level, "another worker holds the resource; stepping aside",
			zap.String("host", held.Holder.Host), zap.Int("pid", held.Holder.PID), zap.Time("since", held.Holder.Since))
	default:
		out.Result, out.Err = settle(ctx, err, t), err
		logEnd(log, *out, e.memory.note(out.Resource, out.Result, err))
	}
	t.tell(*out)
}

func (t task) tell(o Outcome) {
	if t.ended != nil {
		t.ended(o)
	}
}

func (e *Engine) sit(ctx context.Context, resource string, t task, out *Outcome) (*seat, error) {
	lease, err := e.lease(ctx, resource)
	if err != nil {
		return nil, err
	}
	log := e.opts.Logger.With(zap.String("resource", resource))
	j := &job{
		mirror: e.mirror, ruling: mirror.Ruling{MaxDeleteRatio: e.opts.MaxDeleteRatio}, staged: e.opts.Staged,
		walk: walk{
			resource: resource, source: e.source, caller: &caller{source: e.source, log: log, pace: e.pace, waiting: e.opts.Waiting},
			limit: e.opts.Limit, asking: e.opts.Limit, together: e.together, zone: e.opts.TimeZone, log: log, watch: e.opts.Watch,
			spoke: time.Now(),
		},
	}
	if err := guard(func() error { return e.open(ctx, j, t, out) }); err != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), signOutTime)
		defer cancel()
		lease.Release(last)
		return nil, err
	}
	return &seat{lease: lease, job: j, out: out}, nil
}

// open begins the run of a resource whose lease is taken.
func (e *Engine) open(ctx context.Context, j *job, t task, out *Outcome) error {
	if moment, scheduled := t.moments[j.resource]; scheduled {
		ages, err := e.mirror.Ages(ctx, []string{j.resource})
		if err != nil {
			return err
		}
		if age, ever := ages[j.resource]; ever && !time.Now().Add(-age).Before(moment) {
			return errServed
		}
	}
	at, err := e.mirror.Checkpoint(ctx, j.resource)
	if err != nil {
		return err
	}
	j.at = at
	out.Mode = t.mode
	if out.Mode == "" {
		out.Mode = mode(at)
	}
	j.run = mirror.Run{
		Resource: j.resource, Mode: out.Mode, Host: e.opts.Holder.Host, PID: e.opts.Holder.PID, StartedAt: time.Now(),
	}
	j.run.ID, err = e.mirror.BeginRun(ctx, j.run)
	return err
}

// lease takes the resource's lease, and waits for it as long as it may.
func (e *Engine) lease(ctx context.Context, resource string) (*mirror.Lease, error) {
	until := time.Now().Add(e.opts.Wait)
	for {
		l, err := e.mirror.Lease(ctx, resource, e.opts.Holder)
		var held *mirror.HeldError
		left := time.Until(until)
		if !errors.As(err, &held) || left <= 0 {
			return l, err
		}
		if err := wait(ctx, min(leasePoll, left)); err != nil {
			return nil, err
		}
	}
}

// signOut closes the run and gives the lease back, also when the run was
// asked to stop: the log then says so instead of waiting for the next start.
func (e *Engine) signOut(ctx context.Context, s *seat, t task, err error) {
	j, out := s.job, s.out
	out.Result, out.Err = settle(ctx, err, t), err
	if out.Result == Verified && !j.found.Equal() {
		out.Result, out.Err = Drifted, ErrDrift
	}
	out.Mode, out.Pages, out.Counts, out.Notices = j.run.Mode, j.run.Pages, j.run.Counts, j.run.Notices
	out.Retries = j.run.Retries + j.caller.retries
	out.Difference, out.RequestID, out.Staged = j.found, j.run.RequestID, j.pass.StartedAt
	if j.pass.Purpose != mirror.PurposeVerify {
		out.Reason = j.pass.Reason
	}
	if out.Result == Synced {
		out.DataCutoffAt = j.at.DataCutoffAt
	}
	out.Seconds = time.Since(j.run.StartedAt).Seconds()

	j.run.Outcome, j.run.Retries = string(out.Result), out.Retries
	if e.opts.KeyVersion != nil && !t.local {
		j.run.KeyVersion = e.opts.KeyVersion()
	}
	if out.Err != nil {
		code, requestID := codeOf(out.Err)
		j.run.Message = e.opts.Clean(out.Err.Error())
		if out.Result != Interrupted && !NotApplicable(err) { // neither is an error of the resource
			j.run.Code = code
		}
		if requestID != "" {
			j.run.RequestID, out.RequestID = requestID, requestID
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), signOutTime)
	defer cancel()
	endErr := guard(func() error { return e.mirror.EndRun(last, j.run) })
	s.lease.Release(last)
	switch {
	case errors.As(endErr, new(*PanicError)):
		out.Result, out.Err = Failed, endErr
	case endErr != nil:
		j.log.Warn("the run log could not be closed; the next start will", zap.Error(endErr))
	}
	logEnd(j.log, *out, e.memory.note(out.Resource, out.Result, out.Err))
	t.tell(*out)
}

// logEnd says how a run ended. A failure is an error once, and a warning while
// it lasts.
func logEnd(log *zap.Logger, out Outcome, again bool) {
	fields := []zap.Field{
		zap.String("result", string(out.Result)), zap.String("mode", out.Mode), zap.Int64("pages", out.Pages),
		zap.Int64("received", out.Counts.Received), zap.Int64("stored", out.Counts.Stored()),
		zap.Int64("unchanged", out.Counts.Unchanged), zap.Int64("quarantined", out.Counts.Quarantined),
		zap.Float64("seconds", out.Seconds), zap.String("request_id", out.RequestID),
	}
	var p *PanicError
	if errors.As(out.Err, &p) {
		fields = append(fields, zap.ByteString("stack", p.Stack))
	}
	switch out.Result {
	case Failed, Drifted, Held:
		if again {
			log.Warn("run still fails", append(fields, zap.Error(out.Err))...)
			return
		}
		log.Error("run failed", append(fields, zap.Error(out.Err))...)
	case Interrupted:
		log.Info("run interrupted", append(fields, zap.NamedError("reason", out.Err))...)
	default:
		log.Info("run done", fields...)
	}
}
