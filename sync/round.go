package sync

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// Progress is where a resource's round is, after each committed page.
type Progress struct {
	Resource string
	Pages    int64 // committed by this run
	Records  int64 // received by this run
}

// round is one resource's pages, from where the checkpoint stands to the last.
type round struct {
	resource string
	source   Source
	ledger   Ledger
	caller   *caller
	limit    int            // records a page
	asking   int            // records to ask for next: less after a page that was too large; the fetcher's own
	zone     *time.Location // of times in records that name none
	log      *zap.Logger
	watch    func(Progress)
	run      mirror.Run // the run's counters, kept up to date for the run log
	at       mirror.Checkpoint
}

// fetched is a page and the checkpoint that it leads to, or why there is none.
type fetched struct {
	page  *remote.Page
	batch *mirror.Batch
	after mirror.Checkpoint
	err   error
}

// follow works through the round. While a page commits the next one is
// already being fetched, never more than that one: a crash repeats at most
// two pages. No transaction is open while the remote is asked.
func (r *round) follow(ctx context.Context) error {
	fetchCtx, stop := context.WithCancel(ctx)
	pages := r.pages(fetchCtx)
	defer func() {
		stop()
		for range pages { // the fetcher ends before the round does
		}
	}()
	for f := range pages {
		if f.err != nil {
			return r.expired(ctx, f.err)
		}
		if err := r.store(ctx, f); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// pages fetches one page after the other and closes the channel behind the
// last one or the first error.
func (r *round) pages(ctx context.Context) <-chan fetched {
	out := make(chan fetched)
	at := r.at
	go func() {
		defer close(out)
		seen := newTrail()
		for more := true; more; {
			var f fetched
			if err := guard(func() error { f = r.fetch(ctx, at, &seen); return nil }); err != nil {
				f.err = err
			}
			select {
			case out <- f:
			case <-ctx.Done():
				return
			}
			more = f.err == nil && f.page.HasMore
			at = f.after
		}
	}()
	return out
}

func (r *round) fetch(ctx context.Context, at mirror.Checkpoint, seen *trail) fetched {
	var page *remote.Page
	used := r.asking
	err := r.caller.call(ctx, r.asking, func(ctx context.Context, limit int) (err error) {
		used = limit
		page, err = r.source.Changes(ctx, remote.Query{
			Resource: r.resource, SyncToken: at.SyncToken, Cursor: at.Cursor, Limit: limit,
		})
		return err
	})
	if err != nil {
		return fetched{err: err}
	}
	r.asking = min(2*used, r.limit) // after a page that was too large, find the way back up
	for _, notice := range page.Notices {
		r.log.Warn("the remote sent a notice", zap.String("notice", notice), zap.String("request_id", page.RequestID))
	}
	batch := mirror.NewBatch(page.Records, r.zone)
	page.Records = nil // the batch owns what is needed of them
	seen.pass(at.Cursor, batch.IDs())
	after, err := advance(at, page, *seen, r.zone)
	return fetched{page: page, batch: batch, after: after, err: err}
}

// store commits a page with its checkpoint and counts it.
func (r *round) store(ctx context.Context, f fetched) error {
	began := time.Now()
	at, counts, err := r.commit(ctx, mirror.Step{
		Before: r.at, After: f.after, Batch: f.batch,
		RunID: r.run.ID, RequestID: f.page.RequestID, Last: !f.page.HasMore,
	})
	if err != nil {
		return err
	}
	r.at = at
	r.run.Pages++
	r.run.RequestID = f.page.RequestID
	r.run.Counts = r.run.Counts.Add(counts)
	r.log.Debug("page committed",
		zap.Int64("page", r.run.Pages), zap.Int64("received", counts.Received), zap.Int64("stored", counts.Stored()),
		zap.String("request_id", f.page.RequestID), zap.Duration("took", time.Since(began)))
	if r.watch != nil {
		r.watch(Progress{Resource: r.resource, Pages: r.run.Pages, Records: r.run.Counts.Received})
	}
	return nil
}

// commit writes a step, again after faults that time heals. When the answer
// to a commit was lost, the epoch tells whether the step had landed: it is
// then neither doubled nor reported as failed.
func (r *round) commit(ctx context.Context, s mirror.Step) (mirror.Checkpoint, mirror.Counts, error) {
	t, b := tried{}, newBackoff()
	finish, done := graceful(ctx, commitGrace)
	defer done()
	for {
		at, counts, err := r.ledger.Commit(finish, s)
		for err != nil {
			if ctx.Err() != nil {
				return at, counts, context.Cause(ctx)
			}
			if judgeCommit(err, t) != retry {
				return at, counts, err
			}
			t.waits++
			r.run.Retries++
			d := pause(b, nil)
			r.log.Warn("the page could not be committed; waiting to try again", zap.Duration("wait", d), zap.Error(err))
			if err := wait(ctx, d); err != nil {
				return at, counts, err
			}
			at, err = r.ledger.Checkpoint(ctx, r.resource)
		}
		switch {
		case at.Epoch == s.Before.Epoch:
			continue // nothing landed
		case at.Epoch == s.Before.Epoch+1 && at.Cursor == s.After.Cursor && at.SyncToken == s.After.SyncToken:
			return at, counts, nil
		default:
			return at, counts, &mirror.Error{
				Kind: mirror.KindFenced, Op: "commit " + r.resource,
				Message: "the mirror was moved by another worker or by hand; this page wrote nothing", Hint: "run again: it goes on from where the mirror stands",
			}
		}
	}
}

// expired makes SYNC_CURSOR_EXPIRED durable before anything else happens, so
// that a crash cannot forget it. Other errors pass.
func (r *round) expired(ctx context.Context, err error) error {
	if judge(err, tried{}) != rebuild {
		return err
	}
	at, restartErr := r.ledger.Restart(ctx, r.at, string(remote.CursorExpired))
	if restartErr != nil {
		return errors.Join(restartErr, err)
	}
	r.at = at
	r.log.Warn("the remote no longer knows our position; the resource needs a rebuild", zap.Error(err))
	return err
}
