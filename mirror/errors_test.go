package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

const canary = "s3cr3t-canary"

// spoken is everything that an error could print.
func spoken(err error) string {
	text := fmt.Sprintf("%v %+v", err, err)
	var e *mirror.Error
	if errors.As(err, &e) {
		text += e.Hint + e.Message + fmt.Sprintf("%+v", e.Err)
	}
	for ; err != nil; err = errors.Unwrap(err) {
		text += err.Error()
	}
	return text
}

func TestBadURLs(t *testing.T) {
	urls := map[string]string{
		"empty":             "",
		"not a URL":         "postgres://u:" + canary + "@host:port/db",
		"bad escape":        "postgres://u:" + canary + "%zz@host/db",
		"bad sslmode":       "postgres://u:" + canary + "@host/db?sslmode=perhaps",
		"no certificate":    "postgres://u:" + canary + "@host/db?sslmode=verify-full&sslrootcert=/does/not/exist",
		"key=value, broken": "host=h password='" + canary,
	}
	for name, text := range urls {
		t.Run(name, func(t *testing.T) {
			_, err := mirror.Open(t.Context(), mirror.Options{URL: text})
			e := wantKind(t, err, mirror.KindConfig)
			if strings.Contains(spoken(err), canary) || e.Hint == "" {
				t.Errorf("%s", spoken(err))
			}
		})
	}
}

func TestConnectionErrors(t *testing.T) {
	good, err := url.Parse(localpg.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	change := func(f func(u *url.URL)) string { u := *good; f(&u); return u.String() }
	tests := []struct {
		name, url, state string
		kind             mirror.Kind
	}{
		{"refused port", change(func(u *url.URL) { u.Host = "127.0.0.1:1"; u.User = url.UserPassword("u", canary) }), "", mirror.KindUnreachable},
		{"no such database", change(func(u *url.URL) { u.Path = "/nowhere" }), "3D000", mirror.KindConfig},
		{"no such user or bad password", change(func(u *url.URL) { u.User = url.UserPassword("nobody-here", canary) }), "28", mirror.KindConfig},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := open(t, tt.url)
			_, err := m.Checkpoint(t.Context(), "users")
			e := wantKind(t, err, tt.kind)
			if !strings.HasPrefix(e.SQLState, tt.state) || e.Hint == "" || strings.Contains(spoken(err), canary) {
				t.Errorf("%s: %s", e.SQLState, spoken(err))
			}
			_, err = m.Lease(t.Context(), "users", mirror.Holder{})
			wantKind(t, err, tt.kind)
			findings, err := m.Probe(t.Context(), []string{"users"})
			wantKind(t, err, tt.kind)
			if len(findings) != 1 || findings[0].Name != "connect" || findings[0].OK {
				t.Errorf("%+v", findings)
			}
		})
	}
}

