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

// filled is a house with so many contracts, typed views, and the same columns in a table made by hand.
func filled(b *testing.B, rows int) house {
	h := newHouse(b)
	h.exec(b, `insert into xiaoqu.contracts (id, record, synced_at, change_seq, content_hash)
		select i::text, jsonb_build_object('status', 's' || i % 7, 'fee', jsonb_build_object('amount', i), 'at', '2026-09-14T18:20:31', 'note', repeat('x', 300)), now(), i, ''
		from generate_series(1, $1::bigint) i`, rows)
	h.apply(b, define(column("status", "$.status", views.Text), column("amount", "$.fee.amount", views.Numeric), column("at", "$.at", views.Timestamptz)))
	h.exec(b, `create table public.by_hand as select id, status, amount, at from xiaoqu.contracts_live; alter table public.by_hand add primary key (id)`)
	h.exec(b, "vacuum analyze public.by_hand")
	h.exec(b, "vacuum analyze xiaoqu.contracts")
	return h
}

// BenchmarkKeyedRead reads rows by id through the live view and from a table made
// by hand, in turn, and reports how many times as long the view takes.
func BenchmarkKeyedRead(b *testing.B) {
	h := filled(b, 100_000)
	conn, err := h.pool.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	read := func(from string, n int) time.Duration {
		began := time.Now()
		for i := range n {
			var status string
			var amount, at any
			id := fmt.Sprint(1 + i*7919%100_000)
			if err := conn.QueryRow(b.Context(), "select status, amount, at from "+from+" where id = $1", id).Scan(&status, &amount, &at); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(began)
	}
	var ratios []float64
	for range max(b.N, 5) {
		ratios = append(ratios, float64(read("xiaoqu.contracts_live", 500))/float64(read("public.by_hand", 500)))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "view/table")
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
