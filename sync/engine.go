package sync

import (
	"context"
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
	// MaxDeleteRatio is the share of the live rows above which a rebuild's
	// deletions are held, 0 to 1.
	MaxDeleteRatio float64
	Holder         mirror.Holder // how this process signs leases and runs
	// Wait is how long to wait for a lease that another worker holds; 0 steps
	// aside at once.
	Wait time.Duration
	// Staged is the full pass that Apply, Accept, AcceptWithoutDeletes and Abort are
	// meant for, by its StartedAt; another one is ErrOtherPass. Zero: whichever is there.
	Staged time.Time
	Logger *zap.Logger    // required
	Watch  func(Progress) // may be nil; called from several goroutines
	// Waiting is told of each wait before the remote is asked again, and why;
	// may be nil; called from several goroutines.
	Waiting func(why remote.Code, wait time.Duration)
	// Clean takes secrets and personal data out of a text that will be stored.
	Clean func(string) string
	// KeyVersion is the version of the service key in use, for the run log; nil
	// where there is none to tell.
	KeyVersion func() string
}

// Engine runs rounds. Between two of them it remembers nothing that a new one
// could not find out.
type Engine struct {
	source Source
	mirror Mirror
	opts   Options
	memory memory
	pace   pace // of retries
	// together is how many pages one commit may hold.
	together int64
}

// NewEngine wires an engine; it owns none of its parts.
func NewEngine(source Source, m Mirror, o Options) *Engine {
	return &Engine{source: source, mirror: m, opts: o, memory: newMemory(), pace: contractPace, together: windowPages}
}

// task is what to do with a resource that this worker holds.
type task struct {
	mode   string // for the run log; "" is by what the checkpoint says
	local  bool   // the remote is not asked
	do     func(*job, context.Context) error
	result Result // when do succeeded
	// moments: those of a timetable. What had a complete round since its own is
	// left alone.
	moments map[string]time.Time
	ended   func(Outcome) // may be nil; called from several goroutines
}

// Sync brings the resources up to date, side by side, and returns one outcome
// for each, in the order given. One resource's failure does not stop the
// others. When another worker holds a resource, this one steps aside. A
// resource that needs a rebuild is rebuilt.
func (e *Engine) Sync(ctx context.Context, resources []string) []Outcome {
	return e.each(ctx, resources, task{do: (*job).sync, result: Synced})
}

// SyncDue is Sync for a timetable: a resource that had a complete round since
// its moment is left alone, so that of several replicas one works. ended is told
// of each outcome as soon as its resource is free again, from several goroutines.
func (e *Engine) SyncDue(ctx context.Context, due []Due, ended func(Outcome)) []Outcome {
	t := task{do: (*job).sync, result: Synced, moments: map[string]time.Time{}, ended: ended}
	names := make([]string, len(due))
	for i, d := range due {
		names[i], t.moments[d.Resource] = d.Resource, d.Moment
	}
	return e.each(ctx, names, t)
}

// Rebuild makes the mirror of the resources anew, or goes on with a rebuild
// that is under way. Readers see the rows of before until one transaction
// brings the differences.
func (e *Engine) Rebuild(ctx context.Context, resources []string) []Outcome {
	return e.each(ctx, resources, task{mode: modeRebuild, do: (*job).ask, result: Synced})
}

// Plan does all of a rebuild but the merge, and reports the differences.
func (e *Engine) Plan(ctx context.Context, resources []string) []Outcome {
	return e.each(ctx, resources, task{mode: "plan", do: (*job).plan, result: Planned})
}

// Apply merges exactly what the last Plan staged, if the mirror has not moved
// since.
func (e *Engine) Apply(ctx context.Context, resources []string, acceptDeletes bool) []Outcome {
	do := func(j *job, ctx context.Context) error {
		ruling := j.ruling
		ruling.AcceptDeletes = acceptDeletes
		return j.apply(ctx, ruling)
	}
	return e.each(ctx, resources, task{mode: "apply", local: true, do: do, result: Synced})
}

// Accept lets a rebuild through that the deletion fuse holds.
func (e *Engine) Accept(ctx context.Context, resources []string) []Outcome {
	return e.settle(ctx, resources, mirror.Ruling{AcceptDeletes: true})
}

// AcceptWithoutDeletes lets all of a held rebuild through but its deletions: those
// rows stay live, until the remote speaks of them again or a later rebuild ends them.
func (e *Engine) AcceptWithoutDeletes(ctx context.Context, resources []string) []Outcome {
	return e.settle(ctx, resources, mirror.Ruling{WithoutDeletes: true})
}

func (e *Engine) settle(ctx context.Context, resources []string, ruling mirror.Ruling) []Outcome {
	do := func(j *job, ctx context.Context) error { return j.accept(ctx, ruling) }
	return e.each(ctx, resources, task{mode: "accept", local: true, do: do, result: Synced})
}

// Abort drops a rebuild or a plan.
func (e *Engine) Abort(ctx context.Context, resources []string) []Outcome {
	return e.each(ctx, resources, task{mode: "abort", local: true, do: (*job).abort, result: Aborted})
}

// Verify compares the mirror with a full pass and never writes it.
func (e *Engine) Verify(ctx context.Context, resources []string) []Outcome {
	return e.each(ctx, resources, task{mode: "verify", do: (*job).verify, result: Verified})
}

func (e *Engine) each(ctx context.Context, resources []string, t task) []Outcome {
	outcomes := make([]Outcome, len(resources))
	seats := e.signIn(ctx, resources, t, outcomes)
	if len(seats) == 0 {
		return outcomes
	}
	var verdicts map[string]error
	tenant := ""
	if !t.local {
		verdicts, tenant = e.preflight(ctx, seats)
	}
	var g errgroup.Group
	for _, s := range seats {
		g.Go(func() error {
			err := verdicts[s.job.resource]
			if err == nil {
				err = guard(func() error { return e.work(ctx, s, t, tenant) })
			}
			return guard(func() error { e.signOut(ctx, s, t, err); return nil })
		})
	}
	if err := g.Wait(); err != nil { // each seat's own error is in its outcome
		e.opts.Logger.Error("a run's end could not be told", zap.Error(err))
	}
	return outcomes
}

// preflight asks once for all seats. Its error, when there is one, is every
// seat's verdict.
func (e *Engine) preflight(ctx context.Context, seats []*seat) (verdicts map[string]error, tenant string) {
	names := make([]string, len(seats))
	for i, s := range seats {
		names[i] = s.job.resource
	}
	var id remote.Identity
	err := guard(func() error {
		known, err := e.mirror.Tenant(ctx)
		if err == nil {
			id, verdicts, err = e.present(ctx, known, names)
		}
		return err
	})
	if err == nil {
		return verdicts, id.TenantID
	}
	verdicts = make(map[string]error, len(names))
	for _, n := range names {
		verdicts[n] = err
	}
	return verdicts, ""
}

// work does the task for as long as the lease holds or can be had again.
func (e *Engine) work(ctx context.Context, s *seat, t task, tenant string) error {
	ctx, stop := context.WithCancelCause(ctx)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		if err := e.keep(ctx, s); err != nil {
			stop(err)
		}
	}()
	defer func() {
		stop(nil)
		<-kept // from here on the seat's lease is the caller's alone
	}()
	j := s.job
	j.log.Info("run begins", zap.String("mode", s.out.Mode), zap.Int64("run", j.run.ID))
	if tenant != "" && j.at.Tenant == "" {
		if err := j.adopt(ctx, tenant); err != nil {
			return err
		}
	}
	return t.do(j, ctx)
}
