package relay_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/relay"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/store"
	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

func TestMain(m *testing.M) { os.Exit(localpg.Main(m)) }

const secret = "whsec_canary_current"

// world is a supplier with a database, and Relay on the other side.
type world struct {
	t      testing.TB
	url    string // of the database
	relay  *platform
	store  *store.Store
	mirror *mirror
	worker *worker
	logs   *observer.ObservedLogs
	log    *zap.Logger
	stop   context.CancelFunc
	ended  chan struct{}
}

// open makes a world; tune may change what the door is made of.
func open(t testing.TB, tune func(*relay.Options)) *world {
	t.Helper()
	if p, ok := t.(*testing.T); ok {
		p.Parallel() // each has a database of its own, and most of them wait
	}
	url := localpg.Database(t)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	layout, err := migrations.NewLayout("xiaoqu")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Apply(t.Context(), pool, layout, []string{"users"}, false); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, url: url, relay: newPlatform(t, secret), mirror: &mirror{}, worker: newWorker()}
	if w.store, err = store.Open(t.Context(), store.Options{URL: localpg.Door(url), Resources: []agent.Resource{{Name: "users"}}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.store.Close)
	core, logs := observer.New(zap.DebugLevel)
	w.logs, w.log = logs, zap.New(core)
	w.begin(tune)
	t.Cleanup(w.kill)
	return w
}

// begin starts a process: service, door, endpoint.
func (w *world) begin(tune func(*relay.Options)) {
	w.t.Helper()
	couriers := map[string]agent.Courier{}
	service, err := agent.New(agent.Options{
		Mirror: w.mirror, Worker: w.worker, Tasks: w.store, Outbox: w.store, Couriers: couriers,
		Resources: []agent.Resource{{Name: "users"}}, Allow: agent.Writing(), Logger: w.log, Hold: 3 * time.Second,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	o := relay.Options{
		Service: service, Secrets: func() [][]byte { return [][]byte{[]byte(secret)} }, Scopes: []string{"*"}, Logger: w.log,
		CallbackURL: w.relay.server.URL + "/v1/callbacks", EndpointURL: "https://mirror.example.com/relay",
		DocumentURL: func(token string) string { return "https://mirror.example.com/documents/" + token },
	}
	if tune != nil {
		tune(&o)
	}
	door, err := relay.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	couriers["relay"] = door
	server := httptest.NewServer(door.Handler())
	w.relay.endpoint = server.URL + "/relay"
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); service.Run(ctx) }()
	w.ended = ended
	w.stop = func() { stop(); server.CloseClientConnections(); server.Close() }
}

// kill ends the process as it stands.
func (w *world) kill() {
	w.stop()
	<-w.ended
}

// mirror is what the catalogue reads, as the test wants it.
type mirror struct {
	fail    error
	panics  bool
	held    *agent.Difference
	block   chan struct{} // a read waits for it
	reading chan struct{} // a read has begun
	record  string
	store   *store.Store // nil: record is what is read
}

func (m *mirror) come(ctx context.Context) error {
	if m.panics {
		panic("by the test's wish")
	}
	if m.block != nil {
		select {
		case m.reading <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-m.block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return m.fail
}

func (m *mirror) Status(ctx context.Context, resources []string) ([]agent.Status, error) {
	return []agent.Status{{Resource: "users", Phase: "incremental", LiveRows: 100, Held: m.held}}, m.come(ctx)
}

func (m *mirror) Freshness(ctx context.Context, _ []string) ([]agent.Freshness, error) {
	age := int64(5)
	return []agent.Freshness{{Resource: "users", Phase: "incremental", AgeSeconds: &age, LiveRows: 100}}, m.come(ctx)
}

func (m *mirror) Record(ctx context.Context, resource, id string) (agent.Record, bool, error) {
	if m.store != nil {
		return m.store.Record(ctx, resource, id)
	}
	return agent.Record{ID: id, ChangeSeq: 9007199254740993, Record: json.RawMessage(m.record)}, true, m.come(ctx)
}

func (m *mirror) Search(ctx context.Context, _ agent.Query) ([]agent.Record, error) {
	return nil, m.come(ctx)
}

func (m *mirror) Changes(ctx context.Context, _ string, _ int64, _ int) ([]agent.Record, error) {
	return nil, m.come(ctx)
}

func (m *mirror) Quarantine(ctx context.Context, _ string, _ int64, _ int) ([]agent.Quarantined, error) {
	return nil, m.come(ctx)
}

// worker does a job when the test lets it end.
type worker struct {
	begun chan agent.Job
	ends  chan end
}

type end struct {
	report agent.Report
	err    error
}

func newWorker() *worker { return &worker{begun: make(chan agent.Job, 100), ends: make(chan end, 100)} }

func (w *worker) Work(ctx context.Context, job agent.Job) (agent.Report, error) {
	w.begun <- job
	select {
	case e := <-w.ends:
		return e.report, e.err
	case <-ctx.Done():
		return agent.Report{}, ctx.Err()
	}
}

// done lets a job end well.
func (w *worker) done(outcome string) {
	w.ends <- end{report: agent.Report{Resources: []agent.ResourceReport{{Resource: "users", Outcome: outcome, Updated: 3}}}}
}

// held is a rebuild that the deletion fuse holds.
func held() *agent.Difference {
	return &agent.Difference{Deletes: 60, Sample: []string{"7"}, Plan: "p-1"}
}
