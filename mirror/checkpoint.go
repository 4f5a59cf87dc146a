package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Phase is what kind of round a resource is in.
type Phase string

const (
	// PhaseIncremental means: pages go straight to the readers' table.
	PhaseIncremental Phase = "incremental"
	// PhaseRebuild means: the sync token is dead, the next full pass replaces the mirror.
	PhaseRebuild Phase = "rebuild"
)

// Checkpoint is where a resource's mirror stands (contract §6: what a client must
// persist after each page).
type Checkpoint struct {
	Resource     string
	Phase        Phase
	SyncToken    string     // that the round in hand began with, or the next one begins with; "" for a full pass
	Cursor       string     // of the next page, "" at a round's beginning
	SnapshotID   string     // of the round in hand
	DataCutoffAt *time.Time // of the round in hand
	Pages        int64      // committed in the round in hand; 0: no round in hand
	Epoch        int64      // grows with every write of the state row
	Tenant       string     // that the mirror was filled from, "" when never told
}

const readState = `
select phase, sync_token, cursor, snapshot_id, data_cutoff_at, pages, epoch, tenant,
       live_rows + deleted_rows > 0 and not exists (select from {table})
from {sync}.state where resource = $1::text`

// A state row that promises rows beside an empty table outlived them: the table
// was dropped or emptied by hand. The full pass that fills it again is a first one,
// and change_seq goes on, so that no reader's cursor is behind it.
// A pass that was staged for the rows of before goes with them.
const resetState = `
with reset as (
    update {sync}.state
    set phase = 'incremental', sync_token = '', cursor = '', snapshot_id = '', data_cutoff_at = null, pages = 0,
        live_rows = 0, deleted_rows = 0, last_success_at = null, complete_cutoff_at = null,
        restart_reason = 'ROWS_LOST', restarted_at = now(), epoch = epoch + 1
    where resource = $1::text and epoch = $2::bigint
    returning resource
)
delete from {sync}.passes p using reset r where p.resource = r.resource`

// A state row that is missing beside a table with rows was lost. The rows stay
// for the readers, change_seq goes on behind them and behind what was purged, a rebuild makes them right; and
// the epoch is one that no worker can hold from before.
const makeState = `
insert into {sync}.state (resource, phase, epoch, change_seq, live_rows, deleted_rows)
select $1::text,
       case when count(*) = 0 then 'incremental' else 'rebuild' end,
       case when count(*) = 0 then 0 else (extract(epoch from clock_timestamp()) * 1000000)::bigint end,
       greatest(coalesce(max(change_seq), 0), coalesce((select p.change_seq from {sync}.purges p where p.resource = $1::text), 0)),
       count(*) filter (where deleted_at is null),
       count(*) filter (where deleted_at is not null)
from {table}
on conflict (resource) do nothing`

