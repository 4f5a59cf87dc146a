package sync

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// reasonAsked is why a rebuild began that an operator asked for.
const reasonAsked = "REQUESTED"

// maxPassRestarts bounds how often one run begins a full pass anew because its
// cursor expired or its staging was lost. A remote that keeps expiring is then
// reported instead of being asked for ever.
const maxPassRestarts = 3

// The answers to a request that does not fit what is there.
var (
	// ErrHeld: a rebuild is held by the deletion fuse and waits for a person.
	ErrHeld = errors.New("sync: a rebuild is held by the deletion fuse; readers see the rows of before")
	// ErrNothingHeld: there is no held rebuild to let through.
	ErrNothingHeld = errors.New("sync: no rebuild is held")
	// ErrNothingPlanned: there is no finished dry run to apply.
	ErrNothingPlanned = errors.New("sync: there is no finished dry run to apply")
	// ErrNothingToAbort: there is neither a rebuild nor a dry run.
	ErrNothingToAbort = errors.New("sync: there is no rebuild and no dry run to abort")
	// ErrOtherPass: what is staged is not what was meant.
	ErrOtherPass = errors.New("sync: what is staged is another rebuild or dry run than the one that was meant")
	// ErrUnderWay: a rebuild has the staging that a dry run would need.
	ErrUnderWay = errors.New("sync: a rebuild of this resource is under way or held; a dry run would take its place")
	// ErrNeverSynced: the mirror was never complete, so there is nothing to compare.
	ErrNeverSynced = errors.New("sync: the mirror was never complete, or waits for a rebuild: there is nothing to verify")
)

// NotApplicable tells the errors of a request that does not fit what is there.
// Nothing is wrong with the resource then.
func NotApplicable(err error) bool {
	for _, misfit := range []error{ErrNothingHeld, ErrNothingPlanned, ErrNothingToAbort, ErrNeverSynced, ErrUnderWay, ErrOtherPass} {
		if errors.Is(err, misfit) {
			return true
		}
	}
	return false
}

// rebuild works on the full pass until it is merged: pages go to staging, then
// one transaction writes the differences.
func (j *job) rebuild(ctx context.Context) error {
	return j.withRestarts(ctx, mirror.PurposeRebuild, func() error {
		if j.pass.Held {
			return ErrHeld
		}
		if err := j.fill(ctx); err != nil {
			return err
		}
		return j.merge(ctx, j.ruling)
	})
}

// withRestarts runs f on the resource's full pass, and on a new one when that
// one cannot be finished, a bounded number of times and ever more slowly.
func (j *job) withRestarts(ctx context.Context, purpose mirror.Purpose, f func() error) error {
	err := j.takePass(ctx, purpose)
	b := j.caller.pace.backoff()
	for restarts := 0; err == nil; restarts++ {
		err = f()
		if err == nil || restarts == maxPassRestarts || !startsOver(err) && !j.stuck(err) {
			return err
		}
		j.resumed = false
		d := j.caller.pace.pause(b, nil)
		j.log.Warn("the full pass cannot be finished; beginning it again", zap.Int("restart", restarts+1),
			zap.Duration("wait", d), zap.Error(err))
		if err := wait(ctx, d); err != nil {
			return err
		}
		err = j.beginPass(ctx, purpose, j.pass.Reason)
	}
	return err
}

// startsOver tells the errors that a new full pass cures.
func startsOver(err error) bool {
	return errors.Is(err, mirror.ErrStagingLost) || errors.Is(err, mirror.ErrMoved) || judge(err, tried{}) == rebuild
}

// stuck tells that the remote refuses the very place where an earlier run left
// the pass: asking again from there would fail for ever.
func (j *job) stuck(err error) bool {
	var e *remote.Error
	return j.resumed && j.run.Pages == 0 && errors.As(err, &e) &&
		(e.Code == remote.Malformed || e.Code == remote.InvalidArgument)
}

