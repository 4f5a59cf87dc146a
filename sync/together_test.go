package sync_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// behind is a world whose database is slow: what follows the first commit waits
// until a later page of users has been asked for, so that pages pile up.
type behind struct {
	*world
	commits []int64 // pages that were committed after each
}

// newBehind has eight pages of ten users. Once the given page is asked for, the two
// before it may still be on their way to those that wait.
func newBehind(t *testing.T, asked int, change ...func(*remotetest.Options)) *behind {
	t.Helper()
	b := &behind{world: newWorld(t, change...)}
	b.together = 16
	b.xiaoqu.Seed(80, 0, 0)
	b.hold(asked)
	return b
}

func (b *behind) hold(asked int) {
	b.commits = nil
	reached := make(chan struct{}, 16)
	b.xiaoqu.OnCall(func(c remotetest.Call) {
		if remotetest.OnPage("users", asked)(c) {
			reached <- struct{}{}
		}
	})
	b.watch = func(p sync.Progress) {
		b.commits = append(b.commits, p.Pages)
		if p.Pages < int64(asked) {
			reached <- <-reached
		}
	}
}

// state is the checkpoint as it is stored.
func (b *behind) state(t *testing.T) mirror.Checkpoint {
	t.Helper()
	at, err := b.mirror.Checkpoint(t.Context(), "users")
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestPagesThatWaitCommitTogether(t *testing.T) {
	b := newBehind(t, 8)
	ids := b.xiaoqu.IDs("users")
	// The same person on pages 3 and 4, which wait: of 4 is what counts.
	b.xiaoqu.Inject(remotetest.Fault{Match: remotetest.OnPage("users", 3), Do: remotetest.Mutate(func(p *remotetest.Page) {
		p.Records = append(p.Records, json.RawMessage(`{"id":`+ids[35]+`,"name":"early"}`), json.RawMessage(`{"name":"no id"}`))
	})})
	o := b.mustRun(t, "users")["users"]
	if len(b.commits) > 4 || b.commits[len(b.commits)-1] != 8 {
		t.Errorf("commits after %v pages: nothing was committed together", b.commits)
	}
	want := mirror.Counts{Received: 82, Inserted: 80, Duplicates: 1, Quarantined: 1}
	if diff := gocmp.Diff(want, o.Counts); diff != "" || o.Pages != 8 {
		t.Errorf("%d pages, %s", o.Pages, diff)
	}
	at := b.state(t)
	if at.SyncToken == "" || at.Cursor != "" || at.Pages != 0 {
		t.Errorf("the checkpoint is not the last page's: %+v", at)
	}
	b.equal(t, "users")
	for _, c := range b.xiaoqu.Calls() {
		if remotetest.OnPage("users", 3)(c) {
			if got := b.read(t, "select request_id from xiaoqu_sync.quarantine")[0][0]; got != c.RequestID {
				t.Errorf("the quarantine names call %s, and %s brought the record", got, c.RequestID)
			}
		}
	}
}

func TestAMirrorThatKeepsUpCommitsPageByPage(t *testing.T) {
	w := newWorld(t)
	w.together = 16
	w.xiaoqu.Seed(50, 0, 0)
	committed := make(chan struct{}, 8)
	var commits []int64
	w.watch = func(p sync.Progress) {
		commits = append(commits, p.Pages)
		committed <- struct{}{}
	}
	w.xiaoqu.OnCall(func(c remotetest.Call) {
		if c.Page > 1 {
			<-committed // the remote is the slower one
		}
	})
	w.mustRun(t, "users")
	if diff := gocmp.Diff([]int64{1, 2, 3, 4, 5}, commits); diff != "" {
		t.Error(diff)
	}
}

func TestABrokenPageAmongThoseThatWaitCommitsWhatCameBefore(t *testing.T) {
	b := newBehind(t, 5, func(o *remotetest.Options) { o.Strict = false })
	b.xiaoqu.Inject(remotetest.Fault{Match: remotetest.OnPage("users", 5), Do: remotetest.Mangle(remotetest.NoList)})
	o := b.run(t.Context(), "users")["users"]
	var e *remote.Error
	if !errors.As(o.Err, &e) || e.Code != remote.Malformed || o.Pages != 4 || o.Counts.Inserted != 40 {
		t.Fatalf("%s after %d pages and %d rows, %v", o.Result, o.Pages, o.Counts.Inserted, o.Err)
	}
	if at := b.state(t); at.Pages != 4 || at.Cursor == "" || at.SyncToken != "" {
		t.Errorf("the checkpoint is not page 4's: %+v", at)
	}
	b.xiaoqu.ClearFaults()
	b.watch = nil
	if o := b.mustRun(t, "users")["users"]; o.Mode != "resumed" || o.Pages != 4 {
		t.Errorf("%s, %d pages", o.Mode, o.Pages)
	}
	b.equal(t, "users")
}

func TestAStopAmongPagesThatWaitBeginsNoneOfThem(t *testing.T) {
	b := newBehind(t, 6)
	ctx, stop := context.WithCancel(t.Context())
	wait := b.watch
	b.watch = func(p sync.Progress) { wait(p); stop() }
	if o := b.run(ctx, "users")["users"]; o.Result != sync.Interrupted || o.Pages > 2 {
		t.Errorf("%s after %d pages, %v", o.Result, o.Pages, o.Err)
	}
	b.watch = nil
	b.mustRun(t, "users")
	b.equal(t, "users")
}

func TestAFullPassStagesTogetherWhatWaits(t *testing.T) {
	b := newBehind(t, 8)
	b.watch = nil
	b.mustRun(t, "users")
	b.xiaoqu.Edit("users", b.xiaoqu.IDs("users")[3], `{"name":"another"}`)
	b.xiaoqu.ExpireTokens("users")
	b.hold(8)
	o := b.mustRun(t, "users")["users"]
	if len(b.commits) > 4 || o.Pages != 8 || o.Counts.Staged != 80 || o.Counts.Updated != 1 || o.Counts.Unchanged != 79 {
		t.Errorf("commits after %v pages, %+v", b.commits, o.Counts)
	}
	b.equal(t, "users")
}

// TestARunInPiecesIsTheSameRun compares mirrors that were filled page by page and
// together, and in a first sync whose pages repeat what was there.
func TestARunInPiecesIsTheSameRun(t *testing.T) {
	repeat := func(w *world) {
		var before []json.RawMessage
		w.xiaoqu.Inject(remotetest.Fault{Times: -1, Match: remotetest.OnPage("users", 0), Do: remotetest.Mutate(func(p *remotetest.Page) {
			own := p.Records
			if p.Number > 1 {
				p.Records = append(append([]json.RawMessage(nil), before...), own...)
			}
			before = own
		})})
	}
	for _, together := range []int{1, 2, 16} {
		t.Run(fmt.Sprintf("%d together", together), func(t *testing.T) {
			w := newWorld(t, func(o *remotetest.Options) { o.Strict = false })
			w.together = together
			w.xiaoqu.Seed(77, 0, 0)
			for _, id := range w.xiaoqu.IDs("users")[:5] {
				w.xiaoqu.Delete("users", id)
			}
			repeat(w)
			o := w.mustRun(t, "users")["users"]
			c := o.Counts
			if c.Received != c.Stored()+c.Unchanged+c.Duplicates+c.Quarantined || c.Inserted != 72 || c.Deleted != 5 {
				t.Errorf("it does not add up: %+v", c)
			}
			w.equal(t, "users")
			if n := w.count(t, "select count(*) from xiaoqu.users where deleted_at is not null and delete_reason = 'tombstone'"); n != 5 {
				t.Errorf("%d tombstones", n)
			}
			if n := w.count(t, "select max(change_seq) from xiaoqu.users"); n != 77 {
				t.Errorf("the last change is number %d of 77", n)
			}
			if n := w.count(t, "select live_rows * 1000 + deleted_rows from xiaoqu_sync.state where resource = 'users'"); n != 72_005 {
				t.Errorf("the state row counts %d", n)
			}
		})
	}
}
