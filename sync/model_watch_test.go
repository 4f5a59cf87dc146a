package sync_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// watcher reads the mirror all through a history, as a CRM would: it follows
// change_seq, and it looks whether each snapshot is whole.
type watcher struct {
	stop    context.CancelFunc
	done    chan error // the first thing that must not be, or nil
	cursors map[string]int64
	rows    map[string]map[string]string // by resource and id, as they were last seen
}

// watchEvery is the watcher's rhythm.
const watchEvery = 4 * time.Millisecond

func (h *history) watch() *watcher {
	ctx, stop := context.WithCancel(h.t.Context())
	w := &watcher{stop: stop, done: make(chan error, 1), cursors: map[string]int64{}, rows: map[string]map[string]string{}}
	for _, r := range all {
		w.rows[r] = map[string]string{}
	}
	h.t.Cleanup(stop)
	go func() { w.done <- w.run(ctx, h.dial) }()
	return w
}

// dial makes a connection to the database past the line.
func (h *history) dial(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, h.direct) }

// run looks until ctx ends, over a new connection whenever one breaks: the
// server may be killed at any time.
func (w *watcher) run(ctx context.Context, dial func(context.Context) (*pgx.Conn, error)) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		db, err := dial(ctx)
		for i := 0; err == nil; i++ {
			var wrong error
			if wrong, err = w.look(ctx, db, all[i%len(all)]); wrong != nil {
				return wrong
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				_ = db.Close(context.WithoutCancel(ctx))
				return nil
			}
		}
		if db != nil {
			_ = db.Close(context.WithoutCancel(ctx))
		}
	}
	return nil
}

// look reads one resource in one snapshot. wrong is what must not be; err is a
// broken connection.
func (w *watcher) look(ctx context.Context, db *pgx.Conn, r string) (wrong, err error) {
	err = pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		if wrong, err = w.whole(ctx, tx, r); wrong != nil || err != nil {
			return err
		}
		return w.follow(ctx, tx, r)
	})
	return wrong, err
}

// whole holds that every snapshot has all of a step or nothing: the state row
// moves in the transaction that wrote the rows, so both tell of the same rows.
func (w *watcher) whole(ctx context.Context, tx pgx.Tx, r string) (wrong, err error) {
	const sql = `
select s.live_rows, s.deleted_rows, s.change_seq, count(t.id) filter (where t.deleted_at is null), count(t.deleted_at), coalesce(max(t.change_seq), 0)
from xiaoqu_sync.state s left join xiaoqu.%[1]s t on true
where s.resource = '%[1]s' group by s.live_rows, s.deleted_rows, s.change_seq`
	var live, dead, seq, liveRows, deadRows, last int64
	err = tx.QueryRow(ctx, fmt.Sprintf(sql, r)).Scan(&live, &dead, &seq, &liveRows, &deadRows, &last)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	case live != liveRows || dead != deadRows || last > seq:
		return fmt.Errorf("%s: a reader sees %d live and %d deleted rows up to %d, the state row of the same snapshot says %d, %d and %d",
			r, liveRows, deadRows, last, live, dead, seq), nil
	}
	return nil, nil
}

// follow takes the rows behind the cursor.
func (w *watcher) follow(ctx context.Context, tx pgx.Tx, r string) error {
	rows, err := tx.Query(ctx, fmt.Sprintf(`select id, change_seq, %s from xiaoqu.%s where change_seq > $1 order by change_seq limit 40`, rowText, r), w.cursors[r])
	if err != nil {
		return err
	}
	var id, text string
	var seq int64
	_, err = pgx.ForEachRow(rows, []any{&id, &seq, &text}, func() error {
		w.cursors[r], w.rows[r][id] = seq, text
		return nil
	})
	return err
}

// rowText is all of a row that a reader can see.
const rowText = `concat_ws(' ', change_seq, deleted_at, delete_reason, modify_time, version, record)`

// catchUp ends the watch: the reader's copy, made by following change_seq
// alone, must be the table. Rows that an operator purged are not told of.
func (h *history) catchUp() {
	h.t.Helper()
	h.watcher.stop()
	if err := <-h.watcher.done; err != nil {
		h.t.Fatal(err)
	}
	db, err := h.dial(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = db.Close(context.WithoutCancel(h.t.Context())) }()
	for _, r := range all {
		for last := int64(-1); last != h.watcher.cursors[r]; {
			last = h.watcher.cursors[r]
			if wrong, err := h.watcher.look(h.t.Context(), db, r); wrong != nil || err != nil {
				h.t.Fatal(wrong, err)
			}
		}
		table := map[string]string{}
		for _, row := range h.rows("select id, " + rowText + " from xiaoqu." + r) {
			table[row[0]] = row[1]
			if seen := h.watcher.rows[r][row[0]]; seen != row[1] {
				h.t.Fatalf("%s %s: a reader who follows change_seq has\n%.300s\nthe table has\n%.300s", r, row[0], seen, row[1])
			}
		}
		for id, text := range h.watcher.rows[r] {
			if _, ok := table[id]; !ok && !h.stocks[r].purged {
				h.t.Fatalf("%s %s: the row is gone that a reader has: %.300s", r, id, text)
			}
		}
	}
}
