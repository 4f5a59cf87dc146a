package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
)

// Purpose is what a full pass is staged for.
type Purpose string

const (
	// PurposeRebuild means: it replaces the mirror when it is complete.
	PurposeRebuild Purpose = "rebuild"
	// PurposePlan means: it is compared, and merged only when a person says so.
	PurposePlan Purpose = "plan"
	// PurposeVerify means: it is compared and never merged.
	PurposeVerify Purpose = "verify"
)

// Pass is a full pass (syncToken null) in the staging table, and where it stands.
type Pass struct {
	// At is the pass's own position, with an Epoch of its own. Its SyncToken is ""
	// while pages come and the next round's token once the pass is Complete.
	At        Checkpoint
	Purpose   Purpose
	Reason    string    // why it began: SYNC_CURSOR_EXPIRED, REQUESTED, …
	Rows      int64     // staged so far, ids that came on two pages included
	Complete  bool      // the last page is staged
	Held      bool      // the deletion fuse holds it
	BaseSeq   int64     // the state row's change_seq when the pass began
	StartedAt time.Time // by the database's clock
}

var (
	// ErrStagingLost means that staging does not hold what its pass promises:
	// emptied or dropped by hand, or restored without its rows. Begin a new pass.
	ErrStagingLost = errors.New("staging does not hold what its pass promises")
	// ErrMoved is in a KindFenced error of Merge when rows of the mirror changed
	// after the pass began: merging it would bring old rows back.
	ErrMoved = errors.New("the mirror has changed since the pass began")
)

const passColumns = `purpose, reason, cursor, sync_token, snapshot_id, data_cutoff_at, pages, epoch, rows, complete, held, base_seq, started_at`

const readPass = `select ` + passColumns + ` from {sync}.passes where resource = $1::text`

// Pass reads the resource's full pass; found is false when there is none.
func (m *Mirror) Pass(ctx context.Context, resource string) (p Pass, found bool, err error) {
	op := "pass " + resource
	if err := checkResources(op, []string{resource}); err != nil {
		return Pass{}, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	p, err = scanPass(m.pool.QueryRow(ctx, m.layout.Render(readPass), resource), resource)
	if errors.Is(err, pgx.ErrNoRows) {
		return Pass{}, false, nil
	}
	return p, err == nil, fail(op, err)
}

const readMerged = `select merged_pass, merged_spared from {sync}.state where resource = $1::text and merged_pass is not null`

// Merged tells which pass the resource's last merge brought in, by its StartedAt, and
// whether the deletions were left out; a zero time when there was no merge.
func (m *Mirror) Merged(ctx context.Context, resource string) (began time.Time, spared bool, err error) {
	op := "last merge of " + resource
	if err := checkResources(op, []string{resource}); err != nil {
		return time.Time{}, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	err = m.pool.QueryRow(ctx, m.layout.Render(readMerged), resource).Scan(&began, &spared)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, false, nil
	}
	return began.UTC(), spared, fail(op, err)
}

func scanPass(row pgx.Row, resource string) (Pass, error) {
	p := Pass{At: Checkpoint{Resource: resource, Phase: PhaseRebuild}}
	err := row.Scan(&p.Purpose, &p.Reason, &p.At.Cursor, &p.At.SyncToken, &p.At.SnapshotID, &p.At.DataCutoffAt, &p.At.Pages, &p.At.Epoch,
		&p.Rows, &p.Complete, &p.Held, &p.BaseSeq, &p.StartedAt)
	p.At.DataCutoffAt, p.StartedAt = utc(p.At.DataCutoffAt), p.StartedAt.UTC()
	return p, err
}

// beginPass reads the state row under a lock, so that nothing moves while the
// pass begins. The epoch is one that no worker can hold from an earlier pass.
const beginPass = `
insert into {sync}.passes as p (resource, purpose, reason, epoch, base_seq, started_at)
select s.resource, $3::text, $4::text, (extract(epoch from clock_timestamp()) * 1000000)::bigint, s.change_seq, now()
from {sync}.state s where s.resource = $1::text and s.epoch = $2::bigint
for update of s
on conflict (resource) do update
set purpose = excluded.purpose, reason = excluded.reason, epoch = greatest(p.epoch + 1, excluded.epoch), base_seq = excluded.base_seq,
    cursor = '', sync_token = '', snapshot_id = '', data_cutoff_at = null, pages = 0, rows = 0, complete = false,
    held = false, held_difference = null, restarts = p.restarts + 1, started_at = excluded.started_at
returning ` + passColumns

// BeginPass empties staging and begins a full pass there. It takes the place of
// any other pass of the resource. base is compared with the state row, which does
// not move; KindFenced.
func (m *Mirror) BeginPass(ctx context.Context, base Checkpoint, purpose Purpose, reason string) (Pass, error) {
	op := "begin pass of " + base.Resource
	if err := checkResources(op, []string{base.Resource}); err != nil {
		return Pass{}, err
	}
	var p Pass
	err := m.withStaging(ctx, base.Resource, func() error {
		return m.transaction(ctx, opTimeout, func(ctx context.Context, conn *pgx.Conn) (err error) {
			if err := begin(ctx, conn); err != nil {
				return err
			}
			row := conn.QueryRow(ctx, m.layout.Render(beginPass), base.Resource, base.Epoch, string(purpose), reason)
			if p, err = scanPass(row, base.Resource); errors.Is(err, pgx.ErrNoRows) {
				return fenced(op)
			}
			if err != nil {
				return err
			}
			return m.empty(ctx, conn, base.Resource)
		})
	})
	if err != nil {
		return Pass{}, fail(op, err)
	}
	return p, nil
}

// DropPass empties the resource's staging and forgets its pass, if there is one.
func (m *Mirror) DropPass(ctx context.Context, resource string) error {
	op := "drop pass of " + resource
	if err := checkResources(op, []string{resource}); err != nil {
		return err
	}
	return fail(op, m.withStaging(ctx, resource, func() error {
		return m.transaction(ctx, opTimeout, func(ctx context.Context, conn *pgx.Conn) error {
			if err := begin(ctx, conn); err != nil {
				return err
			}
			return m.forget(ctx, conn, resource)
		})
	}))
}

// begin opens a transaction that waits for no lock longer than ten seconds.
func begin(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "begin isolation level read committed; set local lock_timeout = '10s'")
	return err
}

