package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// mergeTimeout bounds a comparison or a merge, which grow with the table.
const mergeTimeout = 30 * time.Minute

// upsertDifference writes what the pass brought. A first deletion time stays.
const upsertDifference = `
insert into {table} as t
    (id, record, modify_time, deleted_at, version, snapshot_id, synced_at, change_seq, content_hash, delete_reason)
select s.id, s.record, s.modify_time,
       case when s.tombstone then coalesce(d.deleted_at, s.deleted_at, s.modify_time, now()) end,
       s.version, s.snapshot_id, now(), $1::bigint + d.n, s.content_hash,
       case when s.tombstone then 'tombstone' end
from pg_temp.difference d join {staging} s on s.ctid = d.place
where d.place is not null
order by d.n
on conflict (id) do update
set record = excluded.record, modify_time = excluded.modify_time, deleted_at = excluded.deleted_at,
    version = excluded.version, snapshot_id = excluded.snapshot_id, synced_at = excluded.synced_at,
    change_seq = excluded.change_seq, content_hash = excluded.content_hash, delete_reason = excluded.delete_reason`

// markAbsent empties the content hash, so that any later record of the id, even
// the same one, counts as a change and revives the row.
const markAbsent = `
update {table} t
set deleted_at = now(), delete_reason = 'absent', content_hash = '', snapshot_id = nullif($2::text, ''),
    synced_at = now(), change_seq = $1::bigint + d.n
from pg_temp.difference d
where d.place is null and t.id = d.id`

const closeRebuild = `
update {sync}.state
set phase = 'incremental', epoch = epoch + 1, sync_token = $2::text, cursor = '', snapshot_id = $3::text,
    data_cutoff_at = $4::timestamptz, pages = 0, change_seq = change_seq + $5::bigint, live_rows = $6::bigint, deleted_rows = $7::bigint,
    last_commit_at = now(), last_success_at = now(), complete_cutoff_at = $4::timestamptz, restarts = 0,
    rebuilt_at = now(), rebuild_reason = $8::text, merged_pass = $9::timestamptz, merged_spared = $10::boolean,
    last_error_code = '', last_error_message = '', last_error_request_id = '', last_error_at = null
where resource = $1::text
returning epoch, tenant`

const tellChanges = `
select pg_catalog.pg_notify($1::text, pg_catalog.json_build_object('resource', $2::text, 'change_seq', change_seq + $3::bigint)::text)
from {sync}.state where resource = $2::text`

// Merge makes the mirror equal to the pass in one transaction: differing rows are
// updated, new ones inserted, live ones that the pass did not bring marked as
// deleted, and the next increment begins with the pass's token. Unchanged rows
// are not written, tombstones keep their first deletion time, and nobody who only
// reads waits. before and p must be where mirror and pass stand. The counts hold
// what became of staged rows; Received is 0.
//
// *FuseError: more deletions than the ruling allows; the pass is marked as held,
// durably. ErrStagingLost: begin a new pass. KindFenced: mirror or pass moved on
// (with ErrMoved: rows changed since the pass began). KindTransient: a deadlock
// or a lock held too long by somebody else; try again. KindUnreachable: as for Commit.
func (m *Mirror) Merge(ctx context.Context, before Checkpoint, p Pass, r Ruling) (Checkpoint, Counts, error) {
	op := "merge " + before.Resource
	if p.Purpose == PurposeVerify {
		return Checkpoint{}, Counts{}, &Error{Kind: KindInternal, Op: op, Message: "a verification is never merged"}
	}
	var after Checkpoint
	var counts Counts
	err := m.transaction(ctx, mergeTimeout, func(ctx context.Context, conn *pgx.Conn) error {
		w, err := m.weigh(ctx, conn, op, before, p)
		if err != nil {
			return err
		}
		if r.Holds(w.difference) {
			if err := m.details(ctx, conn, &w); err != nil {
				return err
			}
			return &FuseError{Resource: before.Resource, Difference: w.difference, Ratio: r.MaxDeleteRatio}
		}
		if r.WithoutDeletes {
			if err := w.spareDeletions(ctx, conn); err != nil {
				return err
			}
		}
		counts = w.counts()
		after, err = m.apply(ctx, conn, op, &w, r.WithoutDeletes)
		return err
	})
	var fuse *FuseError
	if errors.As(err, &fuse) {
		if heldErr := m.markHeld(ctx, op, p, fuse.Difference); heldErr != nil {
			return Checkpoint{}, Counts{}, heldErr // a fuse that nobody would see later has not held
		}
		return Checkpoint{}, Counts{}, err
	}
	if err != nil {
		return Checkpoint{}, counts, m.promised(ctx, op, before.Resource, err)
	}
	return after, counts, nil
}

