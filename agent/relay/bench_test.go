package relay_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/relay"
)

// One order of records.get over loopback, signed, kept for its id, beside the SQL
// that it runs. p50 is in microseconds.
func BenchmarkRecordsGet(b *testing.B) {
	w := open(b, func(o *relay.Options) { o.Logger = nil })
	conn, err := pgx.Connect(b.Context(), w.url)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(b.Context()) }()
	if _, err := conn.Exec(b.Context(), `insert into xiaoqu.users (id, record, synced_at, change_seq, content_hash)
		select n::text, jsonb_build_object('name', 'user ' || n), now(), n, '' from generate_series(1, 1000) n`); err != nil {
		b.Fatal(err)
	}
	w.mirror.store = w.store
	b.Run("door", func(b *testing.B) {
		p50(b, func(n int) error {
			body := invocation(fmt.Sprintf("ord_%d_%d", b.N, n), "records_get", `{"resource":"users","id":"7"}`)
			r, err := w.relay.try(header(secret, time.Now(), body), body)
			if err == nil && r.Status != "completed" {
				err = fmt.Errorf("%s", r.Raw)
			}
			return err
		})
	})
	b.Run("sql", func(b *testing.B) {
		p50(b, func(n int) error {
			t, _, err := w.store.Begin(b.Context(), agent.Task{
				ID: fmt.Sprintf("task_%d_%d", b.N, n), Door: "bench", Key: fmt.Sprintf("%d_%d", b.N, n), Capability: "records.get", Input: []byte(`{}`),
			}, true, time.Minute)
			if err != nil {
				return err
			}
			r, _, err := w.store.Record(b.Context(), "users", "7")
			if err != nil {
				return err
			}
			_, err = w.store.Finish(b.Context(), t, agent.Outcome{State: agent.Completed, Result: &agent.Result{Data: r.Record}})
			return err
		})
	})
	b.Run("read alone", func(b *testing.B) {
		p50(b, func(int) error {
			_, _, err := w.store.Record(b.Context(), "users", "7")
			return err
		})
	})
}

func p50(b *testing.B, one func(n int) error) {
	b.Helper()
	took := make([]time.Duration, 0, b.N)
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		if err := one(n); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
}
