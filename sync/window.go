package sync

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// What one resource may have fetched and not committed yet, beside the page that
// has just arrived. It bounds memory, the size of one commit, and what a crash
// repeats.
const (
	windowBytes = 4 << 20
	windowPages = 16
)

// window is the room for pages that wait for their commit.
type window struct {
	least int64 // that a page takes, so that there are never more than so many
	room  *semaphore.Weighted
}

// newWindow has room for so many pages; with one they are committed one by one.
func newWindow(pages int64) window {
	return window{least: windowBytes / pages, room: semaphore.NewWeighted(windowBytes)}
}

// of is the page's part of the room. A page that is larger than all of it waits
// until it has the window to itself.
func (w window) of(p *remote.Page) int64 { return min(max(p.Bytes, w.least), windowBytes) }

// enter waits for room for the page, and reports false when ctx ends before that.
func (w window) enter(ctx context.Context, p *remote.Page) bool {
	return w.room.Acquire(ctx, w.of(p)) == nil
}

// leave gives back what committed pages took.
func (w window) leave(room int64) { w.room.Release(room) }
