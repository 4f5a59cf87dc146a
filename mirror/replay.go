package mirror

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Replayed says what became of quarantined records that were tried again.
type Replayed struct {
	Tried      int64 `json:"tried"`
	Stored     int64 `json:"stored"`     // rows written
	Unchanged  int64 `json:"unchanged"`  // the mirror has the very same record already
	Superseded int64 `json:"superseded"` // the mirror has heard of the id since: what it has stands
	Remaining  int64 `json:"remaining"`  // this release cannot store them as they came either
}

// replayBatch is how many records are tried in one transaction, and replayBytes how much of them.
const (
	replayBatch = 200
	replayBytes = 64 << 20
)

// readReplay goes from the newest to the oldest: of two records of one id the newer is written, and supersedes the other.
const readReplay = `
select s.id, s.raw, s.last_seen_at
from (select n.*, sum(octet_length(n.raw)) over (order by n.last_seen_at desc, n.id desc) - octet_length(n.raw) as ahead
      from (select q.id, q.raw, q.last_seen_at
            from {sync}.quarantine q
            where` + selected + ` and (q.last_seen_at, q.id) < ($4::timestamptz, $5::bigint) and octet_length(q.raw) = q.raw_length
            order by q.last_seen_at desc, q.id desc limit $6::bigint) n) s
where s.ahead < $7::bigint
order by s.last_seen_at desc, s.id desc`

// What the mirror wrote in or after the page that brought the quarantined record
// stands; and a newer record of the id that waits in quarantine makes it old.
const readSuperseded = `
select i.n - 1
from unnest($1::text[], $2::timestamptz[]) with ordinality as i (id, seen, n)
where exists (select from {table} t where t.id = i.id and t.synced_at >= i.seen)
   or exists (select from {sync}.quarantine q where q.resource = $3::text and q.record_id = i.id and q.last_seen_at > i.seen)`

const releaseNotes = `delete from {sync}.quarantine where id = any ($1::bigint[])`

// Replay judges the selected records of the checkpoint's resource again, with
// today's code. What can now be stored as it came is written to the readers' table
// like a page, in one transaction with its leaving the quarantine, unless the
// mirror has heard of the id since. Records of which not all bytes were kept stay.
// The position at the remote does not move; the returned checkpoint is the new one.
//
// KindFenced: the mirror moved on. KindConfig: it is being rebuilt, and the rebuild's result would not hold the record.
func (m *Mirror) Replay(ctx context.Context, before Checkpoint, s Selection, zone *time.Location) (Checkpoint, Replayed, error) {
	op := "replay " + before.Resource
	if err := checkResources(op, []string{before.Resource}); err != nil {
		return before, Replayed{}, err
	}
	if before.Phase != PhaseIncremental {
		return before, Replayed{}, &Error{
			Kind: KindConfig, Op: op, Message: "the resource is being rebuilt",
			Hint: "replay when the rebuild is done: it fetches these records anew",
		}
	}
	s.Resources = []string{before.Resource}
	r := replay{mirror: m, at: before, selection: s, zone: zone, older: pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}}
	for {
		more, err := r.batch(ctx, op)
		if err != nil || !more {
			return r.at, r.done, fail(op, err)
		}
	}
}

// replay is where a Replay stands: everything in it is committed.
type replay struct {
	mirror    *Mirror
	at        Checkpoint
	selection Selection
	zone      *time.Location
	older     pgtype.Timestamptz // with olderID: only what was seen before that is still to be tried
	olderID   int64
	done      Replayed
}

// retrial is what is tried at once, the newest first.
type retrial struct {
	rows  []row // that can now be stored as they came
	notes []int64
	seen  []time.Time
	tried int64
}

func (r *replay) batch(ctx context.Context, op string) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	t, err := r.read(ctx)
	if err != nil || len(t.notes) == 0 {
		r.done.Tried, r.done.Remaining = r.done.Tried+t.tried, r.done.Remaining+t.tried
		return t.tried > 0, err
	}
	b, err := r.judge(ctx, t)
	if err != nil {
		return false, err
	}
	after, counts, err := r.write(ctx, b, t.notes)
	if err != nil {
		return false, err
	}
	r.at = after
	r.done = r.done.add(Replayed{
		Tried: t.tried, Stored: counts.Stored(), Unchanged: counts.Unchanged,
		Superseded: int64(len(t.notes) - len(b.rows)), Remaining: t.tried - int64(len(t.notes)),
	})
	return true, nil
}

// read decodes the next records and leaves out what is no better than before.
func (r *replay) read(ctx context.Context) (retrial, error) {
	var t retrial
	rows, err := r.mirror.pool.Query(ctx, r.mirror.layout.Render(readReplay),
		filled(r.selection.Resources), filled(r.selection.IDs), r.selection.Kind, r.older, r.olderID, int64(replayBatch), int64(replayBytes))
	if err != nil {
		return t, err
	}
	d := newDecoder(r.zone)
	var raw []byte
	_, err = pgx.ForEachRow(rows, []any{&r.olderID, &raw, &r.older}, func() error {
		t.tried++
		if row, reason := d.decode(raw); reason == "" && !row.mended {
			t.rows, t.notes, t.seen = append(t.rows, row), append(t.notes, r.olderID), append(t.seen, r.older.Time)
		}
		return nil
	})
	return t, err
}

// judge leaves out what is superseded.
func (r *replay) judge(ctx context.Context, t retrial) (*Batch, error) {
	ids := make([]string, len(t.rows))
	for i := range t.rows {
		ids[i] = t.rows[i].id
	}
	rows, err := r.mirror.pool.Query(ctx, r.mirror.layout.RenderResource(readSuperseded, r.at.Resource), ids, t.seen, r.at.Resource)
	if err != nil {
		return nil, err
	}
	old := map[int64]bool{}
	var i int64
	if _, err := pgx.ForEachRow(rows, []any{&i}, func() error { old[i] = true; return nil }); err != nil {
		return nil, err
	}
	b := &Batch{}
	for i := len(t.rows) - 1; i >= 0; i-- { // a batch keeps the last of an id
		if !old[int64(i)] {
			b.rows = append(b.rows, t.rows[i])
		}
	}
	b.dedupe()
	b.received, b.duplicates = int64(len(b.rows)), 0
	return b, nil
}

// write commits the rows and the release of their notes.
func (r *replay) write(ctx context.Context, b *Batch, released []int64) (after Checkpoint, c Counts, err error) {
	m := r.mirror
	err = m.transaction(ctx, opTimeout, func(ctx context.Context, conn *pgx.Conn) error {
		if after, c, err = m.write(ctx, conn, Step{Before: r.at, After: r.at, Batch: b}, b); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, m.layout.Render(releaseNotes), released)
		return err
	})
	return after, c, err
}

func (r Replayed) add(o Replayed) Replayed {
	return Replayed{
		Tried: r.Tried + o.Tried, Stored: r.Stored + o.Stored, Unchanged: r.Unchanged + o.Unchanged,
		Superseded: r.Superseded + o.Superseded, Remaining: r.Remaining + o.Remaining,
	}
}
