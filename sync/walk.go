package sync

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// Progress is how far a resource's run is, after each committed page.
type Progress struct {
	Resource string
	Pages    int64 // committed by this run
	Records  int64 // received by this run
	// Took is how long the page took to commit, with all tries.
	Took time.Duration
}

// walk reads a resource's pages one after the other. While a page commits the
// next one is already being fetched, never more than that one: a crash repeats
// at most two pages. No transaction is open while the remote is asked.
type walk struct {
	resource string
	source   Source
	caller   *caller
	limit    int            // records a page
	asking   int            // records to ask for next: less after a page that was too large; the fetcher's own
	zone     *time.Location // of times in records that name none
	log      *zap.Logger
	watch    func(Progress)
	run      mirror.Run // the run's counters, kept up to date for the run log
	spoke    time.Time  // when the last line about progress was logged
}

// fetched is a page and the checkpoint that it leads to, or why there is none.
type fetched struct {
	page  *remote.Page
	batch *mirror.Batch // its records, once they are read
	after mirror.Checkpoint
	err   error
}

// follow hands every page from at to the last one to store, in order.
func (w *walk) follow(ctx context.Context, at mirror.Checkpoint, store func(context.Context, fetched) error) error {
	fetchCtx, stop := context.WithCancel(ctx)
	pages := w.pages(fetchCtx, at)
	defer func() {
		stop()
		for range pages { // the fetcher ends before the walk does
		}
	}()
	var n novelty
	for f := range pages {
		switch {
		case ctx.Err() != nil: // a page that waits is not begun any more
			return context.Cause(ctx)
		case f.err != nil:
			return f.err
		}
		if err := w.read(&f, &n); err != nil {
			return err
		}
		if err := store(ctx, f); err != nil {
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
func (w *walk) pages(ctx context.Context, at mirror.Checkpoint) <-chan fetched {
	out := make(chan fetched)
	go func() {
		defer close(out)
		seen := newTrail()
		for more := true; more; {
			var f fetched
			if err := guard(func() error { f = w.fetch(ctx, at, seen); return nil }); err != nil {
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

func (w *walk) fetch(ctx context.Context, at mirror.Checkpoint, seen trail) fetched {
	var page *remote.Page
	used := w.asking
	err := w.caller.call(ctx, w.asking, func(ctx context.Context, limit int) (err error) {
		used = limit
		page, err = w.source.Changes(ctx, remote.Query{
			Resource: w.resource, SyncToken: at.SyncToken, Cursor: at.Cursor, Limit: limit,
		})
		return err
	})
	if err != nil {
		return fetched{err: err}
	}
	w.asking = min(2*used, w.limit) // after a page that was too large, find the way back up
	for _, notice := range page.Notices {
		w.log.Warn("the remote sent a notice", zap.String("notice", notice), zap.String("request_id", page.RequestID))
	}
	seen.pass(at.Cursor)
	after, err := advance(at, page, seen, w.zone)
	return fetched{page: page, after: after, err: err}
}

// read judges a page's records. It is done here and not while fetching, so that
// the next page is already on its way.
func (w *walk) read(f *fetched, n *novelty) error {
	f.batch = mirror.NewBatch(f.page.Records, w.zone)
	f.page.Records = nil // the batch owns what is needed of them
	if !f.page.HasMore {
		return nil // no circle ends here, and a tick without changes needs no filter
	}
	n.meet(f.batch.IDs())
	if n.exhausted() {
		return malformed(w.resource, f.page.RequestID,
			fmt.Sprintf("%d pages in a row brought no new record and still has_more is true", n.idle))
	}
	return nil
}

// count notes a page that is committed.
func (w *walk) count(f fetched, c mirror.Counts, took time.Duration) {
	w.run.Pages++
	w.run.RequestID = f.page.RequestID
	w.run.Notices += int64(len(f.page.Notices))
	w.run.Counts = w.run.Counts.Add(c)
	w.log.Debug("page committed",
		zap.Int64("page", w.run.Pages), zap.Int64("received", c.Received), zap.Int64("stored", c.Stored()),
		zap.String("request_id", f.page.RequestID), zap.Duration("took", took))
	if w.watch != nil {
		w.watch(Progress{Resource: w.resource, Pages: w.run.Pages, Records: w.run.Counts.Received, Took: took})
	}
	if now := time.Now(); now.Sub(w.spoke) >= progressEvery {
		w.spoke = now
		w.log.Info("still at work", zap.Int64("pages", w.run.Pages), zap.Int64("records", w.run.Counts.Received),
			zap.Duration("since", now.Sub(w.run.StartedAt).Round(time.Second)))
	}
}

// progressEvery is how often a long run says in the log that it is alive.
const progressEvery = time.Minute

// again is for persist, of what may simply be done once more.
func again(context.Context) (landed bool, err error) { return false, nil }

// persist runs a write, again after faults that time heals. When the answer to
// a write was lost, landed tells whether it had been done: it is then neither
// repeated nor reported as failed. A page in hand may end after a stop.
func (w *walk) persist(ctx context.Context, write func(context.Context) error, landed func(context.Context) (bool, error)) error {
	t, b := tried{}, w.caller.pace.commitBackoff()
	finish, done := graceful(ctx, commitGrace)
	defer done()
	for {
		err := write(finish)
		if err == nil {
			return nil
		}
		for written := true; written; {
			if judgeCommit(err, t) != retry || ctx.Err() != nil {
				return orCause(ctx, err)
			}
			t.waits++
			w.run.Retries++
			d := w.caller.pace.pause(b, nil)
			w.log.Warn("the mirror could not be written; waiting to try again", zap.Duration("wait", d), zap.Error(err))
			if err := wait(ctx, d); err != nil {
				return err
			}
			if written, err = landed(ctx); err == nil && written {
				return nil
			}
			written = err != nil // not known yet: ask again
		}
	}
}

// orCause is why ctx ended, when it did, and err otherwise.
func orCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
