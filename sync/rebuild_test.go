package sync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// state is all that must not change under a reader who follows along.
func (w *world) rows(t testing.TB, resource string) string {
	t.Helper()
	return fmt.Sprint(w.read(t, "select id, xmin, change_seq, deleted_at from xiaoqu."+resource+" order by id"))
}

func TestAnExpiredPositionIsRebuiltInTheSameRun(t *testing.T) {
	const last = 3 // pages of an increment of 25 changes
	for page := 1; page <= last; page++ {
		t.Run(fmt.Sprintf("page %d", page), func(t *testing.T) {
			w := newWorld(t)
			w.xiaoqu.Seed(60, 5, 0)
			w.mustRun(t, "users", "properties")
			ids := w.xiaoqu.IDs("users")
			w.xiaoqu.Delete("users", ids[0])
			w.mustRun(t, "users")
			first := w.read(t, "select deleted_at from xiaoqu.users where id = '"+ids[0]+"'")
			for _, id := range ids[1:26] {
				w.xiaoqu.Edit("users", id, `{"name":"改"}`)
			}
			w.xiaoqu.Purge("users", ids[30]) // gone without a tombstone
			w.xiaoqu.Inject(remotetest.Fault{
				Match: remotetest.OnPage("users", page),
				Do:    remotetest.Fail(remotetest.Failure{Code: remotetest.SyncCursorExpired}),
			})
			by := w.mustRun(t, "users", "properties")
			if o := by["users"]; o.Mode != "rebuild" || o.Reason != string(remote.CursorExpired) || o.Counts.Deleted != 1 {
				t.Errorf("users: %+v", o)
			}
			if o := by["properties"]; o.Mode != "incremental" {
				t.Errorf("properties: %+v", o)
			}
			w.equal(t, "users", "properties")
			if again := w.read(t, "select deleted_at from xiaoqu.users where id = '"+ids[0]+"'"); again[0][0] != first[0][0] {
				t.Errorf("the first deletion time moved from %s to %s", first[0][0], again[0][0])
			}
			reasons := w.read(t, "select id, delete_reason from xiaoqu.users where deleted_at is not null order by delete_reason")
			if len(reasons) != 2 || reasons[0][1] != "absent" || reasons[0][0] != ids[30] || reasons[1][1] != "tombstone" {
				t.Errorf("deletions: %v", reasons)
			}
			w.xiaoqu.Edit("users", ids[2], `{"name":"after"}`)
			if o := w.mustRun(t, "users")["users"]; o.Mode != "incremental" || o.Reason != "" || o.Counts.Updated != 1 {
				t.Errorf("the run after: %+v", o)
			}
		})
	}
}

func TestAPassThatExpiresBeginsAgainABoundedNumberOfTimes(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(35, 0, 0)
	w.mustRun(t, "users")
	before := w.rows(t, "users")
	w.xiaoqu.ExpireTokens("users")
	w.xiaoqu.Inject(remotetest.Fault{
		Match: remotetest.OnPage("users", 2), Times: -1,
		Do: remotetest.Fail(remotetest.Failure{Code: remotetest.SyncCursorExpired}),
	})
	o := w.run(t.Context(), "users")["users"]
	var e *remote.Error
	if o.Result != sync.Failed || !errors.As(o.Err, &e) || e.Code != remote.CursorExpired || e.RequestID == "" {
		t.Fatalf("%s, %v", o.Result, o.Err)
	}
	if n := w.xiaoqu.Stats().Calls["users.changes.list"]; n > 4+1+2*4 {
		t.Errorf("%d calls: a hot loop", n)
	}
	if w.rows(t, "users") != before {
		t.Error("readers saw something of it")
	}
	w.xiaoqu.ClearFaults()
	w.mustRun(t, "users")
	if w.rows(t, "users") != before {
		t.Error("a rebuild of an unchanged upstream wrote rows")
	}
	w.equal(t, "users")
}

func TestTwoRebuildsOfAnUnchangedUpstreamWriteNothing(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(60, 30, 30)
	w.xiaoqu.Delete("users", w.xiaoqu.IDs("users")[3])
	w.mustRun(t, all...)
	before := map[string]string{}
	for _, r := range all {
		before[r] = w.rows(t, r)
	}
	for range 2 {
		o := w.task(t.Context(), (*sync.Engine).Rebuild, "users")["users"]
		if o.Result != sync.Synced || o.Counts.Stored() != 0 || o.Counts.Unchanged != 60 {
			t.Fatalf("%+v, %v", o, o.Err)
		}
		for _, r := range all {
			if w.rows(t, r) != before[r] {
				t.Errorf("%s: rows were written", r)
			}
		}
	}
	w.mustRun(t, all...)
	w.equal(t, all...)
}

