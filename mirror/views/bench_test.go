package views_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/views"
)

const typed = "status, amount, signed_at, begins, months, auto"

// filled is a house with so many contracts of half a kilobyte, typed views, the
// same columns in a table made by hand, and the barest view that could be written,
// which fails on the first value that does not fit.
func filled(b *testing.B, rows int) house {
	h := newHouse(b)
	h.exec(b, `insert into xiaoqu.contracts (id, record, synced_at, change_seq, content_hash)
		select i::text, jsonb_build_object('id', i::text, 'status', 's' || i % 7, 'fee', jsonb_build_object('amount', i + 0.50, 'currency', 'CNY'), 'begins', '2026-09-14',
			'signed_at', '2026-09-14T18:20:31.447+08:00', 'months', i % 36, 'auto', i % 2 = 0, 'note', repeat('x', 300)), now(), i, ''
		from generate_series(1, $1::bigint) i`, rows)
	h.apply(b, define(column("status", "$.status", views.Text), column("amount", "$.fee.amount", views.Numeric), column("signed_at", "$.signed_at", views.Timestamptz),
		column("begins", "$.begins", views.Date), column("months", "$.months", views.Integer), column("auto", "$.auto", views.Boolean)))
	h.exec(b, `create table public.by_hand as select id, record, deleted_at, `+typed+` from xiaoqu.contracts_live; alter table public.by_hand add primary key (id)`)
	h.exec(b, `create view public.barest as select id, record ->> 'status' as status, (record -> 'fee' ->> 'amount')::numeric as amount, (record ->> 'signed_at')::timestamptz as signed_at,
		(record ->> 'begins')::date as begins, (record ->> 'months')::bigint as months, (record ->> 'auto')::boolean as auto from xiaoqu.contracts where deleted_at is null`)
	h.exec(b, "vacuum analyze public.by_hand")
	h.exec(b, "vacuum analyze xiaoqu.contracts")
	return h
}

// BenchmarkKeyedRead reads rows with six typed columns by id, from a table made by
// hand, through the live view and through the barest one, in turn, and reports how
// many times as long as the table's the views' reads take: with statements that are
// prepared once, as most drivers do, and planned each time.
func BenchmarkKeyedRead(b *testing.B) {
	h := filled(b, 100_000)
	conn, err := h.pool.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	read := func(from string, mode pgx.QueryExecMode) float64 {
		const n = 2000
		began := time.Now()
		for i := range n {
			id := fmt.Sprint(1 + i*7919%100_000)
			rows, err := conn.Query(b.Context(), "select "+typed+" from "+from+" where id = $1", mode, id)
			if err != nil {
				b.Fatal(err)
			}
			for rows.Next() {
			}
			if tag := rows.CommandTag(); rows.Err() != nil || tag.RowsAffected() != 1 {
				b.Fatal(tag, rows.Err())
			}
		}
		return float64(time.Since(began).Microseconds()) / n
	}
	for name, mode := range map[string]pgx.QueryExecMode{"prepared": pgx.QueryExecModeCacheStatement, "planned": pgx.QueryExecModeExec} {
		b.Run(name, func(b *testing.B) {
			var view, barest, table []float64
			for range max(b.N, 7) {
				table = append(table, read("public.by_hand", mode))
				view = append(view, read("xiaoqu.contracts_live", mode))
				barest = append(barest, read("public.barest", mode))
			}
			b.ReportMetric(median(table), "µs/table")
			b.ReportMetric(median(view), "µs/view")
			b.ReportMetric(median(view)/median(table), "view/table")
			b.ReportMetric(median(barest)/median(table), "barest/table")
		})
	}
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkReport reads all rows of a view with six typed columns.
func BenchmarkReport(b *testing.B) {
	h := filled(b, 100_000)
	for b.Loop() {
		h.exec(b, "select count(status), sum(amount), max(signed_at), max(begins), sum(months), bool_or(auto) from xiaoqu.contracts_live")
	}
}

// A reader's cursor must be an index range scan, however large the table is.
func BenchmarkChangeCursor(b *testing.B) {
	h := filled(b, 1_000_000)
	rows, err := h.pool.Query(b.Context(), "explain select id, deleted_at, status, change_seq from xiaoqu.contracts_all where change_seq > 500000 order by change_seq limit 500")
	if err != nil {
		b.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if text := strings.Join(plan, "\n"); err != nil || !strings.Contains(text, "Index Scan using contracts_change_seq") || strings.Contains(text, "Sort") {
		b.Fatalf("%v\n%s", err, text)
	}
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		h.exec(b, "select id, deleted_at, status, change_seq from xiaoqu.contracts_all where change_seq > $1 order by change_seq limit 500", i%1000*1000)
	}
}
