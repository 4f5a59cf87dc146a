package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// gauge describes one name of what is read at a scrape.
type gauge struct {
	name, help string // the name without the prefix
	labels     []string
}

func (g gauge) kind() prometheus.ValueType {
	if strings.HasSuffix(g.name, "_total") {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

// gauges are all of them.
func gauges() []gauge {
	var all []gauge
	add := func(name, help string, labels ...string) { all = append(all, gauge{name, help, labels}) }
	add("database_up", "Whether the mirror's status could be read for this very answer; what is below is the last good one.")
	add("status_read_errors_total", "Scrapes that could not read the mirror's status.")
	add("status_read_timestamp_seconds", "When the mirror's status was last read.")
	add("schema_version", "Version of the bookkeeping's schema.")
	add("key_version", "Version of the service key in use, when its store keeps versions.")
	add("key_version_age_seconds", "How long this process has known that version.")

	add("last_success_timestamp_seconds", "When the last complete round ended; 0 when there was none.", "resource")
	add("data_cutoff_timestamp_seconds", "As of when the mirror equals the remote.", "resource")
	add("data_age_seconds", "Since the cut-off, or since the last success when the remote named none, by the database's clock.", "resource")
	add("last_error_timestamp_seconds", "When the last run failed; gone once a round is complete again.", "resource", "code")
	add("rows", "Rows of the readers' table, live or deleted.", "resource", "state")
	add("pages_in_hand", "Pages committed of a round that is not complete.", "resource")
	add("quarantined_records", "Records in quarantine: refused ones are not in the mirror, mended ones are.", "resource", "kind")
	add("lease_held", "Who works on the resource: this process (self) or another one.", "resource", "holder")
	add("rebuilding", "Whether the resource waits for a rebuild or is in one.", "resource")
	add("rebuild_held", "Whether the deletion fuse holds a rebuild: a person decides.", "resource")
	add("rebuild_held_deletions", "Rows that the held rebuild would mark as deleted.", "resource")
	add("last_rebuild_timestamp_seconds", "When a rebuild was last merged.", "resource")
	add("last_verify_timestamp_seconds", "When the mirror was last compared with the remote.", "resource")
	add("verified_drift_rows", "Rows that this comparison found to differ.", "resource")
	return all
}
