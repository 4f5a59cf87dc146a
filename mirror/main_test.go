package mirror_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

func TestMain(m *testing.M) { os.Exit(localpg.Main(m)) }

// fixture is a migrated mirror of users in a database of its own, and a
// connection of a reader's to look with.
type fixture struct {
	*mirror.Mirror
	url string
	sql *pgxpool.Pool
}

func open(t testing.TB, url string) *mirror.Mirror {
	t.Helper()
	m, err := mirror.Open(t.Context(), mirror.Options{URL: url, Application: "mirror-test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func setUp(t testing.TB) fixture {
	t.Helper()
	url := localpg.Database(t)
	f := fixture{Mirror: open(t, localpg.Door(url)), url: url}
	if _, err := f.Migrate(t.Context(), []string{"users"}, false); err != nil {
		t.Fatal(err)
	}
	f.sql = connect(t, url)
	return f
}

func connect(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func (f fixture) checkpoint(t testing.TB) mirror.Checkpoint {
	t.Helper()
	c, err := f.Checkpoint(t.Context(), "users")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// step makes a page in the middle of a round out of JSON texts.
func step(before mirror.Checkpoint, records ...string) mirror.Step {
	s := mirror.Step{Before: before, After: before, RunID: 7}
	s.After.Pages++
	s.After.Cursor = fmt.Sprintf("cursor-%d", s.After.Pages)
	s.After.SnapshotID = "snap-1"
	raw := make([]json.RawMessage, len(records))
	for i, r := range records {
		raw[i] = json.RawMessage(r)
	}
	s.Batch = mirror.NewBatch(raw, time.UTC)
	s.Batch.RequestID = "r_1"
	return s
}

// commit applies a page on top of what is there.
func (f fixture) commit(t testing.TB, records ...string) mirror.Counts {
	t.Helper()
	_, counts, err := f.Commit(t.Context(), step(f.checkpoint(t), records...))
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

func user(id, more string) string {
	return fmt.Sprintf(`{"id":%q,"name":"张伟","modify_time":"2026-09-01T08:00:00Z"%s}`, id, more)
}

// line is a row in one text, for comparison: id, live or deleted, change_seq, xmin.
func (f fixture) lines(t testing.TB) []string {
	t.Helper()
	rows, err := f.sql.Query(t.Context(), `select id || ' ' || case when deleted_at is null then 'live' else 'deleted' end
		|| ' ' || change_seq || ' ' || xmin::text from xiaoqu.users order by id`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// exec does to the database what a person could.
func (f fixture) exec(t testing.TB, sql string) {
	t.Helper()
	if _, err := f.sql.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// value reads one value of any statement.
func value[T any](t testing.TB, f fixture, sql string, args ...any) T {
	t.Helper()
	var v T
	if err := f.sql.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func wantKind(t testing.TB, err error, kind mirror.Kind) *mirror.Error {
	t.Helper()
	var e *mirror.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("error %v (%T), want kind %v", err, err, kind)
	}
	return e
}

func timeAt(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func withoutXmin(lines []string) string {
	var short []string
	for _, l := range lines {
		short = append(short, l[:strings.LastIndexByte(l, ' ')])
	}
	return strings.Join(short, ", ")
}

// readerTx is somebody else's transaction; the caller ends it.
func readerTx(t *testing.T, f fixture, statements ...string) pgx.Tx {
	t.Helper()
	tx, err := f.sql.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		if _, err := tx.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return tx
}
