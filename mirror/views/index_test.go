package views_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/views"
)

func TestIndexesAreBuiltUsedAndTakenAway(t *testing.T) {
	h := newHouse(t)
	h.exec(t, `insert into xiaoqu.contracts (id, record, synced_at, change_seq, content_hash)
		select i::text, jsonb_build_object('status', 's' || i % 1000, 'tags', jsonb_build_array('t' || i)), now(), i, '' from generate_series(1, 5000) i`)
	h.exec(t, "analyze xiaoqu.contracts")
	status, tags := column("status", "$.status", views.Text), column("tags", "$.tags", views.Texts)
	status.Index, tags.Index = true, true
	d := define(status, tags)
	h.apply(t, d)
	indexes := func(d views.Definition) string {
		if err := views.ApplyIndexes(t.Context(), h.pool, h.layout, "contracts", d); err != nil {
			t.Fatal(err)
		}
		return h.text(t, "select string_agg(indexrelid::regclass::text || ':' || indexrelid::regclass::oid, ' ' order by 1) from pg_index where indrelid = 'xiaoqu.contracts'::regclass and indexrelid::regclass::text like '%typed%'")
	}
	first := indexes(d)
	if !strings.Contains(first, "contracts_typed_status") || !strings.Contains(first, "contracts_typed_tags") {
		t.Fatal(first)
	}
	for _, where := range []string{"status = 's7'", "tags @> '{t17}'"} {
		var plan string
		rows, err := h.pool.Query(t.Context(), "explain select id from xiaoqu.contracts_live where "+where)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if plan = strings.Join(lines, "\n"); err != nil || !strings.Contains(plan, "contracts_typed") {
			t.Errorf("%s does not use its index: %v\n%s", where, err, plan)
		}
	}
	if again := indexes(d); again != first {
		t.Errorf("built again: %s, then %s", first, again)
	}
	// One that a killed process left unfinished is built anew.
	h.exec(t, "update pg_index set indisvalid = false where indexrelid = 'xiaoqu.contracts_typed_status'::regclass")
	if again := indexes(d); again == first {
		t.Error("an unfinished index stayed")
	}
	d.Columns[0].Path, d.Columns[1].Index = "$.state", false
	h.apply(t, d)
	if last := indexes(d); strings.Contains(last, "tags") || last == first {
		t.Error(last)
	}
}

// An index takes no value of more than a third of a page: it must not keep the row out.
func TestAValueThatIsTooLongForItsIndexIsAMisfit(t *testing.T) {
	h := newHouse(t)
	d := define(column("t", "$.t", views.Text), column("n", "$.n", views.Numeric), column("l", "$.l", views.Texts), column("free", "$.t", views.Text))
	for i := range 3 {
		d.Columns[i].Index = true
	}
	h.apply(t, d)
	if err := views.ApplyIndexes(t.Context(), h.pool, h.layout, "contracts", d); err != nil {
		t.Fatal(err)
	}
	long := h.text(t, "select string_agg(md5(i::text), '') from generate_series(1, 500) i") // does not compress
	digits := strings.NewReplacer("a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6").Replace(long)
	h.put(t, "long", fmt.Sprintf(`{"t":%q,"n":%s,"l":["a",%q]}`, long, "9"+digits, long))
	h.put(t, "scale", fmt.Sprintf(`{"n":0.%s}`, digits))
	h.put(t, "good", `{"t":"a","n":1.50,"l":["a",null]}`)
	if got := h.text(t, "select string_agg(concat_ws(' ', id, t, n, l, length(free)), ', ' order by id) from xiaoqu.contracts_live"); got != "good a 1.50 {a,NULL} 1, long 16000, scale" {
		t.Error(got)
	}
	if got := h.text(t, "select string_agg(concat_ws(' ', id, name), ', ' order by id, name) from xiaoqu.contracts_misfits"); got != "long l, long n, long t, scale n" {
		t.Error(got)
	}
}

func TestIndexesThatAreBeingBuiltAreLeftToWhoBuildsThem(t *testing.T) {
	h := newHouse(t)
	h.exec(t, `insert into xiaoqu.contracts (id, record, synced_at, change_seq, content_hash)
		select i::text, jsonb_build_object('status', 's' || i), now(), i, '' from generate_series(1, 20000) i`)
	status := column("status", "$.status", views.Text)
	status.Index = true
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			errs <- views.ApplyIndexes(context.WithoutCancel(t.Context()), h.pool, h.layout, "contracts", define(status))
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := h.text(t, "select count(*) || ' ' || bool_and(indisvalid) from pg_index where indrelid = 'xiaoqu.contracts'::regclass and indexrelid::regclass::text like '%typed%'"); got != "1 true" {
		t.Error(got)
	}
}
