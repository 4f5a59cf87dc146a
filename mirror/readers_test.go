package mirror_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/views"
)

var columns = views.Definition{
	Columns: []views.Column{
		{Name: "n", Path: "$.n", Type: views.Integer, Index: true},
		{Name: "owner", Path: "$.owner.id", Type: views.Text, Ref: "users.id"},
		{Name: "begun", Path: "$.begun", Type: views.Timestamptz},
	},
	Masked: []string{"$.name"},
	Zone:   "Asia/Shanghai",
}

func (f fixture) views(t testing.TB) {
	t.Helper()
	if _, err := f.Views(t.Context(), "users", columns, false); err != nil {
		t.Fatal(err)
	}
}

func TestWhoListensIsToldOfEveryCommitThatChangedRows(t *testing.T) {
	f := setUp(t)
	conn, err := pgx.Connect(t.Context(), f.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), "listen xiaoqu_changes"); err != nil {
		t.Fatal(err)
	}
	f.commit(t, user("a", ""), user("b", ""))
	f.commit(t, user("a", "")) // nothing changes
	f.commit(t, user("a", gone))
	f.merge(t, f.full(t, mirror.PurposeRebuild, []string{user("b", "")})) // nor here: a is gone already
	f.merge(t, f.full(t, mirror.PurposeRebuild, []string{user("c", "")}))
	var got []string
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		n, err := conn.WaitForNotification(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n.Payload)
	}
	want := []string{`{"resource" : "users", "change_seq" : 2}`, `{"resource" : "users", "change_seq" : 3}`, `{"resource" : "users", "change_seq" : 5}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if top := value[int64](t, f, "select max(change_seq) from xiaoqu.users"); top != 5 {
		t.Errorf("the last change is %d", top)
	}
}

func TestStaleDataCanBeRefused(t *testing.T) {
	f := setUp(t)
	f.checkpoint(t)
	refused := func(age string) *pgconn.PgError {
		t.Helper()
		_, err := f.sql.Exec(t.Context(), "select xiaoqu.assert_fresh('users', $1::text::interval)", age)
		var e *pgconn.PgError
		if err != nil && !errors.As(err, &e) {
			t.Fatal(err)
		}
		return e
	}
	if e := refused("1 year"); e == nil || e.Code != "55000" || e.Message != "the mirror of users was never complete" {
		t.Errorf("never complete: %+v", e)
	}
	f.exec(t, "update xiaoqu_sync.state set last_success_at = now() - interval '2 hours'")
	if e := refused("3 hours"); e != nil {
		t.Errorf("fresh enough: %v", e)
	}
	if e := refused("1 hour"); e == nil || !strings.Contains(e.Message, "02:00:0") || e.Hint == "" {
		t.Errorf("stale: %+v", e)
	}
	if _, err := f.sql.Exec(t.Context(), "select xiaoqu.assert_fresh('nothing', '1 hour')"); err == nil {
		t.Error("a resource that is not there is fresh")
	}
	f.exec(t, "insert into xiaoqu_sync.passes (resource, purpose, epoch, base_seq, started_at, held) values ('users', 'rebuild', 1, 0, now(), true)")
	if !value[bool](t, f, "select held from xiaoqu.freshness") {
		t.Error("a held rebuild does not show in freshness")
	}
}

func TestMisfitsAreCounted(t *testing.T) {
	f := setUp(t)
	f.views(t)
	f.commit(t, user("a", `,"n":1,"begun":"2026-02-30"`), user("b", `,"n":"x"`), user("c", `,"n":[]`), user("d", gone[:]+`,"n":"x"`))
	got, known, err := f.Misfits(t.Context(), "users")
	want := []mirror.Misfit{{Column: "begun", Rows: 1, ID: "a"}, {Column: "n", Rows: 2, ID: "b"}}
	if diff := cmp.Diff(want, got); diff != "" || !known || err != nil {
		t.Errorf("%v, %v %s", known, err, diff)
	}
}

func TestReadersMayReadWhatTheyAreGranted(t *testing.T) {
	f := setUp(t)
	f.views(t)
	f.commit(t, user("a", `,"n":7`))
	open, masked := f.role(t, "open"), f.role(t, "masked")
	if err := errors.Join(f.GrantReader(t.Context(), open, false, nil), f.GrantReader(t.Context(), masked, true, []string{"users"})); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Migrate(t.Context(), []string{"users", "payments"}, false); err != nil { // a resource to come
		t.Fatal(err)
	}
	may := func(role, sql string) bool { return f.as(t, role, sql) == nil }
	for sql, who := range map[string][2]bool{
		"select n from xiaoqu.users_live":           {true, false},
		"select record from xiaoqu.users":           {true, false},
		"select * from xiaoqu.users_misfits":        {true, false},
		"select * from xiaoqu.payments_live":        {true, false},
		"select n, record from xiaoqu.users_masked": {true, true},
		"select * from xiaoqu.freshness":            {true, true},
		"select id, change_seq, deleted_at, modify_time, synced_at from xiaoqu.users where change_seq > 0": {true, true},
		"select 1 from xiaoqu.users where record is null":                                                  {true, false},
		"select version from xiaoqu.users":                                                                 {true, false},
		"select xiaoqu.assert_fresh('users', '1 year')":                                                    {false, false}, // never complete: that is its answer
		"update xiaoqu.users set version = '1'":                                                            {false, false},
		"select * from xiaoqu_sync.state":                                                                  {false, false},
		"select 1 from xiaoqu.users_masked where n is not null":                                            {true, true},
	} {
		if got := [2]bool{may(open, sql), may(masked, sql)}; got != who {
			t.Errorf("%s: %v, want %v", sql, got, who)
		}
	}
	err := f.GrantReader(t.Context(), "nobody_of_this_name", false, nil)
	wantKind(t, err, mirror.KindConfig)
}

// Functions that a view calls are called with the reader's rights.
func TestReadersCanReadWhereFunctionsAreNotEverybodys(t *testing.T) {
	f := fixture{url: localpg.Database(t)}
	f.Mirror, f.sql = open(t, f.url), connect(t, f.url)
	f.exec(t, "alter default privileges revoke execute on functions from public")
	t.Cleanup(func() {
		_, _ = f.sql.Exec(context.Background(), "alter default privileges grant execute on functions to public")
	})
	if _, err := f.Migrate(t.Context(), []string{"users"}, false); err != nil {
		t.Fatal(err)
	}
	f.views(t)
	f.commit(t, user("a", `,"n":7`))
	for name, masked := range map[string]bool{"all": false, "masked": true} {
		role := f.role(t, "strict_"+name)
		if err := f.GrantReader(t.Context(), role, masked, []string{"users"}); err != nil {
			t.Fatal(err)
		}
		view := map[bool]string{false: "xiaoqu.users_live", true: "xiaoqu.users_masked"}[masked]
		if err := f.as(t, role, "select n, begun, record from "+view); err != nil {
			t.Errorf("%s: %v", view, err)
		}
	}
}

func TestAMaskedReaderReadsNothingElse(t *testing.T) {
	f := setUp(t)
	f.views(t)
	role, everything := f.role(t, "once_open"), f.role(t, "everything")
	users := []string{"users"}
	if err := errors.Join(f.GrantReader(t.Context(), role, false, nil), f.GrantReader(t.Context(), role, true, users)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Migrate(t.Context(), []string{"users", "payments"}, false); err != nil { // a resource to come
		t.Fatal(err)
	}
	for _, view := range []string{"users", "users_live", "users_all", "users_misfits", "payments", "payments_live"} {
		if f.as(t, role, "select * from xiaoqu."+view) == nil {
			t.Errorf("it reads %s", view)
		}
	}
	if err := f.as(t, role, "select * from xiaoqu.users_masked"); err != nil {
		t.Error(err)
	}
	// What comes from another role is not ours to take: it is said, and nothing is granted.
	f.exec(t, "grant select on xiaoqu.users_live to "+everything)
	member := f.role(t, "member")
	f.exec(t, "grant "+everything+" to "+member)
	e := wantKind(t, f.GrantReader(t.Context(), member, true, users), mirror.KindConfig)
	if !strings.Contains(e.Message, "users_live") || value[bool](t, f, "select has_table_privilege('"+member+"', 'xiaoqu.users_masked', 'select')") {
		t.Errorf("%v", e)
	}
}

// role is a new role of the test's.
func (f fixture) role(t *testing.T, name string) string {
	t.Helper()
	role := fmt.Sprintf("%s_%d", name, os.Getpid())
	f.exec(t, "create role "+role)
	t.Cleanup(func() {
		_, _ = f.sql.Exec(context.Background(), "drop owned by "+role)
		_, _ = f.sql.Exec(context.Background(), "drop role "+role)
	})
	return role
}

// as does something with a role's rights.
func (f fixture) as(t *testing.T, role, sql string) error {
	t.Helper()
	tx, err := f.sql.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), "set local role "+role+"; "+sql)
	return err
}

var updateSchema = flag.Bool("update-schema", false, "write testdata/reader-schema.txt")

// The readers' schema is a public interface: every change of it shows in review.
func TestTheReadersSchemaIsAsPromised(t *testing.T) {
	f := setUp(t)
	f.views(t)
	got := value[string](t, f, `
		select string_agg(line, E'\n' order by line collate "C") || E'\n' from (
			select format('%s %s: %s', case c.relkind when 'v' then 'view' when 'r' then 'table' else c.relkind::text end, c.relname,
				(select string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' not null' else '' end, ', ' order by a.attnum)
				 from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)) as line
			from pg_class c where c.relnamespace = 'xiaoqu'::regnamespace and c.relkind in ('r', 'v')
			union all
			select 'index ' || regexp_replace(pg_get_indexdef(i.indexrelid), '^CREATE ', '') from pg_index i join pg_class c on c.oid = i.indrelid where c.relnamespace = 'xiaoqu'::regnamespace
			union all
			select format('function %s(%s) returns %s', p.proname, pg_get_function_identity_arguments(p.oid), pg_get_function_result(p.oid))
			from pg_proc p where p.pronamespace = 'xiaoqu'::regnamespace) x`)
	const file = "testdata/reader-schema.txt"
	if *updateSchema {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("the readers' schema changed; if that is meant: go test ./mirror -run Promised -update-schema\n%s", diff)
	}
}
