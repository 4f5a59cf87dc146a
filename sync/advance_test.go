package sync

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

func ids(ids ...string) iter.Seq[string] { return slices.Values(ids) }

// midRound is a checkpoint three pages into a round that began with a token.
func midRound() mirror.Checkpoint {
	return mirror.Checkpoint{
		Resource: "users", Phase: mirror.PhaseIncremental,
		SyncToken: "tok-1", Cursor: "cur-3", SnapshotID: "snap-1", Pages: 3, Epoch: 41,
	}
}

func TestAdvanceMovesTheCursorOnAMiddlePageAndTheTokenOnTheLast(t *testing.T) {
	cutoff := time.Date(2026, 9, 15, 2, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		page remote.Page
		want func(*mirror.Checkpoint)
	}{
		"a middle page moves the cursor and keeps the token": {
			remote.Page{HasMore: true, NextCursor: "cur-4", SnapshotID: "snap-1"},
			func(c *mirror.Checkpoint) { c.Cursor, c.Pages = "cur-4", 4 },
		},
		"an empty middle page is legal": {
			remote.Page{HasMore: true, NextCursor: "cur-4", SnapshotID: "snap-1"},
			func(c *mirror.Checkpoint) { c.Cursor, c.Pages = "cur-4", 4 },
		},
		"the last page moves the token and ends the round": {
			remote.Page{NextSyncToken: "tok-2", SnapshotID: "snap-1", DataCutoffAt: "2026-09-15T10:00:00+08:00"},
			func(c *mirror.Checkpoint) {
				c.SyncToken, c.Cursor, c.Pages, c.DataCutoffAt = "tok-2", "", 0, &cutoff
			},
		},
		"a full last page is the last": {
			remote.Page{NextSyncToken: "tok-2", SnapshotID: "snap-1"},
			func(c *mirror.Checkpoint) { c.SyncToken, c.Cursor, c.Pages = "tok-2", "", 0 },
		},
		"a page that does not repeat the snapshot stays in it": {
			remote.Page{HasMore: true, NextCursor: "cur-4"},
			func(c *mirror.Checkpoint) { c.Cursor, c.Pages = "cur-4", 4 },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := advance(midRound(), &c.page, newTrail(), time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			want := midRound()
			c.want(&want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("checkpoint (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAdvanceRefusesWhatTheContractRulesOut(t *testing.T) {
	seen := newTrail()
	seen.pass("cur-1")
	seen.pass("cur-2")
	cases := map[string]struct {
		page  remote.Page
		trail trail
		says  string
	}{
		"more to come and no cursor":        {remote.Page{HasMore: true}, newTrail(), "next_cursor is missing"},
		"the last page without a token":     {remote.Page{}, newTrail(), "next_sync_token is missing"},
		"cursor and token, more to come":    {remote.Page{HasMore: true, NextCursor: "c", NextSyncToken: "t"}, newTrail(), "both"},
		"cursor and token on the last page": {remote.Page{NextCursor: "c", NextSyncToken: "t"}, newTrail(), "both"},
		"a last page with a cursor alone":   {remote.Page{NextCursor: "c"}, newTrail(), "next_sync_token is missing"},
		"the cursor of the request":         {remote.Page{HasMore: true, NextCursor: "cur-3"}, newTrail(), "the request itself"},
		"a cursor from two pages ago":       {remote.Page{HasMore: true, NextCursor: "cur-1"}, seen, "already used"},
		"another snapshot in mid-round":     {remote.Page{HasMore: true, NextCursor: "c", SnapshotID: "snap-2"}, newTrail(), "snapshot changed"},
		"another snapshot on the last page": {remote.Page{NextSyncToken: "t", SnapshotID: "snap-2"}, newTrail(), "snapshot changed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.page.RequestID = "r-9"
			got, err := advance(midRound(), &c.page, c.trail, time.UTC)
			var e *remote.Error
			if !errors.As(err, &e) || e.Code != remote.Malformed || e.RequestID != "r-9" || e.Tool != "users.changes.list" {
				t.Fatalf("error %#v, want MALFORMED of users.changes.list with the request id", err)
			}
			if !strings.Contains(e.Message, c.says) {
				t.Errorf("message %q does not say %q", e.Message, c.says)
			}
			if diff := cmp.Diff(midRound(), got); diff != "" {
				t.Errorf("the checkpoint moved (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheFirstPageOfARoundMayBringANewSnapshot(t *testing.T) {
	at := mirror.Checkpoint{Resource: "users", SyncToken: "tok-1", SnapshotID: "snap-of-last-round"}
	got, err := advance(at, &remote.Page{HasMore: true, NextCursor: "c", SnapshotID: "snap-new"}, newTrail(), time.UTC)
	if err != nil || got.SnapshotID != "snap-new" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAFirstPageWithoutASnapshotLeavesTheRoundOpenToIt(t *testing.T) {
	at := mirror.Checkpoint{Resource: "users", SyncToken: "tok-1", SnapshotID: "snap-of-last-round"}
	at, err := advance(at, &remote.Page{HasMore: true, NextCursor: "c"}, newTrail(), time.UTC)
	if err != nil || at.SnapshotID != "" {
		t.Fatalf("got %+v, %v", at, err)
	}
	at, err = advance(at, &remote.Page{HasMore: true, NextCursor: "d", SnapshotID: "snap-new"}, newTrail(), time.UTC)
	if err != nil || at.SnapshotID != "snap-new" {
		t.Errorf("got %+v, %v", at, err)
	}
}

func TestNoveltyCountsIdlePagesUntilANewIDComes(t *testing.T) {
	var n novelty
	steps := []struct {
		ids  iter.Seq[string]
		idle int
	}{
		{ids("a", "b"), 0},
		{ids("a", "b"), 1},
		{ids(), 2},
		{ids("b", "a", "a"), 3},
		{ids("a", "c"), 0},
	}
	for i, s := range steps {
		n.meet(s.ids)
		if n.idle != s.idle {
			t.Fatalf("after page %d: %d idle pages, want %d", i+1, n.idle, s.idle)
		}
	}
	for range maxIdlePages {
		n.meet(ids())
	}
	if n.exhausted() {
		t.Errorf("exhausted after %d idle pages", n.idle)
	}
	if n.meet(ids()); !n.exhausted() {
		t.Errorf("not exhausted after %d idle pages", n.idle)
	}
}

func TestEveryCycleIsNoticed(t *testing.T) {
	for _, length := range []int{2, 3, 50} {
		at, seen := mirror.Checkpoint{Resource: "users"}, newTrail()
		pages := 0
		for {
			page := remote.Page{HasMore: true, NextCursor: "cur-" + string(rune('A'+pages%length))}
			seen.pass(at.Cursor)
			next, err := advance(at, &page, seen, time.UTC)
			if err != nil {
				break
			}
			at = next
			if pages++; pages > length {
				t.Fatalf("a cycle of %d went round", length)
			}
		}
	}
}

func FuzzAdvance(f *testing.F) {
	f.Add("", "", "", int64(0), "", "", "", "", true)
	f.Add("tok", "cur", "snap", int64(3), "cur2", "", "snap", "2026-09-15T10:00:00Z", true)
	f.Add("tok", "cur", "snap", int64(3), "", "tok2", "snap2", "x", false)
	f.Fuzz(func(t *testing.T, token, cursor, snapshot string, pages int64, nextCursor, nextToken, pageSnapshot, cutoff string, more bool) {
		at := mirror.Checkpoint{Resource: "users", SyncToken: token, Cursor: cursor, SnapshotID: snapshot, Pages: pages}
		page := remote.Page{NextCursor: nextCursor, NextSyncToken: nextToken, SnapshotID: pageSnapshot, DataCutoffAt: cutoff, HasMore: more}
		got, err := advance(at, &page, newTrail(), time.UTC)
		switch {
		case err != nil:
			if diff := cmp.Diff(at, got); diff != "" {
				t.Errorf("refused, and moved all the same:\n%s", diff)
			}
		case more && (got.SyncToken != token || got.Cursor == cursor || got.Cursor == ""):
			t.Errorf("a middle page: %+v → %+v", at, got)
		case !more && (got.SyncToken != nextToken || got.SyncToken == "" || got.Cursor != "" || got.Pages != 0):
			t.Errorf("a last page: %+v → %+v", at, got)
		}
	})
}
