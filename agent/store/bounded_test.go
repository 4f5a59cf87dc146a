package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/store"
)

// A page of fat records is more than a process should hold; no answer has them all.
func TestNoMoreIsKeptThanAnAnswerHolds(t *testing.T) {
	f := setUp(t)
	const fat = 100 << 10 // and as much again in a typed column
	f.exec(t, `insert into xiaoqu.contracts (id, record, synced_at, change_seq, content_hash)
		select lpad(i::text, 3, '0'), jsonb_build_object('more', $1::text), now(), i, '' from generate_series(1, 30) as i`, strings.Repeat("x", fat))
	f.exec(t, `insert into xiaoqu.contracts (id, record, synced_at, change_seq, content_hash)
		values ('000', jsonb_build_object('more', $1::text), now(), 31, '')`, strings.Repeat("x", 20*fat))
	search := func(after string, want ...string) {
		t.Helper()
		rows, err := f.Search(t.Context(), agent.Query{Resource: "contracts", AfterID: after, Limit: 201})
		if err != nil || len(rows) != len(want) {
			t.Fatalf("%d rows after %q, want %d; %v", len(rows), after, len(want), err)
		}
		for i, r := range rows {
			if r.ID != want[i] {
				t.Errorf("row %d is %s, want %s", i, r.ID, want[i])
			}
		}
	}
	// One more than fits says that there is more, also after one that fills it alone.
	search("", "000", "001")
	search("000", "001", "002", "003", "004", "005", "006")
	search("028", "029", "030")
	rows, err := f.Changes(t.Context(), "contracts", 0, 201)
	if err != nil || len(rows) != 6 || rows[5].ChangeSeq != 6 {
		t.Errorf("%d changes, %v", len(rows), err)
	}
}

// Slow questions must not keep a task's claim from being prolonged: the task would be
// begun again by somebody else, and by somebody else.
func TestSlowReadsLeaveConnectionsForTasks(t *testing.T) {
	f := setUp(t, func(o *store.Options) { o.MaxConns = 4 })
	f.begun(t, newTask("k"))
	task := f.claimed(t)
	tx, err := f.sql.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	if _, err := tx.Exec(t.Context(), "lock table xiaoqu.contracts in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	var g errgroup.Group
	for range 16 {
		g.Go(func() error { _, _, _ = f.Record(t.Context(), "contracts", "1"); return nil })
	}
	for value[int](t, f, "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'") < 2 {
	}
	for range 10 {
		began := time.Now()
		if !must(f.Hold(t.Context(), task, time.Minute))(t) || time.Since(began) > time.Second {
			t.Errorf("it took %v", time.Since(began))
		}
	}
	_ = g.Wait()
}
