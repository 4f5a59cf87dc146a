package mirror_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

func TestMigrateTwiceAndMore(t *testing.T) {
	m := open(t, localpg.Database(t))
	both := []string{"users", "contracts"}
	wantKind(t, m.Ready(t.Context(), both), mirror.KindSchema)
	_, err := m.Status(t.Context(), both)
	wantKind(t, err, mirror.KindSchema)

	everything := mirror.MigrationReport{Schema: "xiaoqu", To: int64(len(numbered(t))), Schemas: []string{"xiaoqu", "xiaoqu_sync"}, Applied: numbered(t), Created: both}
	dry := everything
	dry.DryRun = true
	for _, want := range []mirror.MigrationReport{dry, dry, everything} {
		got, err := m.Migrate(t.Context(), both, want.DryRun)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("%v %s", err, diff)
		}
	}
	if err := m.Ready(t.Context(), both); err != nil {
		t.Error(err)
	}
	again, err := m.Migrate(t.Context(), both, false)
	nothing := mirror.MigrationReport{Schema: "xiaoqu", From: everything.To, To: everything.To, Schemas: []string{}, Applied: []string{}, Created: []string{}}
	if diff := cmp.Diff(nothing, again); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	// A fourth resource is configuration, not a release.
	wantKind(t, m.Ready(t.Context(), []string{"users", "payments"}), mirror.KindSchema)
	more, err := m.Migrate(t.Context(), []string{"users", "payments"}, false)
	if err != nil || !slices.Equal(more.Created, []string{"payments"}) || len(more.Applied) != 0 {
		t.Errorf("%+v, %v", more, err)
	}
}

func TestMigrateKeepsRowsAndMakesALostView(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""))
	if _, err := f.sql.Exec(t.Context(), "drop view xiaoqu.users_live"); err != nil {
		t.Fatal(err)
	}
	wantKind(t, f.Ready(t.Context(), []string{"users"}), mirror.KindSchema)
	if _, err := f.Migrate(t.Context(), []string{"users"}, false); err != nil {
		t.Fatal(err)
	}
	if value[int64](t, f, "select count(*) from xiaoqu.users_live") != 1 {
		t.Error("rows are gone")
	}
}

// As after a restore that had the data schema alone.
func TestMigrateTakesOverRowsWithoutTheirBookkeeping(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""))
	if _, err := f.sql.Exec(t.Context(), "drop schema xiaoqu_sync cascade"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Migrate(t.Context(), []string{"users"}, false); err != nil {
		t.Fatal(err)
	}
	if err := f.Ready(t.Context(), []string{"users"}); err != nil {
		t.Error(err)
	}
	if value[int64](t, f, "select count(*) from xiaoqu.users_live") != 1 {
		t.Error("rows are gone")
	}
}

func TestMigrateByRacers(t *testing.T) {
	url := localpg.Database(t)
	errs := make(chan error, 4)
	applied := make(chan int, cap(errs))
	for range cap(errs) {
		m := open(t, url)
		go func() {
			report, err := m.Migrate(context.WithoutCancel(t.Context()), []string{"users"}, false)
			applied <- len(report.Applied) + len(report.Created)
			errs <- err
		}()
	}
	sum := 0
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
		sum += <-applied
	}
	if sum != len(numbered(t))+1 {
		t.Errorf("%d objects were reported as made, the migrations and one resource are to be made", sum)
	}
}

func TestANewerSchemaIsNotTouched(t *testing.T) {
	f := setUp(t)
	if _, err := f.sql.Exec(t.Context(), "insert into xiaoqu_sync.migrations (version_id, is_applied) values (99, true)"); err != nil {
		t.Fatal(err)
	}
	_, err := f.Migrate(t.Context(), []string{"users", "payments"}, false)
	for _, err := range []error{err, f.Ready(t.Context(), []string{"users"})} {
		if e := wantKind(t, err, mirror.KindSchema); !strings.Contains(e.Message, "99") || !strings.Contains(e.Message, fmt.Sprintf("knows %d", len(numbered(t)))) {
			t.Error(e.Message)
		}
	}
	if value[bool](t, f, "select to_regclass('xiaoqu.payments') is not null") {
		t.Error("something was made")
	}
}

