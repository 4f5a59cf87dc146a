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

// signIn takes the leases and opens the runs. What it could not take is
// already settled in outcomes.
func (e *Engine) signIn(ctx context.Context, resources []string, t task, outcomes []Outcome) []*seat {
	var seats []*seat
	for i, r := range resources {
		outcomes[i].Resource = r
		s, err := e.sit(ctx, r, t, &outcomes[i])
		var held *mirror.HeldError
		switch {
		case errors.As(err, &held):
			outcomes[i].Result, outcomes[i].Holder = SteppedAside, &held.Holder
			e.opts.Logger.Info("another worker holds the resource; stepping aside", zap.String("resource", r),
				zap.String("host", held.Holder.Host), zap.Int("pid", held.Holder.PID), zap.Time("since", held.Holder.Since))
		case err != nil:
			outcomes[i].Result, outcomes[i].Err = settle(ctx, err, t), err
		default:
			seats = append(seats, s)
		}
	}
	return seats
}

func (e *Engine) sit(ctx context.Context, resource string, t task, out *Outcome) (*seat, error) {
	lease, err := e.lease(ctx, resource)
	if err != nil {
		return nil, err
	}
	log := e.opts.Logger.With(zap.String("resource", resource))
	j := &job{
		mirror: e.mirror, ruling: mirror.Ruling{MaxDeleteRatio: e.opts.MaxDeleteRatio},
		walk: walk{
			resource: resource, source: e.source, caller: &caller{source: e.source, log: log},
			limit: e.opts.Limit, asking: e.opts.Limit, zone: e.opts.TimeZone, log: log, watch: e.opts.Watch,
			spoke: time.Now(),
		},
	}
	if j.at, err = e.mirror.Checkpoint(ctx, resource); err == nil {
		out.Mode = t.mode
		if out.Mode == "" {
			out.Mode = mode(j.at)
		}
		j.run = mirror.Run{
			Resource: resource, Mode: out.Mode, Host: e.opts.Holder.Host, PID: e.opts.Holder.PID, StartedAt: time.Now(),
		}
		j.run.ID, err = e.mirror.BeginRun(ctx, j.run)
	}
	if err != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), signOutTime)
		defer cancel()
		lease.Release(last)
		return nil, err
	}
	return &seat{lease: lease, job: j, out: out}, nil
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
	out.Difference, out.RequestID = j.found, j.run.RequestID
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
	if endErr := e.mirror.EndRun(last, j.run); endErr != nil {
		j.log.Warn("the run log could not be closed; the next start will", zap.Error(endErr))
	}
	s.lease.Release(last)
	s.logEnd()
}

func (s *seat) logEnd() {
	fields := []zap.Field{
		zap.String("result", string(s.out.Result)), zap.String("mode", s.out.Mode), zap.Int64("pages", s.out.Pages),
		zap.Int64("received", s.out.Counts.Received), zap.Int64("stored", s.out.Counts.Stored()),
		zap.Int64("unchanged", s.out.Counts.Unchanged), zap.Int64("quarantined", s.out.Counts.Quarantined),
		zap.Float64("seconds", s.out.Seconds), zap.String("request_id", s.out.RequestID),
	}
	var p *PanicError
	if errors.As(s.out.Err, &p) {
		fields = append(fields, zap.ByteString("stack", p.Stack))
	}
	switch s.out.Result {
	case Failed, Drifted, Held:
		s.job.log.Error("run failed", append(fields, zap.Error(s.out.Err))...)
	case Interrupted:
		s.job.log.Info("run interrupted", append(fields, zap.NamedError("reason", s.out.Err))...)
	default:
		s.job.log.Info("run done", fields...)
	}
}
