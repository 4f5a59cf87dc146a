package mirror_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

func TestRunsAreTheNewestFirstAndBounded(t *testing.T) {
	f := setUp(t)
	var ids []int64
	for range 3 {
		ids = append(ids, begin(t, f, "users"))
	}
	begin(t, f, "contracts")
	counts := mirror.Counts{Received: 5, Inserted: 3, Unchanged: 2}
	if err := f.EndRun(t.Context(), mirror.Run{ID: ids[2], Resource: "users", Mode: "first", Outcome: "synced", Pages: 2, Counts: counts}); err != nil {
		t.Fatal(err)
	}
	runs, err := f.Runs(t.Context(), "users", 2)
	if err != nil || len(runs) != 2 || runs[0].ID != ids[2] || runs[1].ID != ids[1] {
		t.Fatalf("%+v, %v", runs, err)
	}
	if r := runs[0]; r.Outcome != "synced" || r.Counts != counts || r.EndedAt == nil || r.Pages != 2 {
		t.Errorf("the newest: %+v", r)
	}
	if runs, err := f.Runs(t.Context(), "users", -1); err != nil || len(runs) != 0 {
		t.Errorf("below zero: %+v, %v", runs, err)
	}
	_, err = f.Runs(t.Context(), "users; drop", 1)
	wantKind(t, err, mirror.KindConfig)
}

func TestReasonsCountTheQuarantine(t *testing.T) {
	f := setUp(t)
	f.commit(t, `{}`, `{"a":1}`, `[]`, user("b", `,"x":"\u0000"`))
	got, err := f.Reasons(t.Context(), []string{"users", "contracts"})
	if err != nil {
		t.Fatal(err)
	}
	want := []mirror.Reason{
		{Resource: "users", Kind: "refused", Reason: "no id", Records: 2},
		{Resource: "users", Kind: "mended", Reason: "NUL or invalid Unicode was replaced by U+FFFD", Records: 1},
		{Resource: "users", Kind: "refused", Reason: "not a JSON object", Records: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// health is the view's line of users, without its times.
func (f fixture) health(t *testing.T) string {
	t.Helper()
	return value[string](t, f, `select concat_ws(' ', phase, live_rows, deleted_rows, coalesce(last_error_code, '-'), runs_last_day::text,
		held, quarantined, mended, coalesce(lease_host, '-'), last_success_at is null, age_seconds) from xiaoqu_sync.health where resource = 'users'`)
}

func TestHealthTellsInOneStatementWhatStatusTells(t *testing.T) {
	f := setUp(t)
	f.checkpoint(t)
	if got, want := f.health(t), "first 0 0 - {} f 0 0 - t"; got != want {
		t.Errorf("fresh: %q, want %q", got, want)
	}
	s := step(f.checkpoint(t), user("a", ""), user("b", `,"deleted_at":"2026-09-01"`), `{}`)
	s.Last = true
	if _, _, err := f.Commit(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	lease, err := f.Lease(t.Context(), "users", mirror.Holder{Host: "host-a", PID: 7})
	if err != nil {
		t.Fatal(err)
	}
	failed := begin(t, f, "users")
	if err := f.EndRun(t.Context(), mirror.Run{ID: failed, Resource: "users", Outcome: "failed", Code: "RATE_LIMITED"}); err != nil {
		t.Fatal(err)
	}
	begin(t, f, "users")
	f.exec(t, "insert into xiaoqu_sync.runs (resource, mode, outcome, started_at) values ('users', 'first', 'synced', now() - interval '25 hours')")
	if got, want := f.health(t), `incremental 1 1 RATE_LIMITED {"failed": 1, "running": 1} f 1 0 host-a f 0`; got != want {
		t.Errorf("at work: %q, want %q", got, want)
	}
	nameless := func(why string) {
		t.Helper()
		if !value[bool](t, f, "select lease_host is null from xiaoqu_sync.health where resource = 'users'") {
			t.Error(why)
		}
	}
	f.exec(t, "update xiaoqu_sync.leases set backend_pid = 0")
	nameless("the lock is another one's than the row says")
	lease.Release(t.Context())
	f.exec(t, "delete from xiaoqu_sync.leases")
	f.exec(t, "insert into xiaoqu_sync.leases (resource, host, pid, since, backend_pid) values ('users', 'dead', 1, now(), pg_backend_pid())")
	nameless("a holder that is gone is named")
}

func TestHealthNeedsNoRightToTheBookkeeping(t *testing.T) {
	f := setUp(t)
	f.checkpoint(t)
	reader := connect(t, login(t, f, "grant usage on schema xiaoqu_sync", "grant select on xiaoqu_sync.health"))
	var n int
	if err := reader.QueryRow(t.Context(), "select count(*) from xiaoqu_sync.health").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
	if _, err := reader.Exec(t.Context(), "select from xiaoqu_sync.runs"); err == nil {
		t.Error("the run log is open to everybody")
	}
}