func TestCancelledContext(t *testing.T) {
	f := setUp(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := step(f.checkpoint(t), user("a", ""))
	cancel()
	_, _, err := f.Commit(ctx, s)
	wantKind(t, err, mirror.KindUnreachable)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	f.commit(t, user("a", ""))
}

// TestServerRefusals raises what a server can answer from a trigger of the
// operator's own, with a value in its text as PostgreSQL puts it there.
func TestServerRefusals(t *testing.T) {
	f := setUp(t)
	if _, err := f.sql.Exec(t.Context(), `create table xiaoqu.trial (code text);
		create function xiaoqu.refuse() returns trigger language plpgsql as $$
		declare c text; begin
			select code into c from xiaoqu.trial;
			if found then raise exception 'about %', new.record using errcode = c, detail = new.record::text; end if;
			return new;
		end $$;
		create trigger refuse before insert on xiaoqu.users for each row execute function xiaoqu.refuse()`); err != nil {
		t.Fatal(err)
	}
	tests := map[string]mirror.Kind{
		"40001": mirror.KindTransient, "40P01": mirror.KindTransient, "55P03": mirror.KindTransient, "57014": mirror.KindTransient,
		"53100": mirror.KindUnreachable, "53300": mirror.KindUnreachable, "57P01": mirror.KindUnreachable, "08006": mirror.KindUnreachable,
		"25006": mirror.KindUnreachable, "42501": mirror.KindDenied, "42P01": mirror.KindSchema, "22P02": mirror.KindData,
		"23514": mirror.KindData, "21000": mirror.KindData, "54000": mirror.KindData, "P0001": mirror.KindInternal, "XX000": mirror.KindInternal,
	}
	for code, kind := range tests {
		t.Run(code, func(t *testing.T) {
			if _, err := f.sql.Exec(t.Context(), "insert into xiaoqu.trial values ('"+code+"')"); err != nil {
				t.Fatal(err)
			}
			before := f.checkpoint(t)
			_, _, err := f.Commit(t.Context(), step(before, user("a", `,"mobile":"`+canary+`"`)))
			e := wantKind(t, err, kind)
			if e.SQLState != code {
				t.Error(e.SQLState)
			}
			if kind == mirror.KindData || kind == mirror.KindInternal {
				if strings.Contains(spoken(err), canary) {
					t.Errorf("the text quotes a record: %s", spoken(err))
				}
			}
			if f.checkpoint(t) != before || len(f.lines(t)) != 0 {
				t.Error("something was written")
			}
			if _, err := f.sql.Exec(t.Context(), "delete from xiaoqu.trial"); err != nil {
				t.Fatal(err)
			}
		})
	}
	f.commit(t, user("a", "")) // the pool is sound
	if n := value[int64](t, f, "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'"); n != 0 {
		t.Errorf("%d connections were left in a transaction", n)
	}
}

// login makes a role with nothing but the right to connect and returns its URL.
func login(t *testing.T, f fixture, grants ...string) string {
	t.Helper()
	name := "role_" + strings.ToLower(strings.NewReplacer("/", "_", "#", "_").Replace(t.Name()))
	if _, err := f.sql.Exec(t.Context(), "create role "+name+" login password 'x'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range []string{"drop owned by " + name + " cascade", "drop role " + name} {
			if _, err := f.sql.Exec(context.WithoutCancel(t.Context()), s); err != nil {
				t.Error(err)
			}
		}
	})
	for _, g := range grants {
		if _, err := f.sql.Exec(t.Context(), g+" to "+name); err != nil {
			t.Fatal(err)
		}
	}
	u, err := url.Parse(f.url)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, "x")
	return u.String()
}

func TestStatusNeedsOnlySelect(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""))
	reader := open(t, login(t, f, "grant usage on schema xiaoqu_sync", "grant select on all tables in schema xiaoqu_sync"))
	status, err := reader.Status(t.Context(), []string{"users"})
	if err != nil || status.Resources[0].LiveRows != 1 {
		t.Errorf("%+v, %v", status, err)
	}
	_, _, err = reader.Commit(t.Context(), step(f.checkpoint(t), user("b", "")))
	wantKind(t, err, mirror.KindDenied)
}

