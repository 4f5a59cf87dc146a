package sync_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// TestReadersSeeTheMirrorBeforeARebuildOrAfterItAndNothingElse lets readers
// join all three tables in both orders, count, and hold long snapshots, all
// through a rebuild.
func TestReadersSeeTheMirrorBeforeARebuildOrAfterItAndNothingElse(t *testing.T) {
	const users, edited, gone = 50_000, 700, 40
	w := newWorld(t)
	w.limit = 200
	w.xiaoqu.Seed(users, 500, 500)
	w.mustRun(t, all...)
	ids := w.xiaoqu.IDs("users")
	for _, id := range ids[:edited] {
		w.xiaoqu.Edit("users", id, `{"marked":"after"}`)
	}
	for _, id := range ids[edited : edited+gone] {
		w.xiaoqu.Purge("users", id)
	}
	w.xiaoqu.ExpireTokens("users")

	reading, stop := context.WithCancel(t.Context())
	defer stop()
	var readers errgroup.Group
	seen := make(chan string, 1000)
	for _, query := range []string{
		`select count(*) || ' ' || count(*) filter (where record->>'marked' = 'after') from xiaoqu.users_live`,
		`select count(distinct u.id) || ' ' || count(distinct u.id) filter (where u.record->>'marked' = 'after')
		   from xiaoqu.users_live u left join xiaoqu.properties_live p on p.id = u.id left join xiaoqu.contracts_live c on c.id = p.id`,
		`select count(distinct u.id) || ' ' || count(distinct u.id) filter (where u.record->>'marked' = 'after')
		   from xiaoqu.contracts_live c right join xiaoqu.properties_live p on p.id = c.id right join xiaoqu.users_live u on u.id = p.id`,
	} {
		readers.Go(func() error { return w.ask(reading, query, seen) })
	}
	readers.Go(func() error { return w.readSnapshots(reading, seen) })

	states := map[string]int{}
	done := make(chan map[string]sync.Outcome)
	go func() { done <- w.run(t.Context(), "users") }()
	for running := true; running; {
		select {
		case s := <-seen:
			states[s]++
		case by := <-done:
			running = false
			if o := by["users"]; o.Result != sync.Synced || o.Mode != "rebuild" || o.Counts.Updated != edited || o.Counts.Deleted != gone {
				t.Errorf("%+v, %v", o, o.Err)
			}
		}
	}
	after := fmt.Sprintf("%d %d", users-gone, edited)
	for states[after] < 4 { // every reader has come to see the new state
		states[<-seen]++
	}
	stop()
	go func() {
		for range seen { // let those go that are about to report
		}
	}()
	if err := readers.Wait(); err != nil {
		t.Errorf("a reader failed: %v", err)
	}
	close(seen)
	before := fmt.Sprintf("%d 0", users)
	if len(states) != 2 || states[before] == 0 || states[after] == 0 {
		t.Errorf("readers saw %v, want only %q and %q", states, before, after)
	}
	t.Logf("readers saw %v", states)
	w.equal(t, "users")
}

// ask asks one question again and again, and reports what it sees.
func (w *world) ask(ctx context.Context, query string, seen chan<- string) error {
	conn, err := pgx.Connect(ctx, w.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for {
		var state string
		if err := conn.QueryRow(ctx, query).Scan(&state); err != nil {
			return ended(ctx, err)
		}
		select {
		case seen <- state:
		case <-ctx.Done():
			return nil
		}
	}
}

// readSnapshots holds REPEATABLE READ transactions: what such a reader saw
// once it must see to its end.
func (w *world) readSnapshots(ctx context.Context, seen chan<- string) error {
	conn, err := pgx.Connect(ctx, w.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	const query = `select count(*) || ' ' || count(*) filter (where record->>'marked' = 'after') from xiaoqu.users_live`
	for {
		err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
			first := ""
			for range 8 {
				var state string
				if err := tx.QueryRow(ctx, query).Scan(&state); err != nil {
					return err
				}
				if first == "" {
					first = state
				}
				if state != first {
					return fmt.Errorf("a snapshot changed from %q to %q", first, state)
				}
			}
			select {
			case seen <- first:
			case <-ctx.Done():
			}
			return nil
		})
		if err != nil || ctx.Err() != nil {
			return ended(ctx, err)
		}
	}
}

func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
