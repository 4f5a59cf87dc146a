package sync

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// job is one resource in the hands of this worker: a walk, and the places
// where its pages may go.
type job struct {
	walk
	mirror Mirror
	ruling mirror.Ruling
	staged time.Time         // when the pass began that is meant; zero for any
	at     mirror.Checkpoint // where the mirror stands
	pass   mirror.Pass       // the full pass in staging, when there is one
	// resumed: the pass is an earlier run's, and no page of this run is in it.
	resumed bool
	found   *mirror.Difference
}

// sync brings the resource up to date: with the changes since the last round,
// or with a rebuild when the remote no longer knows where we stand.
func (j *job) sync(ctx context.Context) error {
	if j.at.Phase == mirror.PhaseIncremental {
		err := j.follow(ctx, j.at, j.store)
		if judge(err, tried{}) != rebuild {
			return err
		}
		// Durable before anything else happens, so that a crash cannot forget it.
		if restartErr := j.restart(ctx, remote.CursorExpired, false); restartErr != nil {
			return restartErr
		}
		j.log.Warn("the remote no longer knows our position; rebuilding, readers keep the rows they have", zap.Error(err))
	}
	j.run.Mode = modeRebuild
	return j.rebuild(ctx)
}

// store commits pages of changes with the last one's checkpoint.
func (j *job) store(ctx context.Context, s stretch) error {
	began := time.Now()
	step := mirror.Step{Before: j.at, After: s.after, Batch: s.batch, RunID: j.run.ID, Last: s.last, Fresh: j.fresh()}
	var counts mirror.Counts
	err := j.persist(ctx, func(ctx context.Context) error {
		at, c, err := j.mirror.Commit(ctx, step)
		counts = c
		if err == nil {
			j.at = at
		}
		return err
	}, j.landed("commit", step.Before, func(at mirror.Checkpoint) bool {
		return at.Cursor == step.After.Cursor && at.SyncToken == step.After.SyncToken
	}))
	if err == nil {
		j.count(s, counts, time.Since(began))
	}
	return err
}

// fresh tells a first sync that has met no row of its own yet.
func (j *job) fresh() bool {
	c := j.run.Counts
	return j.at.SyncToken == "" && c.Unchanged+c.Updated+c.Revived == 0
}

// adopt notes whose records the mirror is going to hold.
func (j *job) adopt(ctx context.Context, tenant string) error {
	before := j.at
	return j.persist(ctx, func(ctx context.Context) error {
		at, err := j.mirror.Adopt(ctx, before, tenant)
		if err == nil {
			j.at = at
		}
		return err
	}, j.landed("adopt", before, func(at mirror.Checkpoint) bool { return at.Tenant == tenant }))
}

// restart turns the resource to a rebuild. The token is kept only where the
// remote still honours it: the rebuild can then be called off.
func (j *job) restart(ctx context.Context, reason remote.Code, keepToken bool) error {
	before := j.at
	return j.persist(ctx, func(ctx context.Context) error {
		at, err := j.mirror.Restart(ctx, before, string(reason), keepToken)
		if err == nil {
			j.at = at
		}
		return err
	}, j.landed("restart", before, func(at mirror.Checkpoint) bool { return at.Phase == mirror.PhaseRebuild }))
}

// landed is for persist, of a step from before whose answer was lost: the epoch
// tells whether it was done, and ours whether it was this worker's.
func (j *job) landed(what string, before mirror.Checkpoint, ours func(mirror.Checkpoint) bool) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		at, err := j.mirror.Checkpoint(ctx, j.resource)
		if err != nil || at.Epoch == before.Epoch {
			return false, err
		}
		if at.Epoch != before.Epoch+1 || !ours(at) {
			return false, moved(what + " " + j.resource)
		}
		j.at = at
		return true, nil
	}
}

// moved is the error of a worker that finds the mirror where it did not leave
// it.
func moved(op string) error {
	return &mirror.Error{
		Kind: mirror.KindFenced, Op: op,
		Message: "the mirror was moved by another worker or by hand; this one wrote nothing more",
		Hint:    "run again: it goes on from where the mirror stands",
	}
}
