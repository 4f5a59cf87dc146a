package sync

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// Progress is how far a resource's run is, after each commit.
type Progress struct {
	Resource string
	Pages    int64 // committed by this run
	Records  int64 // received by this run
	// Took is how long the commit took, with all tries, of one page or of several
	// that had waited for it.
	Took time.Duration
}

// walk reads a resource's pages one after the other. While a page commits the
// next ones are already being fetched, and what waits when the commit is done is
// committed together: a mirror that keeps up commits page by page, one that is
// behind saves the price of commits. What may wait is bounded (window); a crash
// repeats at most that. No transaction is open while the remote is asked.
type walk struct {
	resource string
	source   Source
	caller   *caller
	limit    int            // records a page
	asking   int            // records to ask for next: less after a page that was too large; the fetcher's own
	together int64          // pages that may wait for one commit
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

// stretch is consecutive pages that commit together, and where the last one leads.
type stretch struct {
	batch     *mirror.Batch
	after     mirror.Checkpoint
	last      bool   // the round ends with it
	requestID string // of the last page's call
	pages     int64
	notices   int64
	room      int64 // that it takes of the window
}

// follow hands all pages from at to the last one to store, in order.
func (w *walk) follow(ctx context.Context, at mirror.Checkpoint, store func(context.Context, stretch) error) error {
	fetchCtx, stop := context.WithCancel(ctx)
	window := newWindow(w.together)
	pages := w.judged(fetchCtx, w.pages(fetchCtx, at, window))
	defer func() {
		stop()
		for range pages { // fetcher and reader end before the walk does
		}
	}()
	for f := range pages {
		s, err := gather(f, pages, window)
		if ctx.Err() != nil { // pages that wait are not begun any more
			return context.Cause(ctx)
		}
		if s.pages > 0 { // what came before a broken page is good
			if err := store(ctx, s); err != nil {
				return err
			}
			window.leave(s.room)
		}
		if err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// gather takes a page and those that wait behind it, up to an error.
func gather(f fetched, waiting <-chan fetched, window window) (stretch, error) {
	var s stretch
	var batches []*mirror.Batch
	for more := true; more && f.err == nil; {
		batches = append(batches, f.batch)
		s.after, s.last, s.requestID = f.after, !f.page.HasMore, f.page.RequestID
		s.pages++
		s.notices += int64(len(f.page.Notices))
		s.room += window.of(f.page)
		select {
		case f, more = <-waiting:
		default:
			more = false
		}
	}
	if len(batches) > 0 {
		s.batch = mirror.Join(batches)
	}
	return s, f.err
}

// pages fetches one page after the other, as far ahead as there is room, and
// closes the channel behind the last one or the first error.
func (w *walk) pages(ctx context.Context, at mirror.Checkpoint, window window) <-chan fetched {
	out := make(chan fetched)
	go func() {
		defer close(out)
		seen := newTrail()
		for more := true; more; {
			var f fetched
			if err := guard(func() error { f = w.fetch(ctx, at, seen); return nil }); err != nil {
				f.err = err
			}
			if f.err == nil && !window.enter(ctx, f.page) {
				return // the walk has ended
			}
			if !handOn(ctx, out, f) {
				return
			}
			more = f.err == nil && f.page.HasMore
			at = f.after
		}
	}()
	return out
}

// judged reads the pages' records. It is done here and not while fetching, so
// that the next page is already on its way, nor while committing, so that the
// database need not wait for it.
func (w *walk) judged(ctx context.Context, pages <-chan fetched) <-chan fetched {
	out := make(chan fetched, windowPages)
	go func() {
		defer close(out)
		defer func() {
			for range pages { // the fetcher ends first
			}
		}()
		var n novelty
		for f := range pages {
			if f.err == nil {
				f.err = guard(func() error { return w.read(&f, &n) })
			}
			if !handOn(ctx, out, f) || f.err != nil {
				return
			}
		}
	}()
	return out
}

// handOn gives a page to the next one, and reports false when nobody wants it any more.
func handOn(ctx context.Context, out chan<- fetched, f fetched) bool {
	select {
	case out <- f:
		return true
	case <-ctx.Done():
		return false
	}
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

// read judges a page's records.
func (w *walk) read(f *fetched, n *novelty) error {
	f.batch = mirror.NewBatch(f.page.Records, w.zone)
	f.batch.RequestID = f.page.RequestID
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

// count notes pages that are committed.
func (w *walk) count(s stretch, c mirror.Counts, took time.Duration) {
	w.run.Pages += s.pages
	w.run.RequestID = s.requestID
	w.run.Notices += s.notices
	w.run.Counts = w.run.Counts.Add(c)
	w.log.Debug("committed",
		zap.Int64("pages", s.pages), zap.Int64("of_run", w.run.Pages), zap.Int64("received", c.Received), zap.Int64("stored", c.Stored()),
		zap.String("request_id", s.requestID), zap.Duration("took", took))
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