func TestReadersNeedNothingOfTheBookkeeping(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""))
	reader := connect(t, login(t, f, "grant usage on schema xiaoqu", "grant select on all tables in schema xiaoqu"))
	var n int
	if err := reader.QueryRow(t.Context(), "select (select count(*) from xiaoqu.users_live) + (select count(*) from xiaoqu.freshness)").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestSteadyStateNeedsNoRightToCreate(t *testing.T) {
	f := setUp(t)
	worker := open(t, login(t, f, "grant usage on schema xiaoqu, xiaoqu_sync", "grant select, insert, update on all tables in schema xiaoqu",
		"grant select, insert, update, delete on all tables in schema xiaoqu_sync", "grant truncate on xiaoqu_sync.staging_users"))
	if _, err := worker.Migrate(t.Context(), []string{"users"}, false); err != nil {
		t.Error(err)
	}
	if _, err := worker.Migrate(t.Context(), []string{"users", "payments"}, false); err == nil {
		t.Error("made a table without the right")
	} else {
		wantKind(t, err, mirror.KindDenied)
	}
	c, err := worker.Checkpoint(t.Context(), "users")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := worker.Commit(t.Context(), step(c, user("a", ""), `{}`)); err != nil {
		t.Error(err)
	}
	w := fixture{Mirror: worker}
	w.merge(t, w.full(t, mirror.PurposeRebuild, []string{user("a", `,"n":1`), user("b", "")}))
	lease, err := worker.Lease(t.Context(), "users", mirror.Holder{Host: "a", PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	lease.Release(t.Context())
	id, err := worker.BeginRun(t.Context(), mirror.Run{Resource: "users", Mode: "sync"})
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.EndRun(t.Context(), mirror.Run{ID: id, Resource: "users", Outcome: "done"}); err != nil {
		t.Error(err)
	}
	probe(t, worker, map[string]string{})
}

// probe wants the named findings to be not OK with a detail that has the text,
// and all others to be OK.
func probe(t *testing.T, m *mirror.Mirror, bad map[string]string) {
	t.Helper()
	findings, err := m.Probe(t.Context(), []string{"users"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"connect", "version", "writable", "encoding", "rights", "schema"}; len(findings) < 5 || findings[0].Name != want[0] {
		t.Errorf("%+v", findings)
	}
	for _, f := range findings {
		text, isBad := bad[f.Name]
		if f.OK == isBad || !strings.Contains(f.Detail, text) || isBad && f.Hint == "" {
			t.Errorf("%+v, want %q", f, text)
		}
	}
}

func TestProbe(t *testing.T) {
	f := setUp(t)
	probe(t, f.Mirror, nil)
	t.Run("an empty database", func(t *testing.T) { probe(t, open(t, localpg.Database(t)), nil) })
	t.Run("no rights", func(t *testing.T) {
		probe(t, open(t, login(t, f)), map[string]string{"rights": "permission denied for schema xiaoqu_sync"})
	})
	t.Run("no right to write", func(t *testing.T) {
		m := open(t, login(t, f, "grant usage on schema xiaoqu, xiaoqu_sync", "grant select on all tables in schema xiaoqu, xiaoqu_sync"))
		probe(t, m, map[string]string{"rights": "INSERT on xiaoqu.users, INSERT on xiaoqu_sync.alerts, INSERT on xiaoqu_sync.leases"})
	})
	t.Run("no right to truncate", func(t *testing.T) {
		m := open(t, login(t, f, "grant usage on schema xiaoqu, xiaoqu_sync", "grant select, insert, update on all tables in schema xiaoqu",
			"grant select, insert, update, delete on all tables in schema xiaoqu_sync"))
		probe(t, m, map[string]string{"rights": "lacks TRUNCATE on xiaoqu_sync.staging_users"})
		_, err := m.BeginPass(t.Context(), f.checkpoint(t), mirror.PurposeRebuild, "")
		wantKind(t, err, mirror.KindDenied)
	})
	t.Run("no right to temporary tables", func(t *testing.T) {
		database := value[string](t, f, "select current_database()")
		if _, err := f.sql.Exec(t.Context(), "revoke temporary on database "+database+" from public"); err != nil {
			t.Fatal(err)
		}
		m := open(t, login(t, f, "grant usage on schema xiaoqu, xiaoqu_sync", "grant all on all tables in schema xiaoqu, xiaoqu_sync"))
		probe(t, m, map[string]string{"rights": "lacks TEMPORARY on database " + database})
	})
	t.Run("reads only", func(t *testing.T) {
		u, err := url.Parse(f.url)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("default_transaction_read_only", "on")
		u.RawQuery = q.Encode()
		m := open(t, u.String())
		probe(t, m, map[string]string{"writable": "read_only"})
		_, _, err = m.Commit(t.Context(), step(f.checkpoint(t), user("a", "")))
		wantKind(t, err, mirror.KindUnreachable)
	})
	t.Run("a newer schema", func(t *testing.T) {
		if _, err := f.sql.Exec(t.Context(), "insert into xiaoqu_sync.migrations (version_id, is_applied) values (99, true)"); err != nil {
			t.Fatal(err)
		}
		probe(t, f.Mirror, map[string]string{"schema": "99"})
	})
}
