package alert_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync/alert"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

func TestMain(m *testing.M) { os.Exit(localpg.Main(m)) }

// What no log, row or message may hold.
const (
	token  = "canarytoken-0123456789abcdef"
	secret = "SECcanarysecret0123456789"
)

// receiver is a target: it keeps what it got and answers as it is told.
type receiver struct {
	*httptest.Server
	got    chan delivery
	answer atomic.Pointer[http.HandlerFunc]
}

type delivery struct {
	header http.Header
	query  string
	body   []byte
}

// took answers as a receiver of every kind that takes the message.
func took(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"errcode":0,"errmsg":"ok","code":0,"msg":"success"}`)
}

func failed(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }

func newReceiver(t testing.TB) *receiver {
	r := &receiver{got: make(chan delivery, 1000)}
	r.answers(took)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.got <- delivery{req.Header, req.URL.RawQuery, body}
		(*r.answer.Load())(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answers(f http.HandlerFunc) { r.answer.Store(&f) }

// drain is all that came so far.
func (r *receiver) drain() []delivery {
	var all []delivery
	for {
		select {
		case d := <-r.got:
			all = append(all, d)
		default:
			return all
		}
	}
}

func (r *receiver) target(kind alert.Kind) alert.Target {
	t := alert.Target{
		Kind: kind, Name: string(kind) + " test",
		URL: credentials.NewSecret(r.URL + "/hook/" + token + "?key=" + token + "&access_token=" + token),
	}
	if kind != alert.WeCom {
		t.Secret = credentials.NewSecret(secret)
	}
	return t
}

// world is a migrated mirror, a receiver, and all that was logged. Nothing
// redacts the log: what must not be in it must not be logged.
type world struct {
	mirror   *mirror.Mirror
	sql      *pgxpool.Pool
	receiver *receiver
	log      *safeBuffer
	logger   *zap.Logger
}

// safeBuffer takes lines from several goroutines.
type safeBuffer struct{ lines chan []byte }

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.lines <- bytes.Clone(p)
	return len(p), nil
}

func (b *safeBuffer) String() string {
	var all strings.Builder
	for {
		select {
		case l := <-b.lines:
			all.Write(l)
		default:
			return all.String()
		}
	}
}

func newWorld(t testing.TB) *world {
	t.Helper()
	url := localpg.Database(t)
	m, err := mirror.Open(t.Context(), mirror.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	if _, err := m.Migrate(t.Context(), resources(), false); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w := &world{mirror: m, sql: pool, receiver: newReceiver(t), log: &safeBuffer{make(chan []byte, 10_000)}}
	w.logger = zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(w.log), zapcore.DebugLevel))
	return w
}

func resources() []string { return []string{"users", "properties", "contracts"} }

func (w *world) options(targets ...alert.Target) alert.Options {
	zone, _ := time.LoadLocation("Asia/Shanghai")
	return alert.Options{
		Store: w.mirror, Targets: targets, Resources: resources(), Instance: "crm 生产", Host: "db-7", Language: "zh", TimeZone: zone,
		StaleAfter: 2 * time.Hour, RemindAfter: 4 * time.Hour, Judge: judge, Logger: w.logger,
		Redact: credentials.NewRedactor().String,
	}
}

// fault is an error with what the judge is to say about it.
type fault struct {
	error
	cause alert.Cause
}

func judge(err error) alert.Cause {
	var f fault
	if errors.As(err, &f) {
		return f.cause
	}
	return alert.Cause{Code: "INTERNAL"}
}

func fails(resource, code string) sync.Outcome {
	return sync.Outcome{Resource: resource, Result: sync.Failed, Mode: "incremental", Err: fault{errors.New("secret text"), alert.Cause{
		Code: code, RequestID: "req-" + resource, Credentials: code == "UNAUTHENTICATED", Passing: code == "UNREACHABLE",
	}}}
}

func ends(resource string, r sync.Result, mode string) sync.Outcome {
	return sync.Outcome{Resource: resource, Result: r, Mode: mode}
}

func (w *world) alerter(t testing.TB, targets ...alert.Target) *alert.Alerter {
	t.Helper()
	if targets == nil {
		targets = []alert.Target{w.receiver.target(alert.JSON)}
	}
	a, err := alert.New(w.options(targets...))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// after observes and flushes, and returns what was told in short: "halt users+contracts".
func (w *world) after(t testing.TB, a *alert.Alerter, outcomes ...sync.Outcome) string {
	t.Helper()
	a.Observe(t.Context(), outcomes)
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w.told(t)
}

func (w *world) told(t testing.TB) string {
	t.Helper()
	var texts []string
	for _, d := range w.receiver.drain() {
		texts = append(texts, short(decode(t, d)))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

func short(e alert.Event) string {
	var names []string
	for _, r := range e.Resources {
		name := r.Resource
		if e.Class == alert.Recovered {
			name += "/" + string(r.Class)
		}
		names = append(names, name)
	}
	text := string(e.Class) + " " + strings.Join(names, "+")
	if e.Reminder {
		text = "again " + text
	}
	return text
}

// later lets time pass for what is to be told.
func (w *world) later(t testing.TB, by string) {
	t.Helper()
	w.exec(t, "update xiaoqu_sync.alerts set due_at = due_at - $1::text::interval, told_at = told_at - $1::text::interval", by)
}

func (w *world) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := w.sql.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// rows are the alerts as the database has them, in one text.
func (w *world) rows(t testing.TB) string {
	t.Helper()
	rows, err := w.sql.Query(context.WithoutCancel(t.Context()), "select a::text from xiaoqu_sync.alerts a order by 1")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
