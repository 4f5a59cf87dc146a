// Package metrics is what Prometheus sees: counters that the verbs feed while
// they work (Recorder), and gauges read from the mirror's status at the moment
// of a scrape (standing.go). docs/metrics.md lists every one; a test holds the
// page and the code together.
//
// What may not live here: judgements (package sync), SQL (package mirror), and
// pages for people (its neighbour board).
//
// Invariants:
//
//   - Every name begins with xiaoqu_sync_, but for those of the Go runtime and the
//     process, which the handler adds and a textfile leaves out.
//   - No label takes a value from the remote, from a record or from an error's text:
//     resources are those of the configuration, all else is a closed list.
//   - A scrape is bounded in time. When the database is away it answers with the last
//     good answer and says so in xiaoqu_sync_database_up.
package metrics