// forget removes the pass and its rows.
func (m *Mirror) forget(ctx context.Context, conn *pgx.Conn, resource string) error {
	if _, err := conn.Exec(ctx, m.layout.Render(`delete from {sync}.passes where resource = $1::text`), resource); err != nil {
		return err
	}
	return m.empty(ctx, conn, resource)
}

// empty truncates staging. Who only looks at it (a dump of the database does, for
// hours) keeps a truncation away; the rows are deleted then. Three seconds are
// enough for an automatic vacuum to step aside.
func (m *Mirror) empty(ctx context.Context, conn *pgx.Conn, resource string) error {
	const truncate = `savepoint emptying; set local lock_timeout = '3s'; truncate {staging}`
	_, err := conn.Exec(ctx, m.layout.RenderResource(truncate, resource))
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "55P03" {
		_, err = conn.Exec(ctx, m.layout.RenderResource(`rollback to savepoint emptying; delete from {staging}`, resource))
	}
	return err
}

// withStaging runs f, and once more when it failed for want of a staging table
// that could be made.
func (m *Mirror) withStaging(ctx context.Context, resource string, f func() error) error {
	err := f()
	if lost, makeErr := m.remakeStaging(ctx, resource, err); makeErr != nil || !lost {
		return errors.Join(makeErr, err)
	}
	return f()
}

// promised turns the error of a statement that needs staged rows into
// ErrStagingLost when their table is not there. The table is made anew.
func (m *Mirror) promised(ctx context.Context, op, resource string, err error) error {
	if err == nil || errors.Is(err, ErrStagingLost) {
		return err
	}
	lost, makeErr := m.remakeStaging(ctx, resource, err)
	if makeErr != nil {
		return fail(op, makeErr)
	}
	if lost {
		return stagingLost(op)
	}
	return fail(op, err)
}

func stagingLost(op string) error { return fmt.Errorf("mirror: %s: %w", op, ErrStagingLost) }

// remakeStaging makes the staging table anew if err says that a table is missing
// and it is this one.
func (m *Mirror) remakeStaging(ctx context.Context, resource string, err error) (lost bool, _ error) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "42P01" {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	there, err := migrations.StagingThere(ctx, m.pool, m.layout, resource)
	if err != nil || there {
		return false, err
	}
	_, err = migrations.Apply(ctx, m.pool, m.layout, []string{resource}, false)
	var e *Error
	if err = fail("make the staging table of "+resource, err); errors.As(err, &e) && e.Kind == KindDenied {
		e.Hint = "let the schemas' owner run `xiaoqu-sync migrate`: the staging table is gone, and this login may not make it"
	}
	return err == nil, err
}
