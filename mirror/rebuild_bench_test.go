package mirror_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

// benchRows is how many rows the rebuild benchmarks use, unless
// XIAOQU_BENCH_ROWS says otherwise.
func benchRows(b *testing.B) int {
	text := os.Getenv("XIAOQU_BENCH_ROWS")
	if text == "" {
		return 200_000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < pageSize {
		b.Fatalf("XIAOQU_BENCH_ROWS=%s", text)
	}
	return n / pageSize * pageSize
}

// durable is a fixture on a server that keeps what it committed, as real ones do.
func durable(b *testing.B) fixture {
	b.Helper()
	c, err := localpg.Start(b.Context(), localpg.Options{Durable: true, Settings: map[string]string{"max_wal_size": "8GB"}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Stop() })
	f := fixture{url: c.URL("postgres")}
	f.Mirror, f.sql = open(b, f.url), connect(b, f.url)
	if _, err := f.Migrate(b.Context(), []string{"users"}, false); err != nil {
		b.Fatal(err)
	}
	return f
}

// stagePass stages n rows of the version; different of them, spread evenly, are one ahead.
func stagePass(b *testing.B, f fixture, reason string, n, different int) mirror.Pass {
	p, err := f.BeginPass(b.Context(), f.checkpoint(b), mirror.PurposeRebuild, reason)
	if err != nil {
		b.Fatal(err)
	}
	for from := 0; from < n; from += pageSize {
		records := people(from, pageSize, 1)
		for i := range records {
			if (from+i)*different/n != (from+i+1)*different/n {
				records[i] = person(from+i, 2)
			}
		}
		p = stage(b, f, p, from+pageSize == n, records)
	}
	return p
}

func stage(b *testing.B, f fixture, p mirror.Pass, last bool, records []json.RawMessage) mirror.Pass {
	s := mirror.StageStep{Before: p, After: p.At, Batch: mirror.NewBatch(records, time.UTC), Last: last}
	if last {
		s.After.SyncToken = "t"
	}
	p, _, err := f.Stage(b.Context(), s)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkStage reports the rate of pages with their checkpoints against one raw
// COPY of as many rows into a table of the same shape, in turns. As in the engine a
// page is judged while the one before it commits; the raw rows cost no judging.
func BenchmarkStage(b *testing.B) {
	f, n := durable(b), benchRows(b)
	var staged, raw time.Duration
	for b.Loop() {
		raw += rawCopy(b, f, n)
		p, err := f.BeginPass(b.Context(), f.checkpoint(b), mirror.PurposeRebuild, "REQUESTED")
		if err != nil {
			b.Fatal(err)
		}
		pages := make(chan []json.RawMessage, n/pageSize)
		for from := 0; from < n; from += pageSize {
			pages <- people(from, pageSize, 1)
		}
		close(pages)
		judged := make(chan *mirror.Batch)
		began := time.Now()
		go func() {
			defer close(judged)
			for page := range pages {
				judged <- mirror.NewBatch(page, time.UTC)
			}
		}()
		for batch := range judged {
			if p, _, err = f.Stage(b.Context(), mirror.StageStep{Before: p, After: p.At, Batch: batch}); err != nil {
				b.Fatal(err)
			}
		}
		staged += time.Since(began)
	}
	b.ReportMetric(float64(n*b.N)/staged.Seconds(), "rows/s")
	b.ReportMetric(raw.Seconds()/staged.Seconds(), "of-raw-copy")
}

// rawCopy is one COPY in binary format from memory, committed once.
func rawCopy(b *testing.B, f fixture, n int) time.Duration {
	conn, err := pgx.Connect(b.Context(), f.url)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context())
	if _, err := conn.Exec(b.Context(), "drop table if exists raw; create table raw (like xiaoqu_sync.staging_users including all)"); err != nil {
		b.Fatal(err)
	}
	rows := mirror.CopyPages(mirror.NewBatch(people(0, pageSize, 1), time.UTC), n/pageSize)
	const statement = `copy raw (seq, id, record, modify_time, deleted_at, tombstone, version, snapshot_id, content_hash) from stdin (format binary)`
	began := time.Now()
	if _, err := conn.PgConn().CopyFrom(b.Context(), rows, statement); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// BenchmarkMerge reports a merge's time against that of the staging before it, and
// the WAL that the merge wrote. One that was asked for doubts every row.
func BenchmarkMerge(b *testing.B) {
	for _, c := range []struct {
		reason  string
		percent int
	}{{expired, 0}, {expired, 1}, {"REQUESTED", 1}, {expired, 100}} {
		b.Run(fmt.Sprintf("%s/%d%%", c.reason, c.percent), func(b *testing.B) {
			f, n := durable(b), benchRows(b)
			merge(b, f, stagePass(b, f, c.reason, n, 0))
			var staged, merged time.Duration
			var wal int64
			for i := 0; b.Loop(); i++ {
				began := time.Now()
				p := stagePass(b, f, c.reason, n, n*c.percent/100*((i+1)%2)) // there and back again
				staged += time.Since(began)
				at := value[string](b, f, "select pg_current_wal_insert_lsn()::text")
				merged += merge(b, f, p)
				wal += value[int64](b, f, "select (pg_current_wal_insert_lsn() - $1::text::pg_lsn)::bigint", at)
			}
			b.ReportMetric(merged.Seconds()/staged.Seconds(), "of-staging")
			b.ReportMetric(float64(wal)/float64(b.N), "WAL-B/op")
			b.ReportMetric(merged.Seconds()/float64(b.N), "s/merge")
		})
	}
}

const expired = "SYNC_CURSOR_EXPIRED"

func merge(b *testing.B, f fixture, p mirror.Pass) time.Duration {
	began := time.Now()
	if _, _, err := f.Merge(b.Context(), f.checkpoint(b), p, mirror.Ruling{AcceptDeletes: true}); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}
