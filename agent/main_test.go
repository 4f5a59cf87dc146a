package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/store"
	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

func TestMain(m *testing.M) { os.Exit(localpg.Main(m)) }

// house is a migrated database with what several processes would share.
type house struct {
	url string
	sql *pgxpool.Pool
}

func newHouse(t testing.TB) house {
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
	if _, err := migrations.Apply(t.Context(), pool, layout, []string{"contracts", "users"}, false); err != nil {
		t.Fatal(err)
	}
	h := house{url, pool}
	h.exec(t, typedView)
	return h
}

// typedView makes contracts_live and contracts_all with the columns of resources.
const typedView = `
drop view xiaoqu.contracts_live;
create view xiaoqu.contracts_live as
select c.*, record->>'status' as status, (record->'amount')::numeric as amount, (record->'n')::bigint as n, (record->'signed')::boolean as signed,
	(record->>'begun')::timestamptz as begun, array['x'] as tags
from xiaoqu.contracts c where deleted_at is null;
create view xiaoqu.contracts_all as select * from xiaoqu.contracts_live`

// put stores a record of contracts as a sync would.
func (h house) put(t testing.TB, seq int64, id, record string) {
	t.Helper()
	h.exec(t, `insert into xiaoqu.contracts (id, record, synced_at, change_seq, content_hash) values ($1, $2::jsonb, now(), $3, '')`, id, record, seq)
}

func (h house) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := h.sql.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (h house) text(t testing.TB, sql string, args ...any) string {
	t.Helper()
	var v string
	if err := h.sql.QueryRow(t.Context(), "select coalesce(("+sql+")::text, '')", args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// world is the mirror as the store reads it, but for what the store does not read.
type world struct {
	*store.Store
	status func() ([]agent.Status, error)
}

func (w world) Status(context.Context, []string) ([]agent.Status, error) {
	if w.status == nil {
		return nil, nil
	}
	return w.status()
}

func (w world) Quarantine(context.Context, string, int64, int) ([]agent.Quarantined, error) {
	return nil, nil
}

// worker is the worker of a test.
type worker func(context.Context, agent.Job) (agent.Report, error)

func (w worker) Work(ctx context.Context, job agent.Job) (agent.Report, error) { return w(ctx, job) }

// courier is a platform's of a test.
type courier func(agent.Task, agent.Event) agent.Verdict

func (c courier) Deliver(_ context.Context, t agent.Task, e agent.Event) (agent.Verdict, error) {
	if v := c(t, e); v != agent.Delivered {
		return v, errors.New("not now")
	}
	return agent.Delivered, nil
}

var resources = []agent.Resource{
	{Name: "users"}, {Name: "contracts", Columns: []agent.Column{
		{Name: "status", Type: "text"},
		{Name: "amount", Type: "numeric"},
		{Name: "n", Type: "integer"},
		{Name: "signed", Type: "boolean"},
		{Name: "begun", Type: "timestamptz"},
		{Name: "tags", Type: "text[]"},
	}},
}

// service is another process on the house's database.
func (h house) service(t testing.TB, with func(*agent.Options)) *agent.Service {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: localpg.Door(h.url), Resources: resources})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	done := func(context.Context, agent.Job) (agent.Report, error) { return agent.Report{}, nil }
	o := agent.Options{
		Mirror: world{Store: s}, Worker: worker(done), Tasks: s, Outbox: s, Resources: resources, Allow: agent.Writing(), Logger: zap.NewNop(),
	}
	if with != nil {
		with(&o)
	}
	service, err := agent.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return service
}

// run lets a process work until stop, which waits for its end, or the test's.
func run(t testing.TB, s *agent.Service) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

var everything = agent.Caller{Door: "api", Name: "crm", Scopes: []string{"*"}}

func call(capability, input, key string) agent.Call {
	return agent.Call{Caller: everything, Capability: capability, Input: json.RawMessage(input), Key: key}
}

// failure asserts that err is a failure of the class and code.
func failure(t testing.TB, err error, class agent.Class, code string) *agent.Failure {
	t.Helper()
	f, ok := err.(*agent.Failure) //nolint:errorlint // Do promises the type itself
	if !ok || f.Class != class || f.Code != code {
		t.Fatalf("error %v (%T), want %s %s", err, err, class, code)
	}
	return f
}

// until waits for a condition that another goroutine or process brings about.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-limit:
			t.Fatal("never: " + what)
		case <-tick.C:
		}
	}
}

// state waits until the task is in the state.
func (h house) state(t testing.TB, id string, want agent.State) {
	t.Helper()
	until(t, "the task is "+string(want), func() bool {
		return h.text(t, "select state from xiaoqu_sync.agent_tasks where id = $1", id) == string(want)
	})
}

func do(t testing.TB, s *agent.Service, c agent.Call) agent.Answer {
	t.Helper()
	a, err := s.Do(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