func TestARebuildGoesOnWhereItWasStopped(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(95, 0, 0)
	w.mustRun(t, "users")
	ids := w.xiaoqu.IDs("users")
	for _, id := range ids[:7] {
		w.xiaoqu.Purge("users", id)
	}
	w.xiaoqu.ExpireTokens("users")
	fetched := w.xiaoqu.Stats().Pages["users"]
	before := w.rows(t, "users")
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		w.watch = func(p sync.Progress) {
			if p.Pages == 2 {
				cancel()
			}
		}
		if o := w.run(ctx, "users")["users"]; o.Result != sync.Interrupted {
			t.Fatalf("%s, %v", o.Result, o.Err)
		}
		if w.rows(t, "users") != before {
			t.Fatal("readers saw something of an unfinished rebuild")
		}
	}
	w.watch = nil
	o := w.mustRun(t, "users")["users"]
	if o.Counts.Deleted != 7 {
		t.Errorf("deleted %d, want 7", o.Counts.Deleted)
	}
	w.equal(t, "users")
	if pages := w.xiaoqu.Stats().Pages["users"] - fetched; pages > 9+2*3 {
		t.Errorf("%d pages fetched for 9 and three stops", pages)
	}
}

func TestTheFuseHoldsARebuildThatWouldDeleteTooMuch(t *testing.T) {
	w := newWorld(t)
	w.limit = 200
	w.xiaoqu.Seed(1000, 3, 0)
	w.mustRun(t, "users", "properties")
	before := w.rows(t, "users")
	for _, id := range w.xiaoqu.IDs("users") {
		w.xiaoqu.Purge("users", id)
	}
	w.xiaoqu.ExpireTokens("users")
	for range 2 { // found held, the second time without asking again
		o := w.run(t.Context(), "users")["users"]
		if o.Result != sync.Held || o.Err == nil {
			t.Fatalf("%s, %v", o.Result, o.Err)
		}
	}
	if w.rows(t, "users") != before {
		t.Error("readers saw something of it")
	}
	status, err := w.mirror.Status(t.Context(), []string{"users"})
	if err != nil {
		t.Fatal(err)
	}
	if p := status.Resources[0].Pass; p == nil || p.Difference == nil || p.Difference.Absent != 1000 || len(p.Difference.Samples["absent"]) == 0 {
		t.Errorf("status does not say what is held: %+v", p)
	}
	o := w.task(t.Context(), (*sync.Engine).Accept, "users")["users"]
	if o.Result != sync.Synced || o.Counts.Deleted != 1000 {
		t.Fatalf("accepted: %+v, %v", o, o.Err)
	}
	w.equal(t, "users")
	w.mustRun(t, "users")
	if o := w.task(t.Context(), (*sync.Engine).Accept, "users")["users"]; !errors.Is(o.Err, sync.ErrNothingHeld) {
		t.Errorf("accepted twice: %v", o.Err)
	}
}

func TestADryRunChangesNothingUntilItIsApplied(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(40, 0, 0)
	w.mustRun(t, "users")
	ids := w.xiaoqu.IDs("users")
	w.read(t, "update xiaoqu.users set record = record || '{\"name\":\"damaged\"}', content_hash = '' where id = '"+ids[0]+"'")
	w.read(t, "delete from xiaoqu.users where id = '"+ids[1]+"'")
	before := w.rows(t, "users")
	o := w.task(t.Context(), (*sync.Engine).Plan, "users")["users"]
	if o.Result != sync.Planned || o.Difference.Updated != 1 || o.Difference.Inserted != 1 || o.Difference.Fields["name"] != 1 {
		t.Fatalf("%+v %+v, %v", o, o.Difference, o.Err)
	}
	if w.rows(t, "users") != before {
		t.Error("a dry run wrote rows")
	}
	w.mustRun(t, "users") // nothing changed upstream: the plan stands
	apply := func(e *sync.Engine, ctx context.Context, rs []string) []sync.Outcome { return e.Apply(ctx, rs, false) }
	o = w.task(t.Context(), apply, "users")["users"]
	if o.Result != sync.Synced || o.Counts.Stored() != 2 {
		t.Fatalf("applied: %+v, %v", o, o.Err)
	}
	w.equal(t, "users")

	w.task(t.Context(), (*sync.Engine).Plan, "users")
	w.xiaoqu.Edit("users", ids[5], `{"name":"moved on"}`)
	w.mustRun(t, "users")
	if o = w.task(t.Context(), apply, "users")["users"]; !errors.Is(o.Err, mirror.ErrMoved) {
		t.Errorf("a plan that is outdated: %+v, %v", o, o.Err)
	}
	if o = w.task(t.Context(), (*sync.Engine).Abort, "users")["users"]; o.Result != sync.Aborted {
		t.Errorf("aborted: %+v, %v", o, o.Err)
	}
	if o = w.task(t.Context(), apply, "users")["users"]; !errors.Is(o.Err, sync.ErrNothingPlanned) {
		t.Errorf("applied nothing: %v", o.Err)
	}
}

