package mirror

import (
	"encoding/json"
	"testing"
	"time"
)

// DecodeRows is the Go half of Commit, for the benchmark.
func DecodeRows(records []json.RawMessage, zone *time.Location) int {
	return len(NewBatch(records, zone).rows)
}

// Zone is the default time zone.
func Zone(t testing.TB) *time.Location { return shanghai(t) }
