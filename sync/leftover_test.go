package sync_test

import (
	"context"
	"errors"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// stopAfter does a task and stops it after some pages.
func (w *world) stopAfter(t *testing.T, pages int64, task func(*sync.Engine, context.Context, []string) []sync.Outcome) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.watch = func(p sync.Progress) {
		if p.Pages == pages {
			cancel()
		}
	}
	defer func() { w.watch = nil }()
	if o := w.task(ctx, task, "users")["users"]; o.Result != sync.Interrupted {
		t.Fatalf("%s, %v", o.Result, o.Err)
	}
}

func TestAVerificationThatWasStoppedAndOvertakenFindsNoDrift(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(60, 0, 0)
	w.mustRun(t, "users")
	w.stopAfter(t, 4, (*sync.Engine).Verify)
	w.xiaoqu.Edit("users", w.xiaoqu.IDs("users")[0], `{"name":"overtaken"}`)
	w.xiaoqu.Put("users", "77", `{"name":"new"}`)
	w.mustRun(t, "users")
	if o := w.task(t.Context(), (*sync.Engine).Verify, "users")["users"]; o.Result != sync.Verified {
		t.Errorf("%s %+v, %v", o.Result, o.Difference, o.Err)
	}
}

func TestAVerificationOfADeadPositionAsksOnce(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(60, 0, 0)
	w.mustRun(t, "users")
	w.xiaoqu.ExpireTokens("users")
	before := w.xiaoqu.Stats().Pages["users"]
	o := w.task(t.Context(), (*sync.Engine).Verify, "users")["users"]
	var e *remote.Error
	if !errors.As(o.Err, &e) || e.Code != remote.CursorExpired {
		t.Errorf("%s, %v", o.Result, o.Err)
	}
	if n := w.xiaoqu.Stats().Pages["users"] - before; n > 7 {
		t.Errorf("%d pages for one pass of 6", n)
	}
}

func TestAPassThatTheRemoteRefusesToGoOnWithBeginsAgain(t *testing.T) {
	for name, do := range map[string]remotetest.Effect{
		"another snapshot": remotetest.Mutate(func(p *remotetest.Page) { p.SnapshotID = "another" }),
		"invalid argument": remotetest.Fail(remotetest.Failure{Code: remotetest.InvalidArgument}),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.xiaoqu.Seed(60, 0, 0)
			w.mustRun(t, "users")
			w.xiaoqu.ExpireTokens("users")
			w.stopAfter(t, 3, (*sync.Engine).Sync)
			w.xiaoqu.Inject(remotetest.Fault{Match: remotetest.OnPage("users", 4), Do: do})
			w.mustRun(t, "users")
			w.equal(t, "users")
		})
	}
}

func TestAnAbortWithoutATokenDropsWhatIsStaged(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(60, 0, 0)
	w.mustRun(t, "users")
	w.xiaoqu.ExpireTokens("users")
	w.stopAfter(t, 3, (*sync.Engine).Sync)
	if o := w.task(t.Context(), (*sync.Engine).Abort, "users")["users"]; o.Result != sync.Aborted {
		t.Fatalf("%s, %v", o.Result, o.Err)
	}
	if n := w.count(t, "select count(*) from xiaoqu_sync.passes"); n != 0 {
		t.Error("the pass is still there")
	}
	if o := w.mustRun(t, "users")["users"]; o.Mode != "rebuild" {
		t.Errorf("the run after: %+v", o)
	}
	w.equal(t, "users")
}

func TestAHeldResultGoesWithTheRowsThatItWasFor(t *testing.T) {
	w := newWorld(t)
	w.limit = 200
	w.xiaoqu.Seed(150, 0, 0)
	w.mustRun(t, "users")
	for _, id := range w.xiaoqu.IDs("users")[:100] {
		w.xiaoqu.Purge("users", id)
	}
	w.xiaoqu.ExpireTokens("users")
	if o := w.run(t.Context(), "users")["users"]; o.Result != sync.Held {
		t.Fatalf("%s, %v", o.Result, o.Err)
	}
	w.read(t, "truncate xiaoqu.users")
	w.mustRun(t, "users")
	w.xiaoqu.ExpireTokens("users")
	if o := w.mustRun(t, "users")["users"]; o.Mode != "rebuild" || o.Counts.Stored() != 0 {
		t.Errorf("%+v", o)
	}
	w.equal(t, "users")
}

func TestARebuildWhoseMirrorWasDamagedMeanwhileBeginsAgain(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(60, 0, 0)
	w.mustRun(t, "users")
	w.xiaoqu.ExpireTokens("users")
	w.stopAfter(t, 3, (*sync.Engine).Sync)
	w.read(t, "delete from xiaoqu_sync.state where resource = 'users'")
	w.read(t, "delete from xiaoqu.users where change_seq = (select max(change_seq) from xiaoqu.users)")
	w.mustRun(t, "users")
	w.equal(t, "users")
}

func TestAHeldResultWhoseStagingIsLostIsStagedAnew(t *testing.T) {
	w := newWorld(t)
	w.limit = 200
	w.xiaoqu.Seed(150, 0, 0)
	w.mustRun(t, "users")
	for _, id := range w.xiaoqu.IDs("users")[:100] {
		w.xiaoqu.Purge("users", id)
	}
	w.xiaoqu.ExpireTokens("users")
	if o := w.run(t.Context(), "users")["users"]; o.Result != sync.Held {
		t.Fatalf("%s, %v", o.Result, o.Err)
	}
	w.read(t, "delete from xiaoqu_sync.staging_users")
	if o := w.task(t.Context(), (*sync.Engine).Accept, "users")["users"]; o.Result != sync.Failed || !errors.Is(o.Err, mirror.ErrStagingLost) {
		t.Fatalf("accepted: %s, %v", o.Result, o.Err)
	}
	if o := w.run(t.Context(), "users")["users"]; o.Result != sync.Held || o.Difference == nil || o.Difference.Absent != 100 {
		t.Fatalf("the run after: %s, %v, %+v", o.Result, o.Err, o.Difference)
	}
	if o := w.task(t.Context(), (*sync.Engine).Accept, "users")["users"]; o.Result != sync.Synced {
		t.Fatalf("accepted once more: %s, %v", o.Result, o.Err)
	}
	w.equal(t, "users")
}
