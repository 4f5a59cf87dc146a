package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent/store"
)

// Through the store a record costs one round trip, as by itself. It cannot be
// prepared, because a pooler in transaction mode may stand between.
func BenchmarkRecord(b *testing.B) {
	f := setUp(b)
	f.many(b)
	f.exec(b, "grant usage on schema xiaoqu to pg_read_all_data")
	reader := f
	reader.options.ReaderRole = "pg_read_all_data"
	reader.Store = must(store.Open(b.Context(), reader.options))(b)
	b.Cleanup(reader.Close)
	sql, _ := f.ReadSQL("contracts")
	for name, args := range map[string][]any{"bare SQL": {pgx.QueryExecModeExec, "77"}, "bare SQL, prepared": {"77"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				rows, err := f.sql.Query(b.Context(), sql, args...)
				if err != nil {
					b.Fatal(err)
				}
				for rows.Next() {
					rows.RawValues()
				}
				if rows.Err() != nil {
					b.Fatal(rows.Err())
				}
			}
		})
	}
	for name, s := range map[string]fixture{"as the login": f, "as the reader": reader} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, ok, err := s.Record(b.Context(), "contracts", "77"); err != nil || !ok {
					b.Fatal(ok, err)
				}
			}
		})
	}
}
