package sync_test

import (
	"context"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// The whole suite runs through a pooler when XIAOQU_TEST_PGBOUNCER is set; this is
// the short of it, for every day.
func TestEverythingWorksThroughAPoolerInTransactionMode(t *testing.T) {
	w := newWorld(t)
	door, ok := localpg.Pooler(t, w.url)
	if !ok {
		t.Skip("pgbouncer is not installed")
	}
	w.door = door
	w.reopen(t)
	w.xiaoqu.Seed(45, 30, 20)
	w.mustRun(t, all...)
	w.equal(t, all...)

	w.xiaoqu.Delete("users", w.xiaoqu.IDs("users")[0])
	w.xiaoqu.Put("contracts", "9007199254740993", `{"name":"新","n":1.10}`)
	w.mustRun(t, all...)
	w.equal(t, all...)

	w.xiaoqu.Edit("users", w.xiaoqu.IDs("users")[1], `{"name":"改名"}`)
	w.xiaoqu.ExpireTokens("users")
	if o := w.mustRun(t, "users")["users"]; o.Mode != "rebuild" || o.Counts.Updated != 1 {
		t.Errorf("the rebuild: %+v", o)
	}
	w.equal(t, "users")
	if o := w.task(t.Context(), (*sync.Engine).Verify, "users")["users"]; o.Result != sync.Verified {
		t.Errorf("the verification: %s, %v", o.Result, o.Err)
	}

	w.xiaoqu.Put("users", "77", `{}`)
	other := *w
	other.reopen(t) // another process, in the same pool of the server's connections
	var aside sync.Outcome
	w.atPage(1, func() { aside = other.run(context.WithoutCancel(t.Context()), "users")["users"] })
	w.mustRun(t, "users")
	if aside.Result != sync.SteppedAside || aside.Holder == nil || aside.Holder.PID != w.holder.PID {
		t.Errorf("the second contender: %+v, %v", aside, aside.Err)
	}
	if n := w.count(t, "select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())"); n != 0 {
		t.Errorf("%d leases were left in the pool", n)
	}
	status, err := w.mirror.Status(t.Context(), all)
	if err != nil || status.Resources[0].Lease != nil {
		t.Errorf("%+v, %v", status, err)
	}
}
