package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/store"
	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/views"
)

// many fills the table with 5,000 rows and builds the indexes.
func (f fixture) many(t testing.TB) {
	t.Helper()
	layout, err := migrations.NewLayout("xiaoqu")
	if err != nil {
		t.Fatal(err)
	}
	f.exec(t, `insert into xiaoqu.contracts (id, record, synced_at, change_seq, content_hash)
		select i::text, jsonb_build_object('id', i::text, 'status', 's' || i % 500, 'amount', i, 'tags', jsonb_build_array('t' || i % 500), 'mobile', '13800001234',
			'more', repeat('x', 500)), now(), i, ''
		from generate_series(1, 5000) as i`)
	if err := views.ApplyIndexes(t.Context(), f.sql, layout, "contracts", columns); err != nil {
		t.Fatal(err)
	}
	f.exec(t, "analyze xiaoqu.contracts")
}

func (f fixture) plan(t testing.TB, sql string, args ...any) string {
	t.Helper()
	rows, err := f.sql.Query(t.Context(), "explain (analyze, costs off, timing off, summary off) "+sql, append([]any{pgx.QueryExecModeExec}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

func TestReadsUseTheIndexesThatThereAre(t *testing.T) {
	for _, masked := range []bool{false, true} {
		t.Run(fmt.Sprintf("masked %v", masked), func(t *testing.T) {
			f := setUp(t, func(o *store.Options) { o.Masked = masked })
			f.many(t)
			uses := func(index, plan string) {
				t.Helper()
				if !strings.Contains(plan, index) || strings.Contains(plan, "Seq Scan") {
					t.Errorf("%s is not what it uses:\n%s", index, plan)
				}
			}
			record, changes := f.ReadSQL("contracts")
			uses("contracts_pkey", f.plan(t, record, "77"))
			uses("contracts_change_seq", f.plan(t, changes, int64(4000), 201))
			search := func(after string, filters ...agent.Filter) string {
				sql, args := f.SearchSQL(agent.Query{Resource: "contracts", AfterID: after, Limit: 51, Filters: filters})
				return f.plan(t, sql, args...)
			}
			uses("contracts_pkey", search(""))
			uses("contracts_pkey", search("3000"))
			if masked { // a filter sees rows that are masked already, one by one in their order
				uses("contracts_pkey", search("5", filter("status", agent.In, `["s7","s8"]`)))
				return
			}
			uses("contracts_typed_status", search("", filter("status", agent.Equal, `"s7"`)))
			uses("contracts_typed_status", search("5", filter("status", agent.In, `["s7","s8"]`)))
			uses("contracts_typed_tags", search("", filter("tags", agent.Equal, `"t7"`)))
		})
	}
}
