package sync_test

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// TestAnyHistoryEndsWithTheMirrorEqualToUpstream drives random histories of
// edits, deletions, purges, revivals, expiries, stops and rebuilds. However
// they go, runs that are left alone end with live rows equal to upstream's.
func TestAnyHistoryEndsWithTheMirrorEqualToUpstream(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		w.reset(t)
		w.xiaoqu.ClearFaults()
		m := &history{world: w, t: t, rt: rt}
		m.clear()
		rt.Repeat(map[string]func(*rapid.T){
			"put": m.put, "edit": m.edit, "delete": m.remove, "purge": m.purge, "revive": m.revive,
			"expire": m.expire, "expire the round": m.expireRound, "sync": m.sync, "stopped sync": m.stoppedSync,
			"rebuild": m.rebuild, "lose staging": m.loseStaging,
		})
		m.settle()
	})
}

// history is what happens upstream and to the mirror, and what both know of it.
type history struct {
	*world
	t       *testing.T
	rt      *rapid.T
	next    int
	deleted []string
	purged  bool // upstream has lost a record that no tombstone speaks of
}

// clear takes upstream's records of the last history away.
func (h *history) clear() {
	for _, id := range h.xiaoqu.IDs("users") {
		h.xiaoqu.Purge("users", id)
	}
	for id := range h.xiaoqu.All("users") {
		h.xiaoqu.Purge("users", id)
	}
}

func (h *history) put(rt *rapid.T) {
	for range rapid.IntRange(1, 15).Draw(rt, "records") {
		h.next++
		h.xiaoqu.Put("users", fmt.Sprint(h.next), fmt.Sprintf(`{"name":"%d"}`, h.next))
	}
}

// one draws a live record's id.
func (h *history) one(rt *rapid.T) string {
	ids := h.xiaoqu.IDs("users")
	if len(ids) == 0 {
		rt.Skip("nothing is there")
	}
	return rapid.SampledFrom(ids).Draw(rt, "id")
}

func (h *history) edit(rt *rapid.T) {
	h.xiaoqu.Edit("users", h.one(rt), fmt.Sprintf(`{"name":"edited %d"}`, rapid.IntRange(0, 99).Draw(rt, "edit")))
}

func (h *history) remove(rt *rapid.T) {
	id := h.one(rt)
	h.xiaoqu.Delete("users", id)
	h.deleted = append(h.deleted, id)
}

func (h *history) purge(rt *rapid.T) {
	h.xiaoqu.Purge("users", h.one(rt))
	h.purged = true
}

func (h *history) revive(rt *rapid.T) {
	if len(h.deleted) == 0 {
		rt.Skip("nothing is deleted")
	}
	h.xiaoqu.Revive("users", h.deleted[len(h.deleted)-1])
	h.deleted = h.deleted[:len(h.deleted)-1]
}

func (h *history) expire(*rapid.T)      { h.xiaoqu.ExpireTokens("users") }
func (h *history) expireRound(*rapid.T) { h.xiaoqu.ExpireRounds("users") }

func (h *history) sync(rt *rapid.T) {
	if o := h.run(h.t.Context(), "users")["users"]; o.Result != sync.Synced {
		rt.Fatalf("sync: %s, %v", o.Result, o.Err)
	}
}

func (h *history) stoppedSync(rt *rapid.T) {
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	pages := int64(rapid.IntRange(1, 3).Draw(rt, "pages"))
	h.watch = func(p sync.Progress) {
		if p.Pages >= pages {
			cancel()
		}
	}
	defer func() { h.watch = nil }()
	if o := h.run(ctx, "users")["users"]; o.Result != sync.Synced && o.Result != sync.Interrupted {
		rt.Fatalf("stopped sync: %s, %v", o.Result, o.Err)
	}
}

func (h *history) rebuild(rt *rapid.T) {
	if o := h.task(h.t.Context(), (*sync.Engine).Rebuild, "users")["users"]; o.Result != sync.Synced {
		rt.Fatalf("rebuild: %s, %v", o.Result, o.Err)
	}
	h.purged = false
}

func (h *history) loseStaging(*rapid.T) {
	h.read(h.t, "truncate xiaoqu_sync.staging_users")
}

// settle lets the mirror come to rest: a first run ends the round that was
// stopped, at that round's snapshot, and a second one brings what came since. A
// purge leaves no trace in increments (contract §6 knows tombstones only), so
// after one the token is made to expire.
func (h *history) settle() {
	if h.purged {
		h.xiaoqu.ExpireTokens("users")
	}
	h.mustRun(h.rt, "users")
	h.mustRun(h.rt, "users")
	h.equal(h.rt, "users")
}