// takePass goes on with the pass that is there for the purpose, or begins one.
func (j *job) takePass(ctx context.Context, purpose mirror.Purpose) error {
	var p mirror.Pass
	var found bool
	err := j.persist(ctx, func(ctx context.Context) (err error) {
		p, found, err = j.mirror.Pass(ctx, j.resource)
		return err
	}, again)
	if err != nil {
		return err
	}
	if found && p.Purpose == purpose {
		j.pass, j.resumed = p, p.At.Pages > 0
		j.log.Info("going on with the full pass", zap.String("purpose", string(purpose)), zap.Int64("pages", p.At.Pages), zap.Int64("rows", p.Rows))
		return nil
	}
	reason := string(remote.CursorExpired)
	if purpose != mirror.PurposeRebuild || j.at.SyncToken != "" {
		reason = reasonAsked
	}
	return j.beginPass(ctx, purpose, reason)
}

// beginPass may be done twice: the mirror does not move, and the pass that
// nobody heard of is empty.
func (j *job) beginPass(ctx context.Context, purpose mirror.Purpose, reason string) error {
	return j.persist(ctx, func(ctx context.Context) error {
		p, err := j.mirror.BeginPass(ctx, j.at, purpose, reason)
		if err == nil {
			j.pass = p
		}
		return err
	}, again)
}

// fill stages the rest of the pass.
func (j *job) fill(ctx context.Context) error {
	if j.pass.Complete {
		return nil
	}
	return j.follow(ctx, j.pass.At, j.stage)
}

// stage commits pages of a full pass to staging, with the last one's position.
func (j *job) stage(ctx context.Context, s stretch) error {
	began := time.Now()
	step := mirror.StageStep{Before: j.pass, After: s.after, Batch: s.batch, RunID: j.run.ID, Last: s.last}
	var counts mirror.Counts
	err := j.persist(ctx, func(ctx context.Context) error {
		p, c, err := j.mirror.Stage(ctx, step)
		counts = c
		if err == nil {
			j.pass = p
		}
		return err
	}, func(ctx context.Context) (bool, error) {
		p, found, err := j.mirror.Pass(ctx, j.resource)
		if err != nil || found && p.At.Epoch == step.Before.At.Epoch {
			return false, err
		}
		if !found || p.At.Epoch != step.Before.At.Epoch+1 || p.At.Cursor != step.After.Cursor {
			return false, moved("stage " + j.resource)
		}
		j.pass = p
		return true, nil
	})
	if err == nil {
		j.count(s, counts, time.Since(began))
	}
	return err
}

// merge writes the staged result's differences into the readers' table.
func (j *job) merge(ctx context.Context, ruling mirror.Ruling) error {
	before := j.at
	var counts mirror.Counts
	err := j.persist(ctx, func(ctx context.Context) error {
		at, c, err := j.mirror.Merge(ctx, before, j.pass, ruling)
		counts = c
		if err == nil {
			j.at = at
		}
		var fuse *mirror.FuseError
		if errors.As(err, &fuse) {
			j.found = &fuse.Difference
		}
		return err
	}, j.landed("merge", before, func(at mirror.Checkpoint) bool { return at.SyncToken == j.pass.At.SyncToken }))
	if err == nil {
		j.run.Counts = j.run.Counts.Add(counts)
	}
	return err
}

// ask begins a rebuild, or goes on with one that is under way. One that is
// held begins anew: who asks again wants today's answer.
func (j *job) ask(ctx context.Context) error {
	if j.at.Phase != mirror.PhaseRebuild {
		if err := j.restart(ctx, reasonAsked, true); err != nil {
			return err
		}
	}
	p, found, err := j.mirror.Pass(ctx, j.resource)
	if err != nil {
		return err
	}
	if found && p.Purpose == mirror.PurposeRebuild && p.Complete {
		if err := j.beginPass(ctx, mirror.PurposeRebuild, reasonAsked); err != nil {
			return err
		}
	}
	return j.rebuild(ctx)
}

// plan makes the full pass and compares, and leaves the result for apply.
func (j *job) plan(ctx context.Context) error {
	p, found, err := j.mirror.Pass(ctx, j.resource)
	switch {
	case err != nil:
		return err
	case found && p.Purpose == mirror.PurposeRebuild:
		return ErrUnderWay
	case found && p.Purpose == mirror.PurposePlan && p.Complete:
		err = j.beginPass(ctx, mirror.PurposePlan, reasonAsked)
	}
	if err != nil {
		return err
	}
	return j.withRestarts(ctx, mirror.PurposePlan, func() error {
		if err := j.fill(ctx); err != nil {
			return err
		}
		return j.compare(ctx)
	})
}