// counts are those of Commit: a tombstone of an id that was not known is a deletion.
func (w *weighing) counts() Counts {
	d := w.difference
	return Counts{
		Inserted: d.Inserted - w.buried, Updated: d.Updated, Deleted: d.Deletes() + w.buried, Revived: d.Revived,
		Unchanged: d.Unchanged, Duplicates: w.repeated,
	}
}

// spareDeleted numbers what is left anew: change_seq has no room for gaps.
const spareDeleted = `
delete from pg_temp.difference where fate in ('absent', 'tombstoned');
update pg_temp.difference d set n = r.n
from (select ctid as place, row_number() over (order by n) as n from pg_temp.difference) r where d.ctid = r.place`

// spareDeletions leaves the deletions out. The rows stay live until the remote
// speaks of them again, or a later rebuild takes them.
func (w *weighing) spareDeletions(ctx context.Context, conn *pgx.Conn) error {
	d := &w.difference
	if d.Deletes() == 0 {
		return nil
	}
	w.staged -= d.Tombstoned
	d.Unchanged += d.Tombstoned
	d.Absent, d.Tombstoned = 0, 0
	_, err := conn.Exec(ctx, spareDeleted)
	return err
}

// apply writes the differences, the state row and the end of the pass. spared tells
// that the deletions were left out.
func (m *Mirror) apply(ctx context.Context, conn *pgx.Conn, op string, w *weighing, spared bool) (Checkpoint, error) {
	d, p := w.difference, w.pass
	if err := m.writeDifference(ctx, conn, op, w); err != nil {
		return Checkpoint{}, err
	}
	if d.changes() > 0 {
		if _, err := conn.Exec(ctx, m.layout.Render(tellChanges), m.channel(), p.At.Resource, d.changes()); err != nil {
			return Checkpoint{}, err
		}
	}
	after := Checkpoint{
		Resource: p.At.Resource, Phase: PhaseIncremental, SyncToken: p.At.SyncToken,
		SnapshotID: p.At.SnapshotID, DataCutoffAt: p.At.DataCutoffAt,
	}
	live := d.Live + d.Inserted - w.buried + d.Revived - d.Deletes()
	err := conn.QueryRow(ctx, m.layout.Render(closeRebuild), after.Resource, after.SyncToken, after.SnapshotID, after.DataCutoffAt,
		d.changes(), live, w.known+d.Inserted-live, p.Reason, p.StartedAt, spared).Scan(&after.Epoch, &after.Tenant)
	if err != nil {
		return Checkpoint{}, err
	}
	return after, m.forget(ctx, conn, after.Resource)
}

// writeDifference proves that what was written is what was found: a trigger of
// somebody's may have swallowed a row.
func (m *Mirror) writeDifference(ctx context.Context, conn *pgx.Conn, op string, w *weighing) error {
	var upserted, marked int64
	base, resource := w.pass.BaseSeq, w.pass.At.Resource
	if w.staged > 0 {
		tag, err := conn.Exec(ctx, m.layout.RenderResource(upsertDifference, resource), base)
		if err != nil {
			return err
		}
		upserted = tag.RowsAffected()
	}
	if w.difference.Absent > 0 {
		tag, err := conn.Exec(ctx, m.layout.RenderResource(markAbsent, resource), base, w.pass.At.SnapshotID)
		if err != nil {
			return err
		}
		marked = tag.RowsAffected()
	}
	if upserted != w.staged || marked != w.difference.Absent {
		return &Error{
			Kind: KindInternal, Op: op, Hint: hintAdded,
			Message: fmt.Sprintf("the merge does not add up: %d of %d rows and %d of %d absences were written", upserted, w.staged, marked, w.difference.Absent),
		}
	}
	return nil
}

const holdPass = `
update {sync}.passes set held = true, held_difference = $3::jsonb where resource = $1::text and epoch = $2::bigint`

// markHeld notes what a person has to decide about.
func (m *Mirror) markHeld(ctx context.Context, op string, p Pass, d Difference) error {
	text, err := json.Marshal(d)
	if err != nil {
		return fail(op, err)
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	tag, err := m.pool.Exec(ctx, m.layout.Render(holdPass), p.At.Resource, p.At.Epoch, string(text))
	if err == nil && tag.RowsAffected() == 0 {
		err = passFenced(op)
	}
	return fail(op, err)
}
