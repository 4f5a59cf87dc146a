package mirror

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// purgeBatch is how many rows go in one transaction.
const purgeBatch = 1000

const movePurged = `
update {sync}.state set epoch = epoch + 1, last_commit_at = now()
where resource = $1::text and epoch = $2::bigint
returning epoch`

// notePurge keeps what the rows that go can no longer tell: see 00003_purges.sql.
const notePurge = `
insert into {sync}.purges as p (resource, before, change_seq, purged_at)
select resource, $3::timestamptz, change_seq, now() from {sync}.state where resource = $1::text and epoch = $2::bigint
on conflict (resource) do update
set before = greatest(p.before, excluded.before), change_seq = greatest(p.change_seq, excluded.change_seq), purged_at = excluded.purged_at`

// removeTombstones walks the primary key, so that every row is looked at once,
// however many batches there are.
const removeTombstones = `
with doomed as materialized (
    select id from {table} where id > $1::text and deleted_at < $2::timestamptz and synced_at < $2::timestamptz order by id limit $3::bigint
), gone as (
    delete from {table} t using doomed d where t.id = d.id returning t.id
), kept as (
    update {sync}.state set deleted_rows = greatest(deleted_rows - (select count(*) from gone), 0) where resource = $4::text
)
select (select count(*) from doomed), (select count(*) from gone), coalesce((select max(id) from doomed), '')`

// Purge removes for good what was deleted at the source, and was last written
// here, longer ago than olderThan by the database's clock: a reader had that long
// to hear of it. It works in batches of their own transactions, and returns the
// checkpoint and how many rows went. It needs DELETE on the table. Readers that
// follow change_seq do not hear of it, and a full pass that still brings the
// tombstone does not bring the row back. KindFenced: the mirror moved on; what
// was removed until then is counted.
func (m *Mirror) Purge(ctx context.Context, before Checkpoint, olderThan time.Duration) (Checkpoint, int64, error) {
	op := "purge " + before.Resource
	if err := checkResources(op, []string{before.Resource}); err != nil {
		return before, 0, err
	}
	if olderThan < 0 {
		return before, 0, &Error{Kind: KindConfig, Op: op, Message: "the age is negative"}
	}
	var limit time.Time
	readCtx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if err := m.pool.QueryRow(readCtx, `select now()`).Scan(&limit); err != nil {
		return before, 0, fail(op, err)
	}
	at, total, last := before, int64(0), ""
	for {
		b := purge{at: at, from: last, limit: limit.Add(-olderThan)}
		if err := m.purge(ctx, op, &b); err != nil {
			return at, total, fail(op, err)
		}
		at, total, last = b.at, total+b.gone, b.last
		if b.seen < purgeBatch {
			return at, total, nil
		}
	}
}

// purge is one batch: where it begins and where it ended.
type purge struct {
	at         Checkpoint
	limit      time.Time
	from, last string // ids
	seen, gone int64
}

func (m *Mirror) purge(ctx context.Context, op string, p *purge) error {
	at := p.at
	err := m.transaction(ctx, opTimeout, func(ctx context.Context, conn *pgx.Conn) error {
		if err := begin(ctx, conn); err != nil {
			return err
		}
		b := newBatch(conn)
		b.add(m.layout.Render(notePurge), argument{pgtype.TextOID, at.Resource}, argument{pgtype.Int8OID, at.Epoch},
			argument{pgtype.TimestamptzOID, p.limit})
		b.add(m.layout.Render(movePurged), argument{pgtype.TextOID, at.Resource}, argument{pgtype.Int8OID, at.Epoch})
		b.add(m.layout.RenderResource(removeTombstones, at.Resource), argument{pgtype.TextOID, p.from},
			argument{pgtype.TimestamptzOID, p.limit}, argument{pgtype.Int8OID, int64(purgeBatch)}, argument{pgtype.TextOID, at.Resource})
		results, err := b.send(ctx)
		if err != nil {
			return err
		}
		if len(results[1].Rows) == 0 {
			return fenced(op)
		}
		epoch, err := integers(results[1].Rows, 1)
		if err != nil {
			return err
		}
		row := results[2].Rows[0]
		n, err := integers([][][]byte{row[:2]}, 2)
		if err != nil {
			return err
		}
		at.Epoch, p.seen, p.gone, p.last = epoch[0], n[0], n[1], string(row[2])
		return nil
	})
	if err == nil {
		p.at = at
	}
	return err
}
