package sync_test

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

func TestMain(m *testing.M) {
	modelFlags()
	os.Exit(localpg.Main(m))
}

var all = []string{"users", "properties", "contracts"}

// world is a whole installation: a remote over HTTP, a database, and the real
// parts between them.
type world struct {
	xiaoqu *remotetest.Server
	url    string // of the database, for looking at it
	door   string // the way of the mirror's own connections to it
	holder mirror.Holder
	mirror *mirror.Mirror
	client *remote.Client
	log    *zap.Logger
	limit  int
	// together is how many pages a commit may hold; 0: one, so that a test knows
	// what is committed when the next page is asked for.
	together int
	wait     time.Duration // for a lease
	// maxBytes bounds an answer; 0: the client's own bound.
	maxBytes int64
	timeout  time.Duration // of a call; 0: ten seconds
	watch    func(sync.Progress)
}

// newWorld makes one with a strict remote: a breach of the contract by our
// client fails the test at its end.
func newWorld(t testing.TB, change ...func(*remotetest.Options)) *world {
	t.Helper()
	o := remotetest.Options{Strict: true, Seed: 7, ExtraResources: []string{"payments"}}
	for _, c := range change {
		c(&o)
	}
	w := &world{xiaoqu: remotetest.Start(t, o), url: localpg.Database(t), limit: 10}
	w.door = localpg.Door(w.url)
	w.holder = mirror.Holder{Host: "test", PID: os.Getpid(), Since: time.Now()}
	w.log = zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))
	w.reopen(t)
	if _, err := w.mirror.Migrate(t.Context(), append(all, "payments"), false); err != nil {
		t.Fatal(err)
	}
	w.client = w.connect(t)
	return w
}

// reopen gives the world a mirror with connections of its own.
func (w *world) reopen(t testing.TB) {
	t.Helper()
	m, err := mirror.Open(t.Context(), mirror.Options{URL: w.door, Schema: "xiaoqu", MaxConns: 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	w.mirror = m
}

// limits are those of the calls for changes so far.
func (w *world) limits() []int {
	var ls []int
	for _, c := range w.xiaoqu.Calls() {
		var args struct{ Limit int }
		if strings.HasSuffix(c.Tool, ".changes.list") && json.Unmarshal(c.Args, &args) == nil {
			ls = append(ls, args.Limit)
		}
	}
	return ls
}

// quoted doubles the single quotes of a text within an SQL literal.
func quoted(s string) string { return strings.ReplaceAll(s, "'", "''") }

func (w *world) connect(t testing.TB) *remote.Client {
	t.Helper()
	tokens, err := credentials.New(credentials.Options{
		BaseURL: w.xiaoqu.URL(), ServiceName: "test", Logger: w.log,
		Keys: credentials.FromEnv(func(string) (string, bool) { return w.xiaoqu.Key(), true }, "KEY"),
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := remote.New(remote.Options{BaseURL: w.xiaoqu.URL(), Tokens: tokens, Timeout: cmp.Or(w.timeout, 10*time.Second), Logger: w.log, Version: "test", MaxBytes: w.maxBytes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// run syncs once and returns the outcomes by resource.
func (w *world) run(ctx context.Context, resources ...string) map[string]sync.Outcome {
	return w.task(ctx, (*sync.Engine).Sync, resources...)
}

// mustRun is run where everything must end well.
func (w *world) mustRun(t failer, resources ...string) map[string]sync.Outcome {
	t.Helper()
	by := w.run(t.Context(), resources...)
	for _, o := range by {
		if o.Err != nil || o.Result != sync.Synced {
			t.Fatalf("%s: %s, %v", o.Resource, o.Result, o.Err)
		}
	}
	return by
}

// failer is a test or one of the histories that a property test makes up.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// read runs a query as a reader.
func (w *world) read(t failer, sql string) [][]string {
	t.Helper()
	_, rows, err := localpg.Query(context.WithoutCancel(t.Context()), w.url, sql)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// count is the single number that a query answers.
func (w *world) count(t testing.TB, sql string) int {
	t.Helper()
	n, err := strconv.Atoi(w.read(t, sql)[0][0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// equal fails unless the mirror's live rows are upstream's, record for record
// and digit for digit.
func (w *world) equal(t failer, resources ...string) {
	t.Helper()
	for _, r := range resources {
		got := map[string]any{}
		for _, row := range w.read(t, "select id, record from xiaoqu."+r+"_live") {
			got[row[0]] = exact(t, row[1])
		}
		want := map[string]any{}
		for id, raw := range w.xiaoqu.Live(r) {
			want[id] = exact(t, string(raw))
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: the mirror is not upstream (-upstream +mirror), %d rows against %d:\n%.2000s", r, len(want), len(got), diff)
		}
	}
}

// exact decodes JSON with every number as its text.
func exact(t failer, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("decode %.200s: %v", text, err)
	}
	return v
}

// reset empties the mirror, as if nothing had ever been synchronized.
func (w *world) reset(t testing.TB) {
	t.Helper()
	w.read(t, "truncate xiaoqu.users, xiaoqu.properties, xiaoqu.contracts, xiaoqu_sync.state, xiaoqu_sync.passes")
}

func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	return s[len(s)/2]
}

// task does what an operator may ask of the engine beside a sync.
func (w *world) task(ctx context.Context, task func(*sync.Engine, context.Context, []string) []sync.Outcome, resources ...string) map[string]sync.Outcome {
	by := map[string]sync.Outcome{}
	for _, o := range task(w.engine(), ctx, resources) {
		by[o.Resource] = o
	}
	return by
}

func (w *world) engine() *sync.Engine {
	e := sync.NewEngine(w.client, w.mirror, sync.Options{
		TimeZone: time.UTC, Limit: w.limit, Wait: w.wait, MaxDeleteRatio: 0.3, Clean: func(s string) string { return s }, Logger: w.log, Watch: w.watch,
		Holder: w.holder,
	})
	sync.Together(e, max(w.together, 1))
	return e
}
