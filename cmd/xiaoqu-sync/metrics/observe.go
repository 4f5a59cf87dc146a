package metrics

import (
	"errors"
	"slices"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// Observe counts what the runs of an engine did.
func (r *Recorder) Observe(outcomes []sync.Outcome) {
	for _, o := range outcomes {
		r.outcome(o)
	}
}

func (r *Recorder) outcome(o sync.Outcome) {
	resource := r.resource(o.Resource)
	result := other
	if slices.Contains(results(), o.Result) {
		result = string(o.Result)
	}
	r.runs.WithLabelValues(resource, result).Inc()
	if o.Seconds > 0 { // a run that never began has no duration
		r.runSeconds.WithLabelValues(resource).Observe(o.Seconds)
	}
	r.pages.WithLabelValues(resource).Add(float64(o.Pages))
	r.received.WithLabelValues(resource).Add(float64(o.Counts.Received))
	for outcome, n := range outcomes(o.Counts) {
		r.rows.WithLabelValues(resource, outcome).Add(float64(n))
	}
	r.retries.WithLabelValues(resource).Add(float64(o.Retries))
	r.notices.WithLabelValues(resource).Add(float64(o.Notices))
	if o.Result == sync.Synced && o.Reason != "" {
		reason := o.Reason
		if !reasons()[reason] {
			reason = other
		}
		r.rebuilds.WithLabelValues(resource, reason).Inc()
	}
	if errors.As(o.Err, new(*sync.PanicError)) {
		r.panics.Inc()
	}
}

// Page counts a page as it is committed; it fits sync.Options.Watch.
func (r *Recorder) Page(p sync.Progress) {
	r.pageSeconds.WithLabelValues(r.resource(p.Resource)).Observe(p.Took.Seconds())
}

// Wait counts a wait for the remote; it fits sync.Options.Waiting.
func (r *Recorder) Wait(why remote.Code, wait time.Duration) {
	code := codeLabel(why)
	r.waits.WithLabelValues(code).Inc()
	r.waitSeconds.WithLabelValues(code).Add(wait.Seconds())
}

// Call counts a call to the remote; it fits remote.Options.Observe.
func (r *Recorder) Call(tool string, code remote.Code, took time.Duration) {
	if !r.tools[tool] {
		tool = other
	}
	r.calls.WithLabelValues(tool, codeLabel(code)).Inc()
	r.callSeconds.WithLabelValues(tool).Observe(took.Seconds())
}

// SkippedTick counts a tick of the resource that found the run before still at work.
func (r *Recorder) SkippedTick(resource string) {
	r.skipped.WithLabelValues(r.resource(resource)).Inc()
}

// Panicked counts a panic that was caught outside of the engine: Observe counts
// those in outcomes.
func (r *Recorder) Panicked() { r.panics.Inc() }

// KeyVersion notes which version of the service key is in use and since when
// this process knows it. A key that has no version is not told.
func (r *Recorder) KeyVersion(number int64, since time.Time) {
	r.key.Store(&keyVersion{number: number, since: since})
}

func (r *Recorder) resource(name string) string {
	if r.resources[name] {
		return name
	}
	return other
}

func codeLabel(code remote.Code) string {
	switch code {
	case "":
		return "OK"
	case remote.Unauthenticated, remote.PermissionDenied, remote.RateLimited, remote.CursorExpired, remote.InvalidArgument,
		remote.Unreachable, remote.SessionLost, remote.Malformed:
		return string(code)
	}
	return other
}