func TestNamesAreChecked(t *testing.T) {
	for _, schema := range []string{"Xiaoqu", "a-b", `x"; drop schema public; --`, "1a", "pg_x", strings.Repeat("a", 42)} {
		_, err := mirror.Open(t.Context(), mirror.Options{URL: "postgres://localhost/x", Schema: schema})
		wantKind(t, err, mirror.KindConfig)
	}
	m := open(t, "postgres://127.0.0.1:1/x")
	for _, resource := range []string{"", "Users", "users_live", "freshness", "u;", strings.Repeat("a", 41), "users_change_seq"} {
		_, err := m.Migrate(t.Context(), []string{resource}, false)
		wantKind(t, err, mirror.KindConfig)
		_, err = m.Checkpoint(t.Context(), resource)
		wantKind(t, err, mirror.KindConfig)
	}
}

func TestAnySchemaNameWorks(t *testing.T) {
	url := localpg.Database(t)
	for _, schema := range []string{"user", "_x", strings.Repeat("a", 41)} {
		m, err := mirror.Open(t.Context(), mirror.Options{URL: url, Schema: schema})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		resources := []string{"table", strings.Repeat("r", 40)}
		if _, err := m.Migrate(t.Context(), resources, false); err != nil {
			t.Fatal(err)
		}
		for _, r := range resources {
			c, err := m.Checkpoint(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := m.Commit(t.Context(), step(c, user("a", ""))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestCheckpointOfALostStateRow(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""), user("b", `,"deleted_at":true`))
	stale := f.checkpoint(t)
	if _, err := f.sql.Exec(t.Context(), "delete from xiaoqu_sync.state"); err != nil {
		t.Fatal(err)
	}
	c := f.checkpoint(t)
	if c.Phase != mirror.PhaseRebuild || c.SyncToken != "" || c.Epoch <= stale.Epoch {
		t.Errorf("%+v", c)
	}
	if got := value[string](t, f, "select concat_ws(' ', change_seq, live_rows, deleted_rows) from xiaoqu_sync.state"); got != "2 1 1" {
		t.Error(got)
	}
}

func TestCheckpointOfAnUnknownPhase(t *testing.T) {
	f := setUp(t)
	f.checkpoint(t)
	if _, err := f.sql.Exec(t.Context(), "alter table xiaoqu_sync.state drop constraint state_phase_check; update xiaoqu_sync.state set phase = 'sideways'"); err != nil {
		t.Fatal(err)
	}
	_, err := f.Checkpoint(t.Context(), "users")
	wantKind(t, err, mirror.KindSchema)
}

func TestRestartForgetsTheRoundAndKeepsTheRows(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""))
	before := f.checkpoint(t)
	after, err := f.Restart(t.Context(), before, "SYNC_CURSOR_EXPIRED", false)
	if err != nil {
		t.Fatal(err)
	}
	if want := (mirror.Checkpoint{Resource: "users", Phase: mirror.PhaseRebuild, Epoch: before.Epoch + 1}); after != want || f.checkpoint(t) != want {
		t.Errorf("%+v, stored %+v", after, f.checkpoint(t))
	}
	if len(f.lines(t)) != 1 {
		t.Error("readers lost rows")
	}
	_, err = f.Restart(t.Context(), before, "again", false)
	wantKind(t, err, mirror.KindFenced)
}

func TestAdoptNotesTheFirstTenantOnly(t *testing.T) {
	f := setUp(t)
	before := f.checkpoint(t)
	after, err := f.Adopt(t.Context(), before, "tenant-1")
	if err != nil || after != f.checkpoint(t) || after.Tenant != "tenant-1" || after.Epoch != before.Epoch+1 {
		t.Fatalf("%+v, %v", after, err)
	}
	_, err = f.Adopt(t.Context(), after, "tenant-2")
	wantKind(t, err, mirror.KindFenced)
	f.commit(t, user("a", ""))
	if got := f.checkpoint(t).Tenant; got != "tenant-1" {
		t.Errorf("tenant %q after a page", got)
	}
}

func TestTenantIsTheWholeMirrors(t *testing.T) {
	f := setUp(t)
	if tenant, err := f.Tenant(t.Context()); err != nil || tenant != "" {
		t.Errorf("%q, %v", tenant, err)
	}
	if _, err := f.Adopt(t.Context(), f.checkpoint(t), "tenant-1"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.sql.Exec(t.Context(), "insert into xiaoqu_sync.state (resource) values ('contracts')"); err != nil {
		t.Fatal(err)
	}
	if tenant, err := f.Tenant(t.Context()); err != nil || tenant != "tenant-1" {
		t.Errorf("%q, %v", tenant, err)
	}
}

// numbered are the names of the migration files, in order.
func numbered(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../migrations/sql/0*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".sql")
	}
	return files
}
