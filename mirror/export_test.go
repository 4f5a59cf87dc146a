package mirror

import (
	"encoding/json"
	"io"
	"slices"
	"testing"
	"time"
)

// DecodeRows is the Go half of Commit, for the benchmark.
func DecodeRows(records []json.RawMessage, zone *time.Location) int {
	return len(NewBatch(records, zone).rows)
}

// Zone is the default time zone.
func Zone(t testing.TB) *time.Location { return shanghai(t) }

// CopyPages is the page n times over as one binary copy.
func CopyPages(b *Batch, n int) io.Reader {
	s := staging{snapshot: "snap-1"}
	return newCopyReader(slices.Repeat(b.rows, n), s.encode)
}
