package metrics

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

const (
	namespace = "xiaoqu_sync"
	// other stands in a label for what its closed list does not hold.
	other = "other"
	// defaultTimeout bounds the reading of the status: less than the 10 s that
	// Prometheus waits for a scrape.
	defaultTimeout = 3 * time.Second
)

// Status is the part of the mirror that is read at a scrape. *mirror.Mirror is one.
type Status interface {
	Status(ctx context.Context, resources []string) (mirror.Status, error)
}

// Build is what the binary is made of.
type Build struct{ Version, Revision, Go string }

// Options say what is measured.
type Options struct {
	Resources []string      // of the configuration: the values that the label resource can take
	Mirror    Status        // nil: no gauges of the mirror
	Self      mirror.Holder // how this process signs its leases
	Build     Build
	Timeout   time.Duration // for reading the mirror at a scrape; 0: 3 s
}

// Recorder counts what it is told. Its methods may be called from several goroutines.
type Recorder struct {
	resources map[string]bool
	tools     map[string]bool
	registry  *prometheus.Registry // of our own names

	runs        *prometheus.CounterVec // resource, result
	runSeconds  *prometheus.HistogramVec
	pages       *prometheus.CounterVec
	pageSeconds *prometheus.HistogramVec
	received    *prometheus.CounterVec
	rows        *prometheus.CounterVec // resource, outcome
	retries     *prometheus.CounterVec
	notices     *prometheus.CounterVec
	rebuilds    *prometheus.CounterVec // resource, reason
	skipped     *prometheus.CounterVec
	panics      prometheus.Counter
	calls       *prometheus.CounterVec   // tool, code
	callSeconds *prometheus.HistogramVec // tool
	waits       *prometheus.CounterVec   // code
	waitSeconds *prometheus.CounterVec   // code
	key         atomic.Pointer[keyVersion]
}

type keyVersion struct {
	number int64
	since  time.Time
}

// New makes a Recorder with a registry of its own: nothing global is touched.
func New(o Options) *Recorder {
	r := &Recorder{
		resources: set(o.Resources...),
		tools:     set("initialize", "tools/list", "integration.context.get"),
		registry:  prometheus.NewRegistry(),
	}
	for _, name := range o.Resources {
		r.tools[name+".changes.list"] = true
	}
	factory := promauto.With(r.registry)
	r.makeRuns(factory)
	r.makeCalls(factory)
	info := factory.NewGaugeVec(opts("build_info", "What the binary is made of; always 1."), []string{"version", "revision", "go_version"})
	info.WithLabelValues(o.Build.Version, o.Build.Revision, o.Build.Go).Set(1)
	r.zero(o.Resources)
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	r.registry.MustRegister(newStanding(o, &r.key))
	return r
}

func opts(name, help string) prometheus.GaugeOpts {
	return prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}
}

func counter(name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts(opts(name, help))
}

func histogram(name, help string, buckets ...float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}
}

// makeRuns makes what outcomes and the timetable feed. Buckets reach from a tick
// without changes to a first sync of hours.
func (r *Recorder) makeRuns(factory promauto.Factory) {
	resource := []string{"resource"}
	r.runs = factory.NewCounterVec(counter("runs_total", "Runs that ended, by result."), []string{"resource", "result"})
	r.runSeconds = factory.NewHistogramVec(histogram("run_duration_seconds", "How long runs took.",
		.1, .3, 1, 3, 10, 30, 60, 300, 900, 3600, 10800), resource)
	r.pages = factory.NewCounterVec(counter("pages_total", "Pages committed, counted when their run ends."), resource)
	r.pageSeconds = factory.NewHistogramVec(histogram("page_duration_seconds", "How long a commit took, of one page or of those that had waited, with all tries; counted at once.",
		.005, .01, .025, .05, .1, .25, .5, 1, 5, 30), resource)
	r.received = factory.NewCounterVec(counter("records_received_total", "Records that the remote sent, counted when their run ends."), resource)
	r.rows = factory.NewCounterVec(counter("rows_total", "What became of records; staged ones count again when a rebuild is merged."), []string{"resource", "outcome"})
	r.retries = factory.NewCounterVec(counter("retries_total", "Calls to the remote and writes to the mirror that were made again."), resource)
	r.notices = factory.NewCounterVec(counter("notices_total", "Notices of the remote, such as a limit that it cut."), resource)
	r.rebuilds = factory.NewCounterVec(counter("rebuilds_total", "Rebuilds that were merged, by why they began."), []string{"resource", "reason"})
	r.skipped = factory.NewCounterVec(counter("skipped_ticks_total", "Ticks of the timetable that found the run before still at work."), resource)
	r.panics = factory.NewCounter(counter("panics_total", "Panics that were caught; each is a bug, with its stack in the log."))
}

// makeCalls makes what the remote's client and its waits feed.
func (r *Recorder) makeCalls(factory promauto.Factory) {
	code := []string{"code"}
	r.calls = factory.NewCounterVec(counter("remote_calls_total", "Calls to the remote that ended, by tool and by code (OK when well)."), []string{"tool", "code"})
	r.callSeconds = factory.NewHistogramVec(histogram("remote_call_duration_seconds", "How long calls to the remote took.",
		.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30), []string{"tool"})
	r.waits = factory.NewCounterVec(counter("remote_waits_total", "Waits before the remote was asked again, by why; RATE_LIMITED is its rate limit."), code)
	r.waitSeconds = factory.NewCounterVec(counter("remote_wait_seconds_total", "Seconds of such waits, counted as each begins."), code)
}

// zero makes the series that a rule may ask for before their first event, so
// that the first event is an increase.
func (r *Recorder) zero(resources []string) {
	for _, name := range resources {
		for _, v := range []*prometheus.CounterVec{r.pages, r.received, r.retries, r.notices, r.skipped} {
			v.WithLabelValues(name)
		}
		for _, result := range results() {
			r.runs.WithLabelValues(name, string(result))
		}
		for outcome := range outcomes(mirror.Counts{}) {
			r.rows.WithLabelValues(name, outcome)
		}
		for reason := range reasons() {
			r.rebuilds.WithLabelValues(name, reason)
		}
	}
	for _, code := range []remote.Code{remote.RateLimited, remote.Unreachable, remote.Malformed} {
		r.waits.WithLabelValues(string(code))
		r.waitSeconds.WithLabelValues(string(code))
	}
}

func set(names ...string) map[string]bool {
	s := map[string]bool{}
	for _, n := range names {
		s[n] = true
	}
	return s
}

// results are all that a run can end with.
func results() []sync.Result {
	return []sync.Result{
		sync.Synced, sync.SteppedAside, sync.Planned, sync.Aborted, sync.Verified, sync.Drifted, sync.Held, sync.Failed, sync.Interrupted,
	}
}

// reasons are why a rebuild begins.
func reasons() map[string]bool { return set(string(remote.CursorExpired), "REQUESTED", other) }

// outcomes are what became of records, by the label's value.
func outcomes(c mirror.Counts) map[string]int64 {
	return map[string]int64{
		"inserted": c.Inserted, "updated": c.Updated, "deleted": c.Deleted, "revived": c.Revived,
		"unchanged": c.Unchanged, "duplicate": c.Duplicates, "quarantined": c.Quarantined, "staged": c.Staged,
	}
}
