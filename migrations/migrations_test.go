package migrations_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

func TestMain(m *testing.M) { os.Exit(localpg.Main(m)) }

// connect opens a pool as the product does: no named statements.
func connect(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func layout(t *testing.T, schema string) migrations.Layout {
	t.Helper()
	l, err := migrations.NewLayout(schema)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func apply(t *testing.T, pool *pgxpool.Pool, l migrations.Layout, resources ...string) migrations.Report {
	t.Helper()
	report, err := migrations.Apply(t.Context(), pool, l, resources, false)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestRenderQuotesEveryName(t *testing.T) {
	l := layout(t, "user")
	got := l.RenderResource("{data} {sync} {table} {live} {index}", "order")
	if want := `"user" "user_sync" "user"."order" "user"."order_live" "order_change_seq"`; got != want {
		t.Error(got)
	}
	if got := l.Render("{data}.x {sync}.y"); got != `"user".x "user_sync".y` {
		t.Error(got)
	}
}

func TestStatementsDoNotDependOnSearchPath(t *testing.T) {
	url := localpg.Database(t)
	pool := connect(t, url+"&search_path=nowhere")
	if !strings.Contains(url, "?") {
		pool = connect(t, url+"?search_path=nowhere")
	}
	apply(t, pool, layout(t, "xiaoqu"), "users")
	var n int
	err := pool.QueryRow(t.Context(), `select count(*) from pg_class c join pg_namespace s on s.oid = c.relnamespace
		where s.nspname not in ('xiaoqu', 'xiaoqu_sync', 'pg_catalog', 'information_schema', 'pg_toast')`).Scan(&n)
	if err != nil || n != 0 {
		t.Errorf("%d objects elsewhere, %v", n, err)
	}
}

func TestTwoSchemasLiveSideBySide(t *testing.T) {
	pool := connect(t, localpg.Database(t))
	for _, schema := range []string{"one", "two"} {
		if r := apply(t, pool, layout(t, schema), "users"); r.To != int64(len(numbered(t))) || len(r.Created) != 1 {
			t.Errorf("%+v", r)
		}
	}
}

func TestSchemasMadeByTheAdministrator(t *testing.T) {
	pool := connect(t, localpg.Database(t))
	if _, err := pool.Exec(t.Context(), "create schema xiaoqu; create schema xiaoqu_sync"); err != nil {
		t.Fatal(err)
	}
	if r := apply(t, pool, layout(t, "xiaoqu"), "users"); len(r.Schemas) != 0 || len(r.Applied) != len(numbered(t)) {
		t.Errorf("%+v", r)
	}
}

func TestAFailedMigrationLeavesNothingHalf(t *testing.T) {
	pool := connect(t, localpg.Database(t))
	// The last object of the first migration is in the way.
	if _, err := pool.Exec(t.Context(), "create schema xiaoqu; create table xiaoqu.freshness ()"); err != nil {
		t.Fatal(err)
	}
	l := layout(t, "xiaoqu")
	if _, err := migrations.Apply(t.Context(), pool, l, nil, false); err == nil {
		t.Fatal("applied over a foreign table")
	}
	state, err := migrations.Inspect(t.Context(), pool, l, nil)
	if err != nil || state.Version != 0 {
		t.Errorf("%+v, %v", state, err)
	}
	var there bool
	if err := pool.QueryRow(t.Context(), "select to_regclass('xiaoqu_sync.state') is not null").Scan(&there); err != nil || there {
		t.Errorf("half a migration stayed: %v", err)
	}
	if _, err := pool.Exec(t.Context(), "drop table xiaoqu.freshness"); err != nil {
		t.Fatal(err)
	}
	if r := apply(t, pool, l, "users"); r.From != 0 || r.To != int64(len(numbered(t))) || len(r.Created) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestTheLockIsWaitedFor(t *testing.T) {
	pool := connect(t, localpg.Database(t))
	l := layout(t, "xiaoqu")
	unlock, err := migrations.Lock(t.Context(), pool, l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	given := errors.New("given up")
	done := make(chan error, 1)
	go func() { _, err := migrations.Apply(ctx, pool, l, nil, false); done <- err }()
	for waiting := false; !waiting; { // two transactions: the holder's and the one that tries
		select {
		case err := <-done:
			t.Fatalf("did not wait: %v", err)
		default:
		}
		err := pool.QueryRow(t.Context(), "select count(*) > 1 from pg_stat_activity where datname = current_database() and state = 'idle in transaction'").Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
	cancel(given)
	if err := <-done; !errors.Is(err, given) && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	unlock()
	apply(t, pool, l)
}

func TestNewerDatabase(t *testing.T) {
	pool := connect(t, localpg.Database(t))
	l := layout(t, "xiaoqu")
	apply(t, pool, l)
	if _, err := pool.Exec(t.Context(), "insert into xiaoqu_sync.migrations (version_id, is_applied) values (99, true)"); err != nil {
		t.Fatal(err)
	}
	for _, dryRun := range []bool{true, false} {
		_, err := migrations.Apply(t.Context(), pool, l, []string{"users"}, dryRun)
		var newer *migrations.NewerError
		if !errors.As(err, &newer) || *newer != (migrations.NewerError{Database: 99, Binary: int64(len(numbered(t)))}) {
			t.Errorf("dry run %v: %v", dryRun, err)
		}
	}
}

// numbered are the names of the migration files, in order.
func numbered(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("sql/0*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".sql")
	}
	return files
}
