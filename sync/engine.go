package sync

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// Options tell an Engine how to work.
type Options struct {
	TimeZone *time.Location // of times in records that name none
	Limit    int            // records a page, 1 to 200 (contract §4.3)
	Holder   mirror.Holder  // how this process signs leases and runs
	Logger   *zap.Logger    // required
	Watch    func(Progress) // may be nil; called from several goroutines
	// Clean takes secrets and personal data out of a text that will be stored.
	Clean func(string) string
}

// Engine runs rounds. It keeps no state between two of them.
type Engine struct {
	source Source
	ledger Ledger
	desk   Desk
	opts   Options
}

// NewEngine wires an engine; it owns none of its parts.
func NewEngine(source Source, ledger Ledger, desk Desk, o Options) *Engine {
	return &Engine{source: source, ledger: ledger, desk: desk, opts: o}
}

// Sync brings the resources up to date, side by side, and returns one outcome
// for each, in the order given. One resource's failure does not stop the
// others. When another worker holds a resource, this one steps aside.
func (e *Engine) Sync(ctx context.Context, resources []string) []Outcome {
	outcomes := make([]Outcome, len(resources))
	seats := e.signIn(ctx, resources, outcomes)
	if len(seats) == 0 {
		return outcomes
	}
	verdicts, tenant := e.preflight(ctx, seats)
	var g errgroup.Group
	for _, s := range seats {
		g.Go(func() error {
			err := verdicts[s.resource]
			if err == nil {
				err = guard(func() error { return e.work(ctx, s, tenant) })
			}
			e.signOut(ctx, s, err)
			return nil
		})
	}
	_ = g.Wait() // each seat's error is in its outcome
	return outcomes
}

// seat is a resource that this worker holds.
type seat struct {
	resource string
	lease    *mirror.Lease
	began    time.Time
	round    *round
	out      *Outcome
	log      *zap.Logger
}

// signIn takes the leases and opens the runs. What it could not take is
// already settled in outcomes.
func (e *Engine) signIn(ctx context.Context, resources []string, outcomes []Outcome) []*seat {
	var seats []*seat
	for i, r := range resources {
		outcomes[i].Resource = r
		s, err := e.sit(ctx, r, &outcomes[i])
		var held *mirror.HeldError
		switch {
		case errors.As(err, &held):
			outcomes[i].Result, outcomes[i].Holder = SteppedAside, &held.Holder
			e.opts.Logger.Info("another worker holds the resource; stepping aside", zap.String("resource", r),
				zap.String("host", held.Holder.Host), zap.Int("pid", held.Holder.PID), zap.Time("since", held.Holder.Since))
		case err != nil:
			outcomes[i].Result, outcomes[i].Err = settle(ctx, err), err
		default:
			seats = append(seats, s)
		}
	}
	return seats
}

func (e *Engine) sit(ctx context.Context, resource string, out *Outcome) (*seat, error) {
	lease, err := e.desk.Lease(ctx, resource, e.opts.Holder)
	if err != nil {
		return nil, err
	}
	log := e.opts.Logger.With(zap.String("resource", resource))
	s := &seat{resource: resource, lease: lease, began: time.Now(), out: out, log: log}
	s.round = &round{
		resource: resource, source: e.source, ledger: e.ledger, limit: e.opts.Limit, asking: e.opts.Limit, zone: e.opts.TimeZone,
		caller: &caller{source: e.source, log: log}, log: log, watch: e.opts.Watch,
	}
	if s.round.at, err = e.ledger.Checkpoint(ctx, resource); err == nil {
		out.Mode = mode(s.round.at)
		s.round.run = mirror.Run{
			Resource: resource, Mode: out.Mode, Host: e.opts.Holder.Host, PID: e.opts.Holder.PID, StartedAt: s.began,
		}
		s.round.run.ID, err = e.desk.BeginRun(ctx, s.round.run)
	}
	if err != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), signOutTime)
		defer cancel()
		lease.Release(last)
		return nil, err
	}
	return s, nil
}

// preflight asks once for all seats. Its error, when there is one, is every
// seat's verdict.
func (e *Engine) preflight(ctx context.Context, seats []*seat) (verdicts map[string]error, tenant string) {
	names := make([]string, len(seats))
	for i, s := range seats {
		names[i] = s.resource
	}
	known, err := e.desk.Tenant(ctx)
	if err == nil {
		var id remote.Identity
		if id, verdicts, err = e.present(ctx, known, names); err == nil {
			return verdicts, id.TenantID
		}
	}
	verdicts = make(map[string]error, len(names))
	for _, n := range names {
		verdicts[n] = err
	}
	return verdicts, ""
}

// work follows the round for as long as the lease holds.
func (e *Engine) work(ctx context.Context, s *seat, tenant string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-s.lease.Lost():
			stop(ErrLeaseLost)
		case <-ctx.Done():
		}
	}()
	s.log.Info("sync begins", zap.String("mode", s.out.Mode), zap.Int64("run", s.round.run.ID))
	if s.round.at.Phase == mirror.PhaseRebuild {
		return ErrRebuildNeeded
	}
	if tenant != "" && s.round.at.Tenant == "" {
		at, err := e.ledger.Adopt(ctx, s.round.at, tenant)
		if err != nil {
			return err
		}
		s.round.at = at
	}
	return s.round.follow(ctx)
}

// signOut closes the run and gives the lease back, also when the run was
// asked to stop: the log then says so instead of waiting for the next start.
func (e *Engine) signOut(ctx context.Context, s *seat, err error) {
	r, out := s.round, s.out
	out.Result, out.Err = settle(ctx, err), err
	out.Pages, out.Counts, out.Retries = r.run.Pages, r.run.Counts, r.run.Retries+r.caller.retries
	out.RequestID = r.run.RequestID
	if out.Result == Synced {
		out.DataCutoffAt = r.at.DataCutoffAt
	}
	out.Seconds = time.Since(s.began).Seconds()

	r.run.Outcome, r.run.Retries = string(out.Result), out.Retries
	if err != nil {
		code, requestID := codeOf(err)
		r.run.Message = e.opts.Clean(err.Error())
		if out.Result == Failed { // a wanted stop is no error of the resource
			r.run.Code = code
		}
		if requestID != "" {
			r.run.RequestID, out.RequestID = requestID, requestID
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), signOutTime)
	defer cancel()
	if endErr := e.desk.EndRun(last, r.run); endErr != nil {
		s.log.Warn("the run log could not be closed; the next start will", zap.Error(endErr))
	}
	s.lease.Release(last)
	s.logEnd()
}

// signOutTime bounds the bookkeeping after the last page, so that a stop
// stays under ten seconds.
const signOutTime = 3 * time.Second

func (s *seat) logEnd() {
	fields := []zap.Field{
		zap.String("result", string(s.out.Result)), zap.Int64("pages", s.out.Pages),
		zap.Int64("received", s.out.Counts.Received), zap.Int64("stored", s.out.Counts.Stored()),
		zap.Int64("unchanged", s.out.Counts.Unchanged), zap.Int64("quarantined", s.out.Counts.Quarantined),
		zap.Float64("seconds", s.out.Seconds), zap.String("request_id", s.out.RequestID),
	}
	var p *PanicError
	if errors.As(s.out.Err, &p) {
		fields = append(fields, zap.ByteString("stack", p.Stack))
	}
	switch s.out.Result {
	case Failed:
		s.log.Error("sync failed", append(fields, zap.Error(s.out.Err))...)
	case Synced:
		s.log.Info("sync done", fields...)
	default:
		s.log.Info("sync ended early", append(fields, zap.NamedError("reason", s.out.Err))...)
	}
}
