package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/store"
)

func TestADatabaseThatIsAwayIsAPassingFailure(t *testing.T) {
	sealed := errors.New("vault is sealed")
	for name, o := range map[string]store.Options{
		"nobody listens": {URL: "postgres://u:hunter2@127.0.0.1:1/x"},
		"no login":       {URL: "postgres://127.0.0.1:1/x", Login: func(context.Context) (string, string, error) { return "", "", sealed }},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			_, err = s.Claim(t.Context(), agent.Writing(), time.Minute)
			wantFailure(t, err, agent.Temporary, "database_unreachable")
			if strings.Contains(err.Error(), "hunter2") {
				t.Error(err)
			}
			if name == "no login" && !errors.Is(err, sealed) {
				t.Errorf("%v does not say why", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err = s.Claim(ctx, agent.Writing(), time.Minute); !errors.Is(err, context.Canceled) {
				t.Errorf("given up: %v", err)
			}
		})
	}
}

func TestTheLoginIsAskedForEveryConnection(t *testing.T) {
	asked := 0
	f := setUp(t, func(o *store.Options) {
		o.MaxConns = 1
		config, err := pgx.ParseConfig(o.URL)
		if err != nil {
			t.Fatal(err)
		}
		o.Login = func(context.Context) (string, string, error) { asked++; return "", config.Password, nil }
	})
	f.begun(t, newTask("a"))
	f.Reconnect()
	f.begun(t, newTask("b"))
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

func TestOpenRefusesWhatCannotBe(t *testing.T) {
	for name, o := range map[string]store.Options{
		"no URL":       {},
		"a bad URL":    {URL: "postgres://u:hunter2@[/x"},
		"a bad schema": {URL: "postgres://h/x", Schema: `x"; drop`},
		"a bad name":   {URL: "postgres://h/x", Resources: []agent.Resource{{Name: `x"; drop`}}},
	} {
		if _, err := store.Open(t.Context(), o); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestADatabaseThatWasNotMigratedSaysSo(t *testing.T) {
	f := setUp(t)
	f.exec(t, "drop table xiaoqu_sync.agent_tasks cascade; drop view xiaoqu.contracts_live")
	_, err := f.Claim(t.Context(), agent.Writing(), time.Minute)
	wantFailure(t, err, agent.Permanent, "schema_mismatch")
	_, _, err = f.Record(t.Context(), "contracts", "a")
	wantFailure(t, err, agent.Permanent, "schema_mismatch")
}

func TestAReadThatWaitsTooLongEndsAtTheServerToo(t *testing.T) {
	f := setUp(t)
	tx, err := f.sql.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), "lock table xiaoqu.contracts"); err != nil {
		t.Fatal(err)
	}
	_, _, err = f.Record(t.Context(), "contracts", "a")
	wantFailure(t, err, agent.Temporary, "database_slow")
	if n := value[int](t, f, "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

// Somebody's trigger may refuse with any text.
func TestNoValueIsInAnErrorsText(t *testing.T) {
	f := setUp(t)
	f.exec(t, `create function xiaoqu_sync.shout() returns trigger language plpgsql as $$ begin raise exception 'hunter2 %', new.caller using errcode = 'P0001'; end $$`)
	f.exec(t, `create trigger shout before insert on xiaoqu_sync.agent_tasks for each row execute function xiaoqu_sync.shout()`)
	_, _, err := f.Begin(t.Context(), newTask("k"), false, 0)
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "P0001") || agent.AsFailure(err).Class != agent.Internal {
		t.Error(err)
	}
}