func TestADryRunThatWasStoppedAndOvertakenBeginsAgain(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(40, 0, 0)
	w.mustRun(t, "users")
	ctx, cancel := context.WithCancel(t.Context())
	w.watch = func(sync.Progress) { cancel() }
	w.task(ctx, (*sync.Engine).Plan, "users")
	w.watch = nil
	w.xiaoqu.Edit("users", w.xiaoqu.IDs("users")[0], `{"name":"overtaken"}`)
	w.mustRun(t, "users")
	o := w.task(t.Context(), (*sync.Engine).Plan, "users")["users"]
	if o.Result != sync.Planned || !o.Difference.Equal() {
		t.Errorf("%s %+v, %v", o.Result, o.Difference, o.Err)
	}
}

func TestAnAskedRebuildThatIsAbortedGoesBackToIncrements(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(40, 0, 0)
	w.mustRun(t, "users")
	ctx, cancel := context.WithCancel(t.Context())
	w.watch = func(sync.Progress) { cancel() }
	w.task(ctx, (*sync.Engine).Rebuild, "users")
	w.watch = nil
	if o := w.task(t.Context(), (*sync.Engine).Abort, "users")["users"]; o.Result != sync.Aborted {
		t.Fatalf("%+v, %v", o, o.Err)
	}
	w.xiaoqu.Edit("users", w.xiaoqu.IDs("users")[0], `{"name":"改"}`)
	if o := w.mustRun(t, "users")["users"]; o.Mode != "incremental" || o.Counts.Updated != 1 {
		t.Errorf("%+v", o)
	}
	w.equal(t, "users")
}

func TestARebuildWaitsForTheLeaseInTurn(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(5, 0, 0)
	w.mustRun(t, "users")
	lease, err := w.mirror.Lease(t.Context(), "users", mirror.Holder{Host: "other", PID: 7})
	if err != nil {
		t.Fatal(err)
	}
	w.wait = 600 * time.Millisecond
	if o := w.task(t.Context(), (*sync.Engine).Rebuild, "users")["users"]; o.Result != sync.SteppedAside || o.Holder.Host != "other" {
		t.Errorf("while it is held: %+v, %v", o, o.Err)
	}
	w.wait = time.Minute
	done := make(chan sync.Outcome)
	go func() { done <- w.task(t.Context(), (*sync.Engine).Rebuild, "users")["users"] }()
	lease.Release(t.Context())
	if o := <-done; o.Result != sync.Synced {
		t.Errorf("when it is free: %+v, %v", o, o.Err)
	}
}

func TestVerifyFindsDriftAndNotNews(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(40, 10, 0)
	w.mustRun(t, "users", "properties")
	ids := w.xiaoqu.IDs("users")
	w.xiaoqu.Edit("users", ids[9], `{"name":"news"}`) // the next increment brings it
	w.xiaoqu.Delete("users", ids[8])
	by := w.task(t.Context(), (*sync.Engine).Verify, "users", "properties")
	for _, o := range by {
		if o.Result != sync.Verified || !o.Difference.Equal() {
			t.Errorf("%s: %s %+v, %v", o.Resource, o.Result, o.Difference, o.Err)
		}
	}
	if by["users"].Difference.Explained == 0 {
		t.Error("the news were not seen at all")
	}
	w.read(t, "delete from xiaoqu.users where id = '"+ids[1]+"'")
	w.xiaoqu.Purge("users", ids[2])
	before := w.rows(t, "users")
	o := w.task(t.Context(), (*sync.Engine).Verify, "users")["users"]
	if o.Result != sync.Drifted || !errors.Is(o.Err, sync.ErrDrift) || o.Difference.Inserted != 1 || o.Difference.Absent != 1 {
		t.Errorf("%+v %+v, %v", o, o.Difference, o.Err)
	}
	if w.rows(t, "users") != before {
		t.Error("verify wrote the mirror")
	}
}
