package store_test

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/store"
	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/views"
)

func TestMain(m *testing.M) { os.Exit(localpg.Main(m)) }

// fixture is a store in a database of its own, with a mirror of contracts, and a
// connection to look and to change with.
type fixture struct {
	*store.Store
	options store.Options
	sql     *pgxpool.Pool
}

var columns = views.Definition{
	Columns: []views.Column{
		{Name: "status", Path: "$.status", Type: views.Text, Index: true},
		{Name: "amount", Path: "$.amount", Type: views.Numeric},
		{Name: "n", Path: "$.n", Type: views.Integer},
		{Name: "signed", Path: "$.signed", Type: views.Boolean},
		{Name: "begun", Path: "$.begun", Type: views.Timestamptz},
		{Name: "day", Path: "$.day", Type: views.Date},
		{Name: "tags", Path: "$.tags", Type: views.Texts, Index: true},
		{Name: "more", Path: "$.more", Type: views.JSON},
	},
	Masked: []string{"$.mobile"},
	Zone:   "Asia/Shanghai",
}

func setUp(t testing.TB, with ...func(*store.Options)) fixture {
	t.Helper()
	url := localpg.Database(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	layout, err := migrations.NewLayout("xiaoqu")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Apply(t.Context(), pool, layout, []string{"contracts"}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := views.Apply(t.Context(), pool, layout, "contracts", columns); err != nil {
		t.Fatal(err)
	}
	resource := agent.Resource{Name: "contracts"}
	for _, c := range columns.Columns {
		resource.Columns = append(resource.Columns, agent.Column{Name: c.Name, Type: string(c.Type)})
	}
	f := fixture{sql: pool, options: store.Options{URL: localpg.Door(url), Resources: []agent.Resource{resource}}}
	for _, change := range with {
		change(&f.options)
	}
	f.Store = f.open(t)
	return f
}

// open is another process's store on the same database.
func (f fixture) open(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), f.options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (f fixture) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := f.sql.Exec(t.Context(), sql, args...); err != nil {
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

// put stores a record as a sync would.
func (f fixture) put(t testing.TB, seq int64, id, record string, deleted bool) {
	t.Helper()
	f.exec(t, `insert into xiaoqu.contracts (id, record, modify_time, deleted_at, synced_at, change_seq, content_hash)
		values ($1, $2::jsonb, '2026-09-01T08:00:00Z', case when $4 then timestamptz '2026-09-02T00:00:00Z' end, '2026-09-03T00:00:00.5Z', $3, '')`,
		id, record, seq, deleted)
}

// must is for what cannot fail here.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantFailure(t testing.TB, err error, class agent.Class, code string) *agent.Failure {
	t.Helper()
	var f *agent.Failure
	if !errors.As(err, &f) || f.Class != class || f.Code != code {
		t.Fatalf("error %v (%T), want %s %s", err, err, class, code)
	}
	return f
}

func newTask(key string) agent.Task {
	return agent.Task{
		ID: "task_" + key, Door: "api", Key: key, Caller: "someone", Capability: "sync.run",
		Input: json.RawMessage(`{"resources": ["contracts"]}`), ReplyTo: json.RawMessage(`{"url":"https://x.example"}`),
	}
}

// begun makes a task that waits.
func (f fixture) begun(t testing.TB, task agent.Task) agent.Task {
	t.Helper()
	made, fresh, err := f.Begin(t.Context(), task, false, 0)
	if err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	return made
}

func (f fixture) claimed(t testing.TB) agent.Task {
	t.Helper()
	c := must(f.Claim(t.Context(), agent.Writing(), time.Minute))(t)
	if c == nil {
		t.Fatal("nothing to claim")
	}
	return *c
}

// expire lets every claim and every wait be over.
func (f fixture) expire(t testing.TB) {
	t.Helper()
	f.exec(t, `update xiaoqu_sync.agent_tasks set due_at = now() - interval '1 second'`)
	f.exec(t, `update xiaoqu_sync.agent_events set due_at = now() - interval '1 second'`)
}
