package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/store"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

var _ interface {
	Freshness(context.Context, []string) ([]agent.Freshness, error)
	Record(context.Context, string, string) (agent.Record, bool, error)
	Search(context.Context, agent.Query) ([]agent.Record, error)
	Changes(context.Context, string, int64, int) ([]agent.Record, error)
} = (*store.Store)(nil)

const big = `{"id":"a","status":"active","amount":12345678901234567890.10,"n":9007199254740993,"signed":true,"begun":"2026-09-01T08:00:00+08:00",` +
	`"day":"2026-09-01","tags":["x","y"],"more":{"k":1.0},"mobile":"13800001234"}`

func TestARecordKeepsItsDigits(t *testing.T) {
	f := setUp(t)
	f.put(t, 7, "a", big, false)
	r, ok, err := f.Record(t.Context(), "contracts", "a")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	at := time.Date(2026, 9, 1, 8, 0, 0, 0, time.UTC)
	want := agent.Record{
		ID: "a", ChangeSeq: 7, ModifyTime: &at, SyncedAt: time.Date(2026, 9, 3, 0, 0, 0, 5e8, time.UTC),
		Columns: json.RawMessage(`{"status":"active","amount":12345678901234567890.10,"n":9007199254740993,"signed":true,` +
			`"begun":"2026-09-01T00:00:00+00:00","day":"2026-09-01","tags":["x","y"],"more":{"k": 1.0}}`),
		Record: r.Record,
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	for _, digits := range []string{"12345678901234567890.10", "9007199254740993", "1.0", "13800001234"} {
		if !strings.Contains(string(r.Record), digits) {
			t.Errorf("%s lacks %s", r.Record, digits)
		}
	}
}

func TestOnlyLiveRecordsAreFound(t *testing.T) {
	f := setUp(t)
	f.put(t, 1, "gone", `{}`, true)
	for _, id := range []string{"gone", "none", "", "a\x00", "'; drop table xiaoqu.contracts; --"} {
		if _, ok, err := f.Record(t.Context(), "contracts", id); ok || err != nil {
			t.Errorf("%q: %v, %v", id, ok, err)
		}
	}
	_, _, err := f.Record(t.Context(), `contracts"; drop table x; --`, "a")
	wantFailure(t, err, agent.Invalid, "unknown_resource")
}

func TestAResourceWithoutColumnsHasAnEmptyObject(t *testing.T) {
	f := setUp(t, func(o *store.Options) { o.Resources[0].Columns = nil })
	f.put(t, 1, "a", big, false)
	if r, _, err := f.Record(t.Context(), "contracts", "a"); err != nil || string(r.Columns) != `{}` {
		t.Errorf("%s, %v", r.Columns, err)
	}
}

func TestChangesComeInOrderWithTombstones(t *testing.T) {
	for _, masked := range []bool{false, true} {
		t.Run(fmt.Sprintf("masked %v", masked), func(t *testing.T) {
			f := setUp(t, func(o *store.Options) { o.Masked = masked })
			f.put(t, 3, "a", big, false)
			f.put(t, 1, "b", big, true)
			f.put(t, 2, "c", `{"status":"ended"}`, false)
			all := must(f.Changes(t.Context(), "contracts", 0, 10))(t)
			got := ""
			for _, r := range all {
				got += fmt.Sprintf("%s %d; ", r.ID, r.ChangeSeq)
				if gone := r.DeletedAt != nil; gone != (r.ID == "b") || gone != (r.Record == nil) || gone != (r.Columns == nil) {
					t.Errorf("%+v", r)
				}
			}
			if got != "b 1; c 2; a 3; " {
				t.Error(got)
			}
			if shown := strings.Contains(string(all[2].Record), "13800001234"); shown == masked {
				t.Errorf("%s", all[2].Record)
			}
			if rest := must(f.Changes(t.Context(), "contracts", 1, 1))(t); len(rest) != 1 || rest[0].ID != "c" {
				t.Errorf("%+v", rest)
			}
			if none := must(f.Changes(t.Context(), "contracts", 3, 1))(t); len(none) != 0 {
				t.Errorf("%+v", none)
			}
		})
	}
}

func TestFreshnessOfEveryResourceThatIsAsked(t *testing.T) {
	f := setUp(t, func(o *store.Options) { o.Resources = append(o.Resources, agent.Resource{Name: "users"}) })
	f.exec(t, `insert into xiaoqu_sync.state (resource, last_success_at, complete_cutoff_at, live_rows, deleted_rows)
		values ('contracts', now() - interval '1 minute', now() - interval '2 minutes', 5, 1)`)
	all := must(f.Freshness(t.Context(), []string{"users", "contracts"}))(t)
	if len(all) != 2 || all[1].AgeSeconds == nil || *all[1].AgeSeconds < 120 || *all[1].AgeSeconds > 200 || all[1].LiveRows != 5 || all[1].Phase != "incremental" {
		t.Fatalf("%+v", all)
	}
	if diff := cmp.Diff(agent.Freshness{Resource: "users", Phase: "first"}, all[0]); diff != "" {
		t.Error(diff)
	}
	_, err := f.Freshness(t.Context(), []string{"nothing"})
	wantFailure(t, err, agent.Invalid, "unknown_resource")
}

// role makes a role that goes away with the test.
func (f fixture) role(t *testing.T, name string) string {
	t.Helper()
	name = fmt.Sprintf("%s_%d", name, os.Getpid())
	f.exec(t, "create role "+name)
	t.Cleanup(func() {
		_, _ = f.sql.Exec(context.Background(), "drop owned by "+name)
		_, _ = f.sql.Exec(context.Background(), "drop role "+name)
	})
	return name
}

// as is the same database read with a role.
func (f fixture) as(t *testing.T, role string, masked bool) fixture {
	t.Helper()
	f.options.ReaderRole, f.options.Masked = role, masked
	f.Store = f.open(t)
	return f
}

func TestRecordsAreReadWithTheReadersRightsAlone(t *testing.T) {
	f := setUp(t)
	f.put(t, 1, "a", big, false)
	f.put(t, 2, "b", big, true)
	m, err := mirror.Open(t.Context(), mirror.Options{URL: localpg.Door(f.options.URL)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	open, masked, none := f.role(t, "agents_open"), f.role(t, "agents_masked"), f.role(t, "agents_none")
	for role, hide := range map[string]bool{open: false, masked: true} {
		if err := m.GrantReader(t.Context(), role, hide, []string{"contracts"}); err != nil {
			t.Fatal(err)
		}
	}
	reads := map[string]func(fixture) error{
		"record": func(f fixture) error { _, _, err := f.Record(t.Context(), "contracts", "a"); return err },
		"search": func(f fixture) error {
			_, err := f.Search(t.Context(), agent.Query{Resource: "contracts", Limit: 1})
			return err
		},
		"changes":   func(f fixture) error { _, err := f.Changes(t.Context(), "contracts", 0, 9); return err },
		"freshness": func(f fixture) error { _, err := f.Freshness(t.Context(), []string{"contracts"}); return err },
	}
	for name, read := range reads {
		for _, who := range []struct {
			role        string
			masked, may bool
		}{{open, false, true}, {masked, true, true}, {masked, false, name == "freshness"}, {none, false, false}, {"nobody_of_this_name", false, false}} {
			err := read(f.as(t, who.role, who.masked))
			if who.may && err != nil {
				t.Errorf("%s as %s: %v", name, who.role, err)
			}
			if !who.may {
				failure := wantFailure(t, err, agent.Permanent, "database_denied")
				if len(failure.Suggestions) == 0 {
					t.Errorf("%s as %s: %+v", name, who.role, failure)
				}
			}
		}
	}
	r, _, err := f.as(t, masked, true).Record(t.Context(), "contracts", "a")
	if err != nil || strings.Contains(string(r.Record), "13800001234") || !strings.Contains(string(r.Record), "***34") {
		t.Errorf("%s, %v", r.Record, err)
	}
}

// The reader's role and the read-only transaction end with the call, whatever became of it.
func TestNothingOfAReadStaysWithItsConnection(t *testing.T) {
	f := setUp(t, func(o *store.Options) { o.MaxConns = 1 })
	f.put(t, 1, "a", big, false)
	f.put(t, 2, "b", `{}`, false)
	role := f.role(t, "agents_some")
	one := f.as(t, role, false)
	for i, granted := range []bool{false, true} {
		if granted {
			f.exec(t, "grant usage on schema xiaoqu to "+role+"; grant select on xiaoqu.contracts_live to "+role)
		}
		if _, _, err := one.Record(t.Context(), "contracts", "a"); (err == nil) != granted {
			t.Errorf("granted %v: %v", granted, err)
		}
		one.begun(t, newTask(fmt.Sprint(i))) // which the role may not
	}
	if open := value[int](t, f, "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'"); open != 0 {
		t.Errorf("%d transactions are left open", open)
	}
}