func (j *job) compare(ctx context.Context) error {
	d, err := j.mirror.Compare(ctx, j.at, j.pass)
	if err == nil {
		j.found = &d
	}
	return err
}

// apply merges exactly what the last dry run staged, if the mirror has not
// moved since.
func (j *job) apply(ctx context.Context, ruling mirror.Ruling) error {
	p, found, err := j.mirror.Pass(ctx, j.resource)
	if err != nil {
		return err
	}
	if !found || p.Purpose != mirror.PurposePlan || !p.Complete {
		return ErrNothingPlanned
	}
	if !j.meant(p) {
		return ErrOtherPass
	}
	j.pass = p
	return j.merge(ctx, ruling)
}

// meant reports whether a pass is the one that the task is for. Only whoever holds
// the lease replaces it, so what is true once stays true.
func (j *job) meant(p mirror.Pass) bool { return j.staged.IsZero() || p.StartedAt.Equal(j.staged) }

// accept lets a held result through, as the ruling says. One whose staging is lost begins anew: it
// would stay held for ever otherwise, and could not be accepted either.
func (j *job) accept(ctx context.Context, ruling mirror.Ruling) error {
	p, found, err := j.mirror.Pass(ctx, j.resource)
	if err != nil {
		return err
	}
	if !found || !p.Held {
		return ErrNothingHeld
	}
	if !j.meant(p) {
		return ErrOtherPass
	}
	j.pass = p
	err = j.merge(ctx, ruling)
	if errors.Is(err, mirror.ErrStagingLost) {
		return errors.Join(err, j.beginPass(ctx, p.Purpose, p.Reason))
	}
	return err
}

// abort drops what is staged. A resource whose position the remote still knows
// goes back to its increments; another one keeps waiting for a rebuild.
func (j *job) abort(ctx context.Context) error {
	p, found, err := j.mirror.Pass(ctx, j.resource)
	if err != nil {
		return err
	}
	if !j.staged.IsZero() && (!found || !j.meant(p)) {
		return ErrOtherPass
	}
	if j.at.Phase == mirror.PhaseRebuild && j.at.SyncToken != "" {
		at, err := j.mirror.Resume(ctx, j.at)
		if err == nil {
			j.at = at
		}
		return err
	}
	if !found {
		return ErrNothingToAbort
	}
	return j.mirror.DropPass(ctx, j.resource)
}

// verify makes a full pass, reads what changed since the mirror's own
// position, and compares. It never writes the mirror.
func (j *job) verify(ctx context.Context) error {
	if j.at.Phase != mirror.PhaseIncremental || j.at.SyncToken == "" {
		return ErrNeverSynced
	}
	p, found, err := j.mirror.Pass(ctx, j.resource)
	if err != nil {
		return err
	}
	if found && p.Purpose == mirror.PurposePlan {
		j.log.Warn("a dry run that was not applied gives way to the verification")
	}
	// Always anew: an older pass is of a snapshot that the mirror may be ahead of.
	if err := j.beginPass(ctx, mirror.PurposeVerify, reasonAsked); err != nil {
		return err
	}
	if err := j.withRestarts(ctx, mirror.PurposeVerify, func() error { return j.fill(ctx) }); err != nil {
		return err
	}
	return j.settleDrift(ctx)
}

// settleDrift sets a finished pass against the mirror. When the remote no longer
// knows the mirror's own position, no new pass could help: that is an error here.
func (j *job) settleDrift(ctx context.Context) error {
	since := mirror.Checkpoint{Resource: j.resource, SyncToken: j.at.SyncToken}
	explain := func(ctx context.Context, s stretch) error { return j.mirror.Explain(ctx, j.pass, s.batch) }
	if err := j.follow(ctx, since, explain); err != nil {
		return err
	}
	if err := j.compare(ctx); err != nil {
		return err
	}
	return j.mirror.Verified(ctx, j.pass, *j.found)
}