// Checkpoint reads where the resource stands. It makes the state row when there
// is none, and begins anew when the rows are gone that it promises. A phase that this binary does not know is KindSchema.
func (m *Mirror) Checkpoint(ctx context.Context, resource string) (Checkpoint, error) {
	op := "checkpoint " + resource
	if err := checkResources(op, []string{resource}); err != nil {
		return Checkpoint{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	c, lost, err := m.readState(ctx, resource)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		if _, err = m.pool.Exec(ctx, m.layout.RenderResource(makeState, resource), resource); err == nil {
			c, _, err = m.readState(ctx, resource)
		}
	case err == nil && lost:
		if _, err = m.pool.Exec(ctx, m.layout.Render(resetState), resource, c.Epoch); err == nil {
			c, _, err = m.readState(ctx, resource)
		}
	}
	if errors.Is(err, pgx.ErrNoRows) { // it was removed again at once
		return Checkpoint{}, fenced(op)
	}
	if err != nil {
		return Checkpoint{}, fail(op, err)
	}
	if c.Phase != PhaseIncremental && c.Phase != PhaseRebuild {
		return Checkpoint{}, &Error{
			Kind: KindSchema, Op: op, Message: fmt.Sprintf("the state row is in phase %.20q, which this binary does not know", c.Phase),
			Hint: "use the release that wrote it, or a later one",
		}
	}
	return c, nil
}

// readState also tells whether the rows that the state row promises are gone.
func (m *Mirror) readState(ctx context.Context, resource string) (c Checkpoint, lost bool, err error) {
	c.Resource = resource
	err = m.pool.QueryRow(ctx, m.layout.RenderResource(readState, resource), resource).Scan(
		&c.Phase, &c.SyncToken, &c.Cursor, &c.SnapshotID, &c.DataCutoffAt, &c.Pages, &c.Epoch, &c.Tenant, &lost)
	return c, lost, err
}

const restartState = `
update {sync}.state
set phase = 'rebuild', sync_token = case when $4::boolean then sync_token else '' end, cursor = '', snapshot_id = '', data_cutoff_at = null, pages = 0,
    restarts = restarts + 1, restart_reason = $3::text, restarted_at = now(), epoch = epoch + 1
where resource = $1::text and epoch = $2::bigint
returning epoch`

// Restart turns the resource to a rebuild from the beginning, durably: the
// cursor and the snapshot are forgotten, and so is the token (contract §5,
// SYNC_CURSOR_EXPIRED), unless keepToken says that it is still good for a Resume.
// Rows and their readers are not touched. Compare-and-set against before; KindFenced.
func (m *Mirror) Restart(ctx context.Context, before Checkpoint, reason string, keepToken bool) (Checkpoint, error) {
	after := Checkpoint{Resource: before.Resource, Phase: PhaseRebuild, Tenant: before.Tenant}
	if keepToken {
		after.SyncToken = before.SyncToken
	}
	return m.swap(ctx, "restart "+before.Resource, restartState, before, after, reason, keepToken)
}

const resumeState = `
update {sync}.state
set phase = 'incremental', cursor = '', snapshot_id = '', data_cutoff_at = null, pages = 0, epoch = epoch + 1
where resource = $1::text and epoch = $2::bigint and sync_token <> ''
returning epoch`

// Resume gives a rebuild up: the pass is dropped and the increments go on from
// the token that Restart kept. Without one it is KindConfig, because the remote
// knows no place to go on from. A resource that is in no rebuild only loses its
// pass. Compare-and-set against before; KindFenced.
func (m *Mirror) Resume(ctx context.Context, before Checkpoint) (Checkpoint, error) {
	op := "resume " + before.Resource
	if err := checkResources(op, []string{before.Resource}); err != nil {
		return Checkpoint{}, err
	}
	if before.Phase != PhaseRebuild {
		return before, m.DropPass(ctx, before.Resource)
	}
	if before.SyncToken == "" {
		return Checkpoint{}, &Error{
			Kind: KindConfig, Op: op, Message: "the remote no longer knows where the mirror stands, so the rebuild cannot be given up",
			Hint: "let the rebuild finish; readers keep the rows of before until then",
		}
	}
	after := Checkpoint{Resource: before.Resource, Phase: PhaseIncremental, SyncToken: before.SyncToken, Tenant: before.Tenant}
	err := m.withStaging(ctx, before.Resource, func() error {
		return m.transaction(ctx, opTimeout, func(ctx context.Context, conn *pgx.Conn) error {
			if err := begin(ctx, conn); err != nil {
				return err
			}
			err := conn.QueryRow(ctx, m.layout.Render(resumeState), before.Resource, before.Epoch).Scan(&after.Epoch)
			if errors.Is(err, pgx.ErrNoRows) {
				return fenced(op)
			}
			if err != nil {
				return err
			}
			return m.forget(ctx, conn, before.Resource)
		})
	})
	if err != nil {
		return Checkpoint{}, fail(op, err)
	}
	return after, nil
}

const adoptTenant = `
update {sync}.state set tenant = $3::text, epoch = epoch + 1
where resource = $1::text and epoch = $2::bigint and tenant = ''
returning epoch`

// Adopt notes the tenant that this resource's mirror is filled from, once: a
// tenant that is there already is never replaced. Compare-and-set against before;
// KindFenced.
func (m *Mirror) Adopt(ctx context.Context, before Checkpoint, tenant string) (Checkpoint, error) {
	after := before
	after.Tenant = tenant
	return m.swap(ctx, "adopt "+before.Resource, adoptTenant, before, after, tenant)
}

// swap runs a compare-and-set of the state row and returns after with its epoch.
func (m *Mirror) swap(ctx context.Context, op, sql string, before, after Checkpoint, more ...any) (Checkpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	err := m.pool.QueryRow(ctx, m.layout.Render(sql), append([]any{before.Resource, before.Epoch}, more...)...).Scan(&after.Epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return Checkpoint{}, fenced(op)
	}
	if err != nil {
		return Checkpoint{}, fail(op, err)
	}
	return after, nil
}

func fenced(op string) error {
	return &Error{Kind: KindFenced, Op: op, Message: "the state row has moved on; nothing was written"}
}

func passFenced(op string) error {
	return &Error{Kind: KindFenced, Op: op, Message: "the full pass has moved on; nothing was written"}
}
