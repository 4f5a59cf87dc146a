package mirror

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"
)

// explain writes nothing when the pass has moved on, and says so.
const explain = `
with fence as materialized (
    select 1 from {sync}.passes where resource = $1::text and epoch = $2::bigint and purpose = 'verify' for share
), written as (
    insert into {staging} (seq, id, explains)
    select 0, i.id, true from fence cross join unnest($3::text[]) as i (id)
)
select count(*) from fence`

// Explain notes the ids of a page that the next increment will bring: a verified
// row that changed at the source in the meantime is not drift. It stands beside
// the pass and does not move it. KindFenced.
func (m *Mirror) Explain(ctx context.Context, p Pass, b *Batch) error {
	op := "explain " + p.At.Resource
	if err := checkResources(op, []string{p.At.Resource}); err != nil || b == nil || len(b.rows) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	var n int
	err := m.pool.QueryRow(ctx, m.layout.RenderResource(explain, p.At.Resource), p.At.Resource, p.At.Epoch, slices.Collect(b.IDs())).Scan(&n)
	if err == nil && n == 0 {
		err = passFenced(op)
	}
	return m.promised(ctx, op, p.At.Resource, err)
}

const noteVerified = `
update {sync}.state s set verified_at = now(), verified_drift = $3::jsonb
from {sync}.passes p
where s.resource = $1::text and p.resource = s.resource and p.epoch = $2::bigint and p.purpose = 'verify'`

// Verified notes in the state row that the mirror was verified now and what was
// found, and drops the pass. The checkpoint does not move. KindFenced.
func (m *Mirror) Verified(ctx context.Context, p Pass, d Difference) error {
	resource := p.At.Resource
	op := "verified " + resource
	if err := checkResources(op, []string{resource}); err != nil {
		return err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return fail(op, err)
	}
	return fail(op, m.withStaging(ctx, resource, func() error {
		return m.transaction(ctx, opTimeout, func(ctx context.Context, conn *pgx.Conn) error {
			if err := begin(ctx, conn); err != nil {
				return err
			}
			tag, err := conn.Exec(ctx, m.layout.Render(noteVerified), resource, p.At.Epoch, string(text))
			if err == nil && tag.RowsAffected() == 0 {
				err = passFenced(op)
			}
			if err != nil {
				return err
			}
			return m.forget(ctx, conn, resource)
		})
	}))
}
