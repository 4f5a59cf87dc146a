package sync_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// hand does to the database what a person could who is not bound by its settings.
func (w *world) hand(t failer, sql string) [][]string {
	t.Helper()
	u, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("default_transaction_read_only", "off")
	q.Set("statement_timeout", "0")
	u.RawQuery = q.Encode()
	_, rows, err := localpg.Query(context.WithoutCancel(t.Context()), u.String(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return rows
}

// setting changes a setting of the database, for connections to come; breakAll
// makes everybody come again.
func (w *world) setting(t failer, setting string) {
	t.Helper()
	w.hand(t, "do $$begin execute format('alter database %I "+quoted(setting)+"', current_database()); end$$")
}

func (w *world) breakAll(t failer) {
	t.Helper()
	w.hand(t, "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
}

// asWorker leads the mirror's connections to the database through a login that
// has what it needs and no more, and returns the login's name.
func (w *world) asWorker(t *testing.T) string {
	t.Helper()
	name := "worker_" + strings.ToLower(rand.Text())
	w.hand(t, "create role "+name+" login password 'x'")
	for _, s := range []string{"xiaoqu", "xiaoqu_sync"} {
		w.hand(t, "grant all on schema "+s+" to "+name)
		w.hand(t, "grant all on all tables in schema "+s+" to "+name)
		w.hand(t, "grant all on all sequences in schema "+s+" to "+name)
	}
	t.Cleanup(func() {
		w.hand(t, "drop owned by "+name+" cascade")
		w.hand(t, "drop role "+name)
	})
	u, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, "x")
	w.door = u.String()
	w.reopen(t)
	return name
}

func TestADatabaseFaultThatHealsIsWaitedOut(t *testing.T) {
	for _, c := range []struct {
		name       string
		harm, heal func(t *testing.T, w *world)
	}{
		{
			name: "a statement timeout, while somebody holds the state row",
			harm: func(t *testing.T, w *world) {
				w.setting(t, "set statement_timeout = '100ms'")
				w.breakAll(t)
				w.hold(t, "select from xiaoqu_sync.state for update")
			},
			heal: func(t *testing.T, w *world) { w.setting(t, "reset statement_timeout"); w.breakAll(t) },
		},
		{
			name: "a primary that only reads",
			harm: func(t *testing.T, w *world) {
				w.setting(t, "set default_transaction_read_only = on")
				w.breakAll(t)
			},
			heal: func(t *testing.T, w *world) { w.setting(t, "reset default_transaction_read_only"); w.breakAll(t) },
		},
		{
			name: "no connection left for us",
			harm: func(t *testing.T, w *world) { w.setting(t, "connection limit 0"); w.breakAll(t) },
			heal: func(t *testing.T, w *world) { w.setting(t, "connection limit -1") },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.asWorker(t)
			w.xiaoqu.Seed(30, 0, 0)
			lines, healed := w.logged(t, logRetry), make(chan struct{})
			w.atPage(1, func() {
				c.harm(t, w)
				go func() {
					defer close(healed)
					await(t, lines, logRetry)
					c.heal(t, w)
				}()
			})
			o := w.run(t.Context(), "users")["users"]
			if o.Retries == 0 {
				t.Fatalf("%s and nothing was tried again, %v", o.Result, o.Err)
			}
			<-healed
			if o.Result != sync.Synced || o.Pages != 3 {
				t.Errorf("%s after %d pages and %d retries, %v", o.Result, o.Pages, o.Retries, o.Err)
			}
			w.equal(t, "users")
		})
	}
}

// hold keeps the locks of a statement until everybody's connections are broken.
func (w *world) hold(t *testing.T, sql string) {
	t.Helper()
	held := make(chan struct{})
	go func() {
		defer close(held)
		// Ends with an error: the connection is broken, or the test is over.
		_, _, _ = localpg.Query(context.WithoutCancel(t.Context()), w.url+"&statement_timeout=0",
			"with locked as materialized ("+sql+") select pg_sleep(60) from locked")
	}()
	t.Cleanup(func() { w.breakAll(t); <-held })
	for len(w.hand(t, "select from pg_stat_activity where datname = current_database() and query like '%pg_sleep(60)%' and wait_event = 'PgSleep'")) == 0 {
		select {
		case <-held:
			t.Fatal("the lock was not taken")
		default:
		}
	}
}

func TestADatabaseFaultThatDoesNotHealEndsTheRunAtOnce(t *testing.T) {
	swallow := "create function readers_own() returns trigger language plpgsql as $$begin %s; end$$"
	trigger := "create trigger readers_own before insert or update on xiaoqu.users for each row execute function readers_own()"
	undo := []string{"drop function readers_own cascade"}
	anew := []string{"drop table xiaoqu.users cascade"}
	for _, c := range []struct {
		name       string
		harm, mend []string
		kind       mirror.Kind
		code       string
		state      string // SQLSTATE
		says       string
	}{
		{"a column dropped by hand", []string{"alter table xiaoqu.users drop column version cascade"}, anew, mirror.KindSchema, "SCHEMA_MISMATCH", "42703", "version"},
		{"a column's type changed by hand", []string{"drop view xiaoqu.users_live", "alter table xiaoqu.users alter version type integer using null"}, anew, mirror.KindSchema, "SCHEMA_MISMATCH", "42804", "version"},
		{"the primary key dropped by hand", []string{"alter table xiaoqu.users drop constraint users_pkey"}, anew, mirror.KindSchema, "SCHEMA_MISMATCH", "42P10", "ON CONFLICT"},
		{"the bookkeeping dropped by hand", []string{"drop schema xiaoqu_sync cascade"}, nil, mirror.KindSchema, "SCHEMA_MISMATCH", "42P01", "xiaoqu_sync.state"},
		{"a column of a reader's that may not be null", []string{"alter table xiaoqu.users add column grade int not null default 1", "alter table xiaoqu.users alter grade drop default"}, []string{"alter table xiaoqu.users drop column grade"}, mirror.KindData, "DATABASE_INTERNAL", "23502", "grade"},
		{"a unique index of a reader's", []string{"create unique index readers_own on xiaoqu.users ((record->>'twin'))"}, []string{"drop index xiaoqu.readers_own"}, mirror.KindData, "DATABASE_INTERNAL", "23505", "readers_own"},
		{"a trigger that swallows rows", []string{strings.ReplaceAll(swallow, "%s", "return null"), trigger}, undo, mirror.KindInternal, "DATABASE_INTERNAL", "", "does not add up"},
		{"a value that PostgreSQL refuses (class 22)", []string{strings.ReplaceAll(swallow, "%s", "raise sqlstate '22003'"), trigger}, undo, mirror.KindData, "DATABASE_INTERNAL", "22003", "refused a value"},
		{"a row twice in a statement (class 21)", []string{strings.ReplaceAll(swallow, "%s", "raise sqlstate '21000'"), trigger}, undo, mirror.KindData, "DATABASE_INTERNAL", "21000", "refused a value"},
		{"a trigger that raises", []string{strings.ReplaceAll(swallow, "%s", "raise 'no'"), trigger}, undo, mirror.KindInternal, "DATABASE_INTERNAL", "P0001", "refused a statement"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.xiaoqu.Seed(28, 0, 0)
			for _, id := range []string{"90001", "90002"} { // on the last page, whatever the order
				w.xiaoqu.Put("users", id, `{"twin":"same"}`)
			}
			w.atPage(2, func() {
				for _, sql := range c.harm {
					w.hand(t, sql)
				}
			})
			o := w.run(t.Context(), "users")["users"]
			var e *mirror.Error
			if o.Result != sync.Failed || !errors.As(o.Err, &e) || o.Retries != 0 || o.Pages != 2 {
				t.Fatalf("%s after %d pages and %d retries, %v", o.Result, o.Pages, o.Retries, o.Err)
			}
			if e.Kind != c.kind || e.Name() != c.code || e.SQLState != c.state || !strings.Contains(e.Message, c.says) || e.Hint == "" {
				t.Errorf("kind %v, %s, SQLSTATE %q: %s\nhint: %s", e.Kind, e.Name(), e.SQLState, e.Message, e.Hint)
			}
			w.watch = nil
			for _, sql := range c.mend {
				w.hand(t, sql)
			}
			w.reopen(t)
			if _, err := w.mirror.Migrate(t.Context(), all, false); err != nil {
				t.Fatal(err)
			}
			w.mustRun(t, "users")
			w.equal(t, "users")
		})
	}
}

func TestAPasswordChangedInMidRunEndsTheRunAndIsAConfigurationError(t *testing.T) {
	w := newWorld(t)
	name := w.asWorker(t)
	w.xiaoqu.Seed(30, 0, 0)
	w.atPage(1, func() {
		w.hand(t, "alter role "+name+" password 'y'")
		w.breakAll(t)
	})
	o := w.run(t.Context(), "users")["users"]
	var e *mirror.Error
	if o.Result != sync.Failed || !errors.As(o.Err, &e) || e.Kind != mirror.KindConfig || e.Name() != "DATABASE_REFUSED" || e.SQLState != "28P01" || e.Hint == "" {
		t.Fatalf("%s after %d retries, %v", o.Result, o.Retries, o.Err)
	}
	w.watch = nil
	w.hand(t, "alter role "+name+" password 'x'")
	w.reopen(t)
	w.mustRun(t, "users")
	w.equal(t, "users")
}
