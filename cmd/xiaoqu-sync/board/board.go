package board

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

// requestTime bounds the work on one request.
const requestTime = 5 * time.Second

// Mirror is what the page reads. *mirror.Mirror is one.
type Mirror interface {
	Status(ctx context.Context, resources []string) (mirror.Status, error)
	Runs(ctx context.Context, resource string, limit int) ([]mirror.Run, error)
	Reasons(ctx context.Context, resources []string) ([]mirror.Reason, error)
}

// Tick says when a resource is due.
type Tick struct {
	Next time.Time     // of the next run; zero: not known
	Late time.Duration // since the last success, beyond which something is wrong; 0: never
}

// Options say what the board shows. Mirror, Ready and Metrics are required.
type Options struct {
	Resources []string // of the configuration, in the page's order
	Mirror    Mirror
	// Ready returns why this process cannot be relied on, nil when it can. It is
	// asked with a context that is bounded in time.
	Ready   func(ctx context.Context) error
	Metrics http.Handler
	// Timetable is asked for each page; nil: there is none.
	Timetable func(resource string) Tick
	// Retryable tells the codes of errors that a later run may cure by itself; nil: none.
	Retryable func(code string) bool
	// Redact takes secrets out of a text; nil: texts are left as they are.
	Redact  func(string) string
	Zone    *time.Location // of the times on the page; nil: UTC
	Version string         // of the binary, for the page's foot
	// Hosts are names that the header Host may have on a loopback address beside
	// those of loopback itself, such as that of a proxy in front.
	Hosts  []string
	Logger *zap.Logger // nil: none
}

// board answers requests. turn is held by the one request that reads the mirror.
type board struct {
	opts Options
	page *page
	turn chan struct{}
}

// New makes the handler of all paths. It keeps no goroutine and needs no end.
func New(o Options) http.Handler {
	o = o.filled()
	b := &board{opts: o, page: newPage(), turn: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", b.healthz)
	mux.HandleFunc("GET /readyz", b.readyz)
	mux.Handle("GET /metrics", o.Metrics)
	mux.HandleFunc("GET /{$}", b.status)
	return b.guard(mux)
}

func (o Options) filled() Options {
	if o.Timetable == nil {
		o.Timetable = func(string) Tick { return Tick{} }
	}
	if o.Retryable == nil {
		o.Retryable = func(string) bool { return false }
	}
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

// healthz says that the process answers at all. It asks nobody: a database that
// is away is no reason to restart this process.
func (b *board) healthz(w http.ResponseWriter, _ *http.Request) { b.plain(w, http.StatusOK, "ok") }

func (b *board) readyz(w http.ResponseWriter, r *http.Request) {
	if err := b.opts.Ready(r.Context()); err != nil {
		b.plain(w, http.StatusServiceUnavailable, "not ready: "+oneLine(b.opts.Redact(err.Error())))
		return
	}
	b.plain(w, http.StatusOK, "ready")
}

func (b *board) plain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // a client that has gone has nobody left to tell
}

// errBusy means that other requests kept the mirror for the whole time.
var errBusy = errors.New("board: other requests are being answered; try again")

// reading is everything that a page shows, as it was read.
type reading struct {
	status  mirror.Status
	runs    map[string][]mirror.Run
	reasons []mirror.Reason
}

func (b *board) read(ctx context.Context) (r reading, err error) {
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return r, errBusy
	}
	if r.status, err = b.opts.Mirror.Status(ctx, b.opts.Resources); err != nil {
		return r, err
	}
	if r.reasons, err = b.opts.Mirror.Reasons(ctx, b.opts.Resources); err != nil {
		return r, err
	}
	r.runs = map[string][]mirror.Run{}
	for _, name := range b.opts.Resources {
		if r.runs[name], err = b.opts.Mirror.Runs(ctx, name, chartRuns); err != nil {
			return r, err
		}
	}
	return r, nil
}

// oneLine makes a text fit for one line of a plain answer.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
