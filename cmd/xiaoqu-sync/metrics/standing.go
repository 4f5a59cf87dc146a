package metrics

import (
	"context"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

// standing is how the mirror stands, read when it is scraped: what is recorded in
// PostgreSQL is right on every replica, whoever did the work.
type standing struct {
	opts   Options
	key    *atomic.Pointer[keyVersion]
	turn   chan *answer // one scrape at a time reads; holds the last good answer
	gauges map[string]registered
}

type registered struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// answer is what the last reading of the status came to.
type answer struct {
	status mirror.Status
	at     time.Time // when it was read; zero: never
	errors int64
}

func newStanding(o Options, key *atomic.Pointer[keyVersion]) *standing {
	s := &standing{opts: o, key: key, turn: make(chan *answer, 1), gauges: map[string]registered{}}
	s.turn <- &answer{}
	for _, g := range gauges() {
		s.gauges[g.name] = registered{prometheus.NewDesc(namespace+"_"+g.name, g.help, g.labels, nil), g.kind()}
	}
	return s
}

// Describe is for the registry.
func (s *standing) Describe(out chan<- *prometheus.Desc) {
	for _, g := range s.gauges {
		out <- g.desc
	}
}

// Collect is for the registry. It takes no longer than the time limit, waiting
// for another scrape included.
func (s *standing) Collect(out chan<- prometheus.Metric) {
	send := func(name string, v float64, labels ...string) {
		g := s.gauges[name]
		out <- prometheus.MustNewConstMetric(g.desc, g.kind, v, labels...)
	}
	if k := s.key.Load(); k != nil {
		send("key_version", float64(k.number))
		send("key_version_age_seconds", time.Since(k.since).Seconds())
	}
	if s.opts.Mirror == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Timeout)
	defer cancel()
	select {
	case last := <-s.turn:
		defer func() { s.turn <- last }()
		up := s.read(ctx, last)
		send("database_up", truth(up))
		send("status_read_errors_total", float64(last.errors))
		if last.at.IsZero() {
			return
		}
		send("status_read_timestamp_seconds", unix(last.at))
		send("schema_version", float64(last.status.Version))
		for _, r := range last.status.Resources {
			s.resource(r, send)
		}
	case <-ctx.Done():
		send("database_up", 0)
	}
}

// read brings the answer up to date and tells whether it could.
func (s *standing) read(ctx context.Context, last *answer) bool {
	status, err := s.opts.Mirror.Status(ctx, s.opts.Resources)
	if err != nil {
		last.errors++
		return false
	}
	last.status, last.at = status, time.Now()
	return true
}

type sender func(name string, v float64, labels ...string)

func (s *standing) resource(r mirror.ResourceStatus, send sender) {
	name := r.Resource
	when := func(metric string, t *time.Time) {
		if t != nil {
			send(metric, unix(*t), name)
		}
	}
	// Zero when there was none, so that an alert on its age also finds a mirror
	// that was never complete.
	var success float64
	if r.LastSuccessAt != nil {
		success = unix(*r.LastSuccessAt)
	}
	send("last_success_timestamp_seconds", success, name)
	when("data_cutoff_timestamp_seconds", r.DataCutoffAt)
	if r.AgeSeconds != nil {
		send("data_age_seconds", float64(*r.AgeSeconds), name)
	}
	if e := r.LastError; e != nil {
		send("last_error_timestamp_seconds", unix(e.At), name, errorLabel(e.Code))
	}
	send("rows", float64(r.LiveRows), name, "live")
	send("rows", float64(r.DeletedRows), name, "deleted")
	send("pages_in_hand", float64(r.PagesInHand), name)
	send("quarantined_records", float64(r.Quarantined), name, "refused")
	send("quarantined_records", float64(r.Mended), name, "mended")
	self := r.Lease != nil && r.Lease.Host == s.opts.Self.Host && r.Lease.PID == s.opts.Self.PID
	send("lease_held", truth(self), name, "self")
	send("lease_held", truth(r.Lease != nil && !self), name, "other")
	s.passes(r, send, when)
}

// passes sends what full passes did and the one that is staged.
func (s *standing) passes(r mirror.ResourceStatus, send sender, when func(string, *time.Time)) {
	send("rebuilding", truth(r.Phase == mirror.PhaseRebuild), r.Resource)
	held := r.Pass != nil && r.Pass.Difference != nil
	send("rebuild_held", truth(held), r.Resource)
	if held {
		send("rebuild_held_deletions", float64(r.Pass.Difference.Deletes()), r.Resource)
	}
	when("last_rebuild_timestamp_seconds", r.RebuiltAt)
	when("last_verify_timestamp_seconds", r.VerifiedAt)
	if d := r.VerifiedDrift; d != nil {
		send("verified_drift_rows", float64(d.Inserted+d.Updated+d.Revived+d.Deletes()), r.Resource)
	}
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// errorName is the form of our own words for errors. There is one at a time for
// a resource; what somebody else wrote into the table becomes "other".
var errorName = regexp.MustCompile(`^[A-Z][A-Z_]{0,39}$`)

func errorLabel(code string) string {
	if errorName.MatchString(code) {
		return code
	}
	return other
}
