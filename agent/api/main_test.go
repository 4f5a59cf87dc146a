package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/api"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/store"
	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

func TestMain(m *testing.M) { os.Exit(localpg.Main(m)) }

// world is a door with a database behind it, and a caller in front.
type world struct {
	store   *store.Store
	service *agent.Service
	url     string
	log     *observer.ObservedLogs
	fail    error // what the mirror's status fails with
	jobs    chan agent.Job
}

// Status stands in for the mirror's own: the core rooms are not known here.
func (w *world) Status(context.Context, []string) ([]agent.Status, error) {
	return []agent.Status{{Resource: "users", Phase: "incremental", LiveRows: 1}}, w.fail
}

func (w *world) Quarantine(context.Context, string, int64, int) ([]agent.Quarantined, error) {
	return nil, w.fail
}

// Work is a worker's whose job is done at once.
func (w *world) Work(_ context.Context, job agent.Job) (agent.Report, error) {
	w.jobs <- job
	return agent.Report{Resources: []agent.ResourceReport{{Resource: "users", Outcome: "done", Inserted: 2}}}, w.fail
}

// view is the mirror as the catalogue reads it.
type view struct {
	*store.Store
	*world
}

func (v view) Status(ctx context.Context, rs []string) ([]agent.Status, error) {
	return v.world.Status(ctx, rs)
}

func setUp(t testing.TB) *world {
	t.Helper()
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
	const insert = `insert into xiaoqu.users (id, record, synced_at, change_seq, content_hash) values ('1', '{"name":"王","n":1.10,"mobile":"13800001234"}', now(), 7, '')`
	if _, err := pool.Exec(t.Context(), insert); err != nil {
		t.Fatal(err)
	}
	w := &world{jobs: make(chan agent.Job, 8)}
	resources := []agent.Resource{{Name: "users"}}
	if w.store, err = store.Open(t.Context(), store.Options{URL: localpg.Door(url), Resources: resources}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.store.Close)
	core, log := observer.New(zap.DebugLevel)
	w.log = log
	w.service, err = agent.New(agent.Options{
		Mirror: view{w.store, w}, Worker: w, Tasks: w.store, Outbox: w.store, Resources: resources, Allow: agent.Writing(), Logger: zap.New(core),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api.New(api.Options{Service: w.service, Tokens: w.store, PublicURL: "https://agents.example.com"}).Handler())
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// run works on tasks until the test ends.
func (w *world) run(t testing.TB) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); w.service.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
}

func (w *world) token(t testing.TB, name string, scopes ...string) string {
	t.Helper()
	secret, err := w.store.AddToken(t.Context(), name, scopes, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// reply is an answer as a caller reads it, with no type of the door's.
type reply struct {
	status int
	header http.Header
	text   string
	OK     *bool           `json:"ok"`
	Data   json.RawMessage `json:"data"`
	Error  *struct {
		Code        string          `json:"code"`
		Message     string          `json:"message"`
		Details     json.RawMessage `json:"details"`
		Retryable   *bool           `json:"retryable"`
		Suggestions []string        `json:"suggestions"`
		RequestID   string          `json:"request_id"`
	} `json:"error"`
	Meta *struct {
		OperationID   string    `json:"operation_id"`
		Timestamp     time.Time `json:"timestamp"`
		SchemaVersion string    `json:"schema_version"`
	} `json:"meta"`
}

func (w *world) call(t testing.TB, method, path, token, body string, header ...string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := reply{status: res.StatusCode, header: res.Header, text: string(text)}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%s %s: %q is no envelope: %v", method, path, text, err)
	}
	return out
}

// sound fails the test when the reply is not the envelope that AgentUse asks for.
func (r reply) sound(t testing.TB) reply {
	t.Helper()
	switch {
	case r.OK == nil || r.Meta == nil || r.Meta.OperationID == "" || r.Meta.Timestamp.IsZero() || r.Meta.SchemaVersion != "1.0":
		t.Errorf("no envelope: %s", r.text)
	case *r.OK && (len(r.Data) == 0 || r.Error != nil || r.status >= 300):
		t.Errorf("ok, and not: %d %s", r.status, r.text)
	case !*r.OK && (r.Error == nil || r.Error.Code == "" || r.Error.Message == "" || r.Error.Retryable == nil || len(r.Error.Details) == 0 || r.Error.Suggestions == nil || r.Error.RequestID == "" || r.status < 400):
		t.Errorf("a failure that is not whole: %d %s", r.status, r.text)
	}
	return r
}
