package views_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/views"
)

func TestMain(m *testing.M) { os.Exit(localpg.Main(m)) }

// house is a migrated database with a table of contracts.
type house struct {
	pool   *pgxpool.Pool
	layout migrations.Layout
}

func newHouse(t testing.TB) house {
	t.Helper()
	config, err := pgxpool.ParseConfig(localpg.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	layout, err := migrations.NewLayout("xiaoqu")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Apply(t.Context(), pool, layout, []string{"contracts", "users"}, false); err != nil {
		t.Fatal(err)
	}
	return house{pool, layout}
}

func (h house) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := h.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// put stores a record as a sync would.
func (h house) put(t testing.TB, id, record string) {
	t.Helper()
	h.exec(t, `insert into xiaoqu.contracts (id, record, synced_at, change_seq, content_hash) values ($1, $2::jsonb, now(), 1, '')`, id, record)
}

// text is the single value that a query answers, as a text.
func (h house) text(t testing.TB, sql string, args ...any) string {
	t.Helper()
	var text *string
	if err := h.pool.QueryRow(t.Context(), "select ("+sql+")::text", args...).Scan(&text); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if text == nil {
		return "null"
	}
	return *text
}

func (h house) apply(t testing.TB, d views.Definition) {
	t.Helper()
	if _, err := views.Apply(t.Context(), h.pool, h.layout, "contracts", d); err != nil {
		t.Fatal(err)
	}
}

func column(name, path string, typ views.Type) views.Column {
	return views.Column{Name: name, Path: path, Type: typ}
}

func define(columns ...views.Column) views.Definition {
	return views.Definition{Columns: columns, Zone: "Asia/Shanghai"}
}

func TestTypedColumnsAreRightOrNull(t *testing.T) {
	h := newHouse(t)
	for _, tt := range []struct {
		typ         views.Type
		value, want string
	}{
		{views.Text, `"a"`, "a"},
		{views.Text, `1.10`, "1.10"},
		{views.Text, `true`, "true"},
		{views.Text, `null`, "null"},
		{views.Text, `{}`, "null"},
		{views.Text, `[1]`, "null"},
		{views.Numeric, `12345678901234567890.12`, "12345678901234567890.12"},
		{views.Numeric, `" 1.50 "`, "1.50"},
		{views.Numeric, `"1e5"`, "null"},
		{views.Numeric, `"12,5"`, "null"},
		{views.Numeric, `true`, "null"},
		{views.Numeric, `""`, "null"},
		{views.Numeric, `1e400`, "1" + strings.Repeat("0", 400)},
		{views.Integer, `9223372036854775807`, "9223372036854775807"},
		{views.Integer, `9223372036854775808`, "null"},
		{views.Integer, `1.0`, "1"},
		{views.Integer, `1.5`, "null"},
		{views.Integer, `"-7"`, "-7"},
		{views.Integer, `"x"`, "null"},
		{views.Boolean, `true`, "true"},
		{views.Boolean, `"false"`, "false"},
		{views.Boolean, `1`, "true"},
		{views.Boolean, `0`, "false"},
		{views.Boolean, `2`, "null"},
		{views.Boolean, `"yes"`, "null"},
		{views.Date, `"2026-02-28"`, "2026-02-28"},
		{views.Date, `"2026-02-30"`, "null"},
		{views.Date, `"2026-09-14T23:20:31-08:00"`, "2026-09-14"},
		{views.Date, `"0000-00-00"`, "null"},
		{views.Date, `1789381231`, "null"},
		{views.Texts, `["a",1,null]`, "{a,1,NULL}"},
		{views.Texts, `[]`, "{}"},
		{views.Texts, `[{}]`, "null"},
		{views.Texts, `"a"`, "null"},
		{views.JSON, `{"a":[1]}`, `{"a": [1]}`},
		{views.JSON, `null`, "null"},
	} {
		h.exec(t, "truncate xiaoqu.contracts")
		h.put(t, "x", `{"v":`+tt.value+`}`)
		h.apply(t, define(column("v", "$.v", tt.typ)))
		if got := h.text(t, "select v from xiaoqu.contracts_live"); got != tt.want {
			t.Errorf("%s of %s is %s, want %s", tt.typ, tt.value, got, tt.want)
		}
		misfits := h.text(t, "select count(*) from xiaoqu.contracts_misfits")
		if fits := tt.want != "null" || tt.value == "null"; fits != (misfits == "0") {
			t.Errorf("%s of %s: %s misfits", tt.typ, tt.value, misfits)
		}
	}
}

func TestAPathLeadsThroughObjectsAndLists(t *testing.T) {
	h := newHouse(t)
	h.put(t, "x", `{"fee":{"amount":7},"tags":[{"n":"a"},{"n":"b"}],"a key":{"b.c":"d"},"back\\slash":"e","名称":"f"}`)
	h.apply(t, define(column("amount", "$.fee.amount", views.Integer), column("first", "$.tags[0].n", views.Text), column("last", "$.tags[-1].n", views.Text),
		column("keyed", "$['a key']['b.c']", views.Text), column("slash", `$['back\slash']`, views.Text), column("name", "$.名称", views.Text),
		column("nowhere", "$.fee[0].x", views.Text)))
	if got := h.text(t, "select concat_ws(' ', amount, first, last, keyed, slash, name, nowhere) from xiaoqu.contracts_live"); got != "7 a b d e f" {
		t.Error(got)
	}
}

func TestTombstonesAreInAllAndNotInLive(t *testing.T) {
	h := newHouse(t)
	h.put(t, "x", `{"v":1}`)
	h.put(t, "gone", `{"v":2}`)
	h.exec(t, "update xiaoqu.contracts set deleted_at = now(), delete_reason = 'absent' where id = 'gone'")
	h.apply(t, define(column("v", "$.v", views.Integer)))
	if got := h.text(t, "select string_agg(concat(id, v, delete_reason), ' ' order by id) from xiaoqu.contracts_all"); got != "gone2absent x1" {
		t.Error(got)
	}
	if got := h.text(t, "select string_agg(id, ' ') from xiaoqu.contracts_live"); got != "x" {
		t.Error(got)
	}
}

func TestViewsChangeWithoutLosingGrants(t *testing.T) {
	h := newHouse(t)
	role := fmt.Sprintf("reader_%d", os.Getpid())
	h.exec(t, "create role "+role)
	t.Cleanup(func() {
		_, _ = h.pool.Exec(context.Background(), "drop owned by "+role+"; drop role "+role)
	})
	h.apply(t, define(column("a", "$.a", views.Text), column("b", "$.b", views.Text)))
	h.exec(t, "grant usage on schema xiaoqu to "+role)
	h.exec(t, "grant select on xiaoqu.contracts_live to "+role+" with grant option")
	h.exec(t, "grant select (id, b) on xiaoqu.contracts_all to "+role)
	rights := func() string {
		return h.text(t, `select concat_ws(' ', has_table_privilege($1, 'xiaoqu.contracts_live', 'select with grant option'),
			has_column_privilege($1, 'xiaoqu.contracts_all', 'id', 'select'), has_table_privilege($1, 'xiaoqu.contracts_all', 'select'))`, role)
	}
	before := rights()
	// A type changes, a column goes, another comes.
	h.apply(t, define(column("b", "$.b", views.Integer), column("c", "$.c", views.Text)))
	if after := rights(); before != "t t f" || after != before {
		t.Errorf("rights were %s and are %s", before, after)
	}
	if got := h.text(t, "select string_agg(attname, ' ' order by attnum) from pg_attribute where attrelid = 'xiaoqu.contracts_live'::regclass"); got !=
		"id record modify_time version snapshot_id synced_at change_seq deleted_at b c" {
		t.Error(got)
	}
	again, err := views.Apply(t.Context(), h.pool, h.layout, "contracts", define(column("b", "$.b", views.Integer), column("c", "$.c", views.Text)))
	if err != nil || again {
		t.Errorf("made again: %v, %v", again, err)
	}
}

func TestAViewOfSomebodyElsesIsNamedAndStays(t *testing.T) {
	h := newHouse(t)
	h.put(t, "x", `{"a":"1"}`)
	old := define(column("a", "$.a", views.Text))
	h.apply(t, old)
	h.exec(t, "create schema crm; create view crm.report as select a from xiaoqu.contracts_live")
	_, err := views.Apply(t.Context(), h.pool, h.layout, "contracts", define(column("a", "$.a", views.Integer)))
	var dependent *views.DependentError
	if !errors.As(err, &dependent) {
		t.Fatalf("%v", err)
	}
	if diff := cmp.Diff(&views.DependentError{View: "xiaoqu.contracts_live", Dependents: []string{"crm.report"}}, dependent); diff != "" {
		t.Error(diff)
	}
	if got := h.text(t, "select a from crm.report"); got != "1" {
		t.Error(got)
	}
	if pending, err := views.Pending(t.Context(), h.pool, h.layout, "contracts", old); err != nil || pending {
		t.Errorf("half a change stayed: %v, %v", pending, err)
	}
	// More columns touch nobody.
	h.apply(t, define(column("a", "$.a", views.Text), column("b", "$.b", views.Text)))
}

func TestARightThatWasTakenAwayStaysAway(t *testing.T) {
	h := newHouse(t)
	role := fmt.Sprintf("denied_%d", os.Getpid())
	h.exec(t, "create role "+role)
	t.Cleanup(func() {
		_, _ = h.pool.Exec(context.Background(), "drop owned by "+role+"; drop role "+role)
	})
	h.exec(t, "alter default privileges in schema xiaoqu grant select on tables to "+role)
	h.apply(t, define(column("a", "$.a", views.Text)))
	h.exec(t, "revoke select on xiaoqu.contracts_all from "+role)
	h.apply(t, define(column("a", "$.a", views.Integer))) // made anew
	if got := h.text(t, "select concat(has_table_privilege($1, 'xiaoqu.contracts_all', 'select'), has_table_privilege($1, 'xiaoqu.contracts_misfits', 'select'))", role); got != "ft" {
		t.Errorf("rights are %s", got)
	}
}

func TestWhateverStandsOnAViewIsNamed(t *testing.T) {
	for name, tt := range map[string]struct{ make, want string }{
		"a view":              {"create view crm.x as select a from xiaoqu.contracts_live", "crm.x"},
		"a materialized view": {"create materialized view crm.x as select a from xiaoqu.contracts_live", "crm.x"},
		"a function's rows":   {"create function crm.x() returns setof xiaoqu.contracts_live language sql as 'select * from xiaoqu.contracts_live'", "function crm.x()"},
		"a function's body":   {"create function crm.x() returns text begin atomic select a from xiaoqu.contracts_live; end", "function crm.x()"},
		"a table's column":    {"create table crm.x (c xiaoqu.contracts_live)", "crm.x"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.apply(t, define(column("a", "$.a", views.Text)))
			h.exec(t, "create schema crm; "+tt.make)
			_, err := views.Apply(t.Context(), h.pool, h.layout, "contracts", define(column("a", "$.a", views.Integer)))
			var dependent *views.DependentError
			if !errors.As(err, &dependent) || strings.Join(dependent.Dependents, ", ") != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

func TestColumnsThatLeadNowhereAreNamed(t *testing.T) {
	h := newHouse(t)
	d := define(column("there", "$.a.b", views.Text), column("nowhere", "$.a.c", views.Text), column("null", "$.n", views.Text), column("only_dead", "$.d", views.Text))
	unfilled := func() string {
		all, err := views.Unfilled(t.Context(), h.pool, h.layout, "contracts", d)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(all, " ")
	}
	if got := unfilled(); got != "" {
		t.Errorf("without rows: %s", got)
	}
	h.put(t, "x", `{"a":{"b":1},"n":null}`)
	h.put(t, "gone", `{"d":1}`)
	h.exec(t, "update xiaoqu.contracts set deleted_at = now() where id = 'gone'")
	if got := unfilled(); got != "nowhere only_dead" {
		t.Error(got)
	}
}

func TestTheMaskedViewHidesItsPathsEverywhere(t *testing.T) {
	h := newHouse(t)
	h.put(t, "x", `{"mobile":"13800138000","tenant":{"id_number":"110101199001011234","name":"张三"},"tags":["secret-1","open"],"none":null}`)
	h.put(t, "y", `{"mobile":["13800138000"],"tenant":[1],"tags":{}}`)
	d := define(column("mobile", "$.mobile", views.Text), column("number", "$.tenant.id_number", views.Text), column("name", "$.tenant.name", views.Text))
	d.Masked = []string{"$.mobile", "$.tenant", "$.tenant.id_number", "$.tags[0]", "$.none", "$.nowhere.at.all"}
	h.apply(t, d)
	got := h.text(t, "select string_agg(concat_ws(' ', id, mobile, number, name, record), E'\n' order by id) from xiaoqu.contracts_masked")
	want := `x ***00 {"none": null, "tags": ["***-1", "open"], "mobile": "***00", "tenant": "***"}` + "\n" +
		`y *** {"tags": {}, "mobile": "***", "tenant": "***"}`
	if got != want {
		t.Error(got)
	}
	d.Masked = nil
	h.apply(t, d)
	if got := h.text(t, "select to_regclass('xiaoqu.contracts_masked')"); got != "null" {
		t.Error("the masked view stayed")
	}
}

func TestTwoProcessesMakeTheSameViews(t *testing.T) {
	h := newHouse(t)
	d := define(column("v", "$.v", views.Integer))
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			_, err := views.Apply(context.WithoutCancel(t.Context()), h.pool, h.layout, "contracts", d)
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
