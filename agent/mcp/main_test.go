package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sync/errgroup"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/mcp"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/store"
	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/views"
)

func TestMain(m *testing.M) { os.Exit(localpg.Main(m)) }

const (
	agentID    = "xiaoqu-mirror"
	signingKey = "canary-signing-key-0123456789"
	credential = "canary-callback-credential"
)

// scene is the door before a real store, and a platform that takes callbacks.
type scene struct {
	store    *store.Store
	sql      *pgxpool.Pool
	service  *agent.Service
	options  agent.Options // of the service
	door     *mcp.Door
	url      string // of the server, without a path
	platform *receiver
	worker   worker
	logs     *observer.ObservedLogs
}

func resources() []agent.Resource {
	return []agent.Resource{{Name: "contracts", Columns: []agent.Column{{Name: "rent", Type: "numeric"}}}, {Name: "users"}}
}

// stage is what a scene is made with.
type stage struct {
	door    mcp.Options
	service agent.Options
	held    *agent.Difference
	more    *agent.Capability // shown beside the catalogue's
}

// catalogue is the service's with one more in it.
type catalogue struct {
	*agent.Service
	more *agent.Capability
}

func (c catalogue) Capabilities() []*agent.Capability {
	return append(c.Service.Capabilities(), c.more)
}

// mirror reads from the store, and says of the rest what the test wants.
type mirror struct {
	*store.Store
	held *agent.Difference
}

func (m mirror) Status(_ context.Context, resources []string) ([]agent.Status, error) {
	var all []agent.Status
	for _, r := range resources {
		all = append(all, agent.Status{Resource: r, Phase: "incremental", LiveRows: 7, Held: m.held})
	}
	return all, nil
}

func (mirror) Quarantine(context.Context, string, int64, int) ([]agent.Quarantined, error) {
	return nil, nil
}

// worker does each job when the test lets it.
type worker struct {
	begun chan agent.Job
	done  chan error
}

func (w worker) Work(ctx context.Context, job agent.Job) (agent.Report, error) {
	select {
	case w.begun <- job:
	case <-ctx.Done():
		return agent.Report{}, ctx.Err()
	}
	select {
	case err := <-w.done:
		return agent.Report{Resources: []agent.ResourceReport{{Resource: job.Resources[0], Outcome: "planned", Plan: "p-1", Difference: &agent.Difference{Inserts: 1, Deletes: 2, Sample: []string{"u-1"}}}}}, err
	case <-ctx.Done():
		return agent.Report{}, ctx.Err()
	}
}

// open sets the scene: two resources, everything allowed, one signing key.
func open(t testing.TB, change ...func(*stage)) *scene {
	t.Helper()
	s := &scene{platform: receive(t), worker: worker{make(chan agent.Job), make(chan error)}}
	s.database(t)
	core, logs := observer.New(zap.DebugLevel)
	s.logs = logs
	server := httptest.NewUnstartedServer(nil)
	s.url = "http://" + server.Listener.Addr().String()
	st := stage{
		door: mcp.Options{
			Documents: s.store, PublicURL: s.url, Logger: zap.New(core),
			Application: mcp.Application{ID: agentID, Version: "1.2.3", Name: "Mirror", Description: "The tenant's mirror.", EntryURL: "https://mirror.example.com/", MCPURL: "https://mirror.example.com/mcp", CallbackURL: s.platform.url},
			Context:     mcp.Context{Keys: [][]byte{[]byte(signingKey)}},
		},
		service: agent.Options{
			Worker: s.worker, Tasks: s.store, Outbox: s.store, Resources: resources(),
			Allow: agent.Writing(), Logger: zap.New(core), Hold: 2 * time.Second,
		},
	}
	for _, c := range change {
		c(&st)
	}
	courier, err := mcp.NewCourier(mcp.CourierOptions{CallbackURL: s.platform.url, Credential: credential, PublicURL: s.url})
	if err != nil {
		t.Fatal(err)
	}
	st.service.Mirror, st.service.Couriers = mirror{s.store, st.held}, map[string]agent.Courier{"mcp": courier}
	s.options = st.service
	if s.service, err = agent.New(st.service); err != nil {
		t.Fatal(err)
	}
	if st.door.Service = s.service; st.more != nil {
		st.door.Service = catalogue{s.service, st.more}
	}
	if s.door, err = mcp.New(st.door); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.door.Handler())
	mux.Handle("/artifacts/", s.door.Artifacts())
	server.Config.Handler = mux
	server.Start()
	t.Cleanup(func() { s.door.Close(); server.Close() })
	return s
}

func (s *scene) database(t testing.TB) {
	t.Helper()
	url := localpg.Database(t)
	var err error
	if s.sql, err = pgxpool.New(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.sql.Close)
	layout, err := migrations.NewLayout("xiaoqu")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Apply(t.Context(), s.sql, layout, []string{"contracts", "users"}, false); err != nil {
		t.Fatal(err)
	}
	for _, r := range resources() {
		d := views.Definition{Zone: "Asia/Shanghai"}
		for _, c := range r.Columns {
			d.Columns = append(d.Columns, views.Column{Name: c.Name, Path: "$." + c.Name, Type: views.Type(c.Type)})
		}
		if _, err := views.Apply(t.Context(), s.sql, layout, r.Name, d); err != nil {
			t.Fatal(err)
		}
	}
	if s.store, err = store.Open(t.Context(), store.Options{URL: localpg.Door(url), Resources: resources()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.store.Close)
}

// put stores a contract as a sync would.
func (s *scene) put(t testing.TB, id, record string) {
	t.Helper()
	if _, err := s.sql.Exec(t.Context(), `insert into xiaoqu.contracts (id, record, synced_at, change_seq, content_hash)
		values ($1, $2::jsonb, '2026-09-03T00:00:00.5Z', 1, '')`, id, record); err != nil {
		t.Fatal(err)
	}
}

// run lets the service work until stop is called.
func (s *scene) run(t testing.TB) (stop func()) {
	t.Helper()
	return s.running(t, s.service)
}

// other lets another process's service work on the same store.
func (s *scene) other(t testing.TB) (stop func()) {
	t.Helper()
	service, err := agent.New(s.options)
	if err != nil {
		t.Fatal(err)
	}
	return s.running(t, service)
}

func (s *scene) running(t testing.TB, service *agent.Service) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var g errgroup.Group
	g.Go(func() error { service.Run(ctx); return nil })
	stop = func() { cancel(); _ = g.Wait() }
	t.Cleanup(stop)
	return stop
}

// work does the one job that comes.
func (s *scene) work(t testing.TB, with error) agent.Job {
	t.Helper()
	job := wait(t, s.worker.begun)
	select {
	case s.worker.done <- with:
	case <-time.After(20 * time.Second):
		t.Fatal("the job was given up")
	}
	return job
}

func wait[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// decoded is JSON as Go has it, numbers as their text.
func decoded(t testing.TB, text []byte) map[string]any {
	t.Helper()
	var v map[string]any
	d := json.NewDecoder(bytesOf(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %.300q", err, text)
	}
	return v
}
