package mirror

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// writePage is the whole step in one statement. What differs from the table is
// found first (unchanged rows would cost WAL even in a guarded upsert); then the
// state row is compared and moved; only when it moved is anything written. All
// parts see the table as it was when the statement began, which is exact: who
// holds the right epoch began behind the last writer's commit. Who listens on the
// channel is told when it commits.
const writePage = `
with input as materialized (
    select i.id, i.record, i.modify_time, i.deleted_at, i.tombstone, i.version, i.content_hash, i.n
    from unnest($12::text[], $13::text[], $14::timestamptz[], $15::timestamptz[], $16::boolean[], $17::text[], $18::bytea[])
         with ordinality as i (id, record, modify_time, deleted_at, tombstone, version, content_hash, n)
), changed as materialized (
    select i.id, i.record, i.modify_time, i.version, i.content_hash,
           row_number() over (order by i.n) as n,
           t.id is not null as known,
           case when i.tombstone then coalesce(t.deleted_at, i.deleted_at, i.modify_time, now()) end as deleted_at,
           case when i.tombstone then 'tombstone' end as delete_reason,
           case when i.tombstone and t.deleted_at is null then 'deleted'
                when not i.tombstone and t.deleted_at is not null then 'revived'
                when t.id is null then 'inserted'
                else 'updated' end as fate
    from input i left join {table} t on t.id = i.id
    where t.id is null or t.content_hash <> i.content_hash
), tally as materialized (
    select count(*) as changed,
           count(*) filter (where fate = 'inserted') as inserted,
           count(*) filter (where fate = 'updated') as updated,
           count(*) filter (where fate = 'deleted') as deleted,
           count(*) filter (where fate = 'revived') as revived,
           count(*) filter (where fate = 'deleted' and known) as fell
    from changed
), ` + fence + `, written as (
    insert into {table} as t (id, record, modify_time, deleted_at, version, snapshot_id, synced_at, change_seq, content_hash, delete_reason)
    select c.id, c.record::jsonb, c.modify_time, c.deleted_at, c.version, nullif($10::text, ''), now(), f.base + c.n, c.content_hash, c.delete_reason
    from changed c cross join fence f
    order by c.n
    on conflict (id) do update
    set record = excluded.record, modify_time = excluded.modify_time, deleted_at = excluded.deleted_at,
        version = excluded.version, snapshot_id = excluded.snapshot_id, synced_at = excluded.synced_at,
        change_seq = excluded.change_seq, content_hash = excluded.content_hash,
        delete_reason = excluded.delete_reason
    returning 1
), ` + told + `
select coalesce((select epoch from fence), 0), changed, (select count(*) from written), inserted, updated, deleted, revived,
       (select count(*) from told)
from tally`

const writePageColumns = 8

// writeNotes keeps what could not be mirrored as it came.
const writeNotes = `
insert into {sync}.quarantine as q
    (resource, kind, reason, record_id, raw, raw_hash, raw_length, seen, request_id, snapshot_id, run_id)
select $1::text, i.kind, i.reason, nullif(i.id, ''), i.raw, i.hash, i.length, i.seen, i.request_id, $2::text, nullif($3::bigint, 0)
from unnest($4::text[], $5::text[], $6::text[], $7::bytea[], $8::bytea[], $9::bigint[], $10::bigint[], $11::text[])
     as i (kind, reason, id, raw, hash, length, seen, request_id)
on conflict (resource, kind, raw_hash) do update
set seen = q.seen + excluded.seen, last_seen_at = now(), reason = excluded.reason,
    request_id = excluded.request_id, snapshot_id = excluded.snapshot_id, run_id = excluded.run_id`

// argument is a parameter with its type, for the binary format.
type argument struct {
	oid   uint32
	value any
}

func pageArguments(step Step, p *Batch, channel string) []argument {
	n := len(p.rows)
	ids, records, hashes := make([]string, n), make([][]byte, n), make([][]byte, n)
	modified, deleted := make([]pgtype.Timestamptz, n), make([]pgtype.Timestamptz, n)
	tombstones, versions := make([]bool, n), make([]pgtype.Text, n)
	for i := range p.rows {
		r := &p.rows[i]
		ids[i], records[i], hashes[i], tombstones[i] = r.id, r.record, r.hash[:], r.tombstone
		modified[i] = pgtype.Timestamptz{Time: r.modified, Valid: !r.modified.IsZero()}
		deleted[i] = pgtype.Timestamptz{Time: r.deleted, Valid: !r.deleted.IsZero()}
		versions[i] = pgtype.Text{String: r.version, Valid: r.versioned}
	}
	return append(fenceArguments(step, channel), []argument{
		{pgtype.TextArrayOID, ids},
		{pgtype.TextArrayOID, records},
		{pgtype.TimestamptzArrayOID, modified},
		{pgtype.TimestamptzArrayOID, deleted},
		{pgtype.BoolArrayOID, tombstones},
		{pgtype.TextArrayOID, versions},
		{pgtype.ByteaArrayOID, hashes},
	}...)
}

func noteArguments(step Step, b *Batch) []argument {
	n := len(b.notes)
	kinds, reasons, ids, requests := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	raws, hashes := make([][]byte, n), make([][]byte, n)
	lengths, seen := make([]int64, n), make([]int64, n)
	for i := range b.notes {
		o := &b.notes[i]
		kinds[i], reasons[i], ids[i], requests[i] = o.kind, o.reason, o.id, cmp.Or(o.requestID, b.RequestID)
		raws[i], hashes[i] = o.raw, o.hash[:]
		lengths[i], seen[i] = int64(o.length), int64(o.seen)
	}
	return []argument{
		{pgtype.TextOID, step.After.Resource},
		{pgtype.TextOID, step.snapshot()},
		{pgtype.Int8OID, step.RunID},
		{pgtype.TextArrayOID, kinds},
		{pgtype.TextArrayOID, reasons},
		{pgtype.TextArrayOID, ids},
		{pgtype.ByteaArrayOID, raws},
		{pgtype.ByteaArrayOID, hashes},
		{pgtype.Int8ArrayOID, lengths},
		{pgtype.Int8ArrayOID, seen},
		{pgtype.TextArrayOID, requests},
	}
}

// batch sends several statements in one round trip, with parameters in binary:
// pgx alone would write arrays as text when it may not ask the server for types.
type batch struct {
	conn *pgx.Conn
	wire pgconn.Batch
	err  error
}

func newBatch(conn *pgx.Conn) *batch { return &batch{conn: conn} }

func (b *batch) add(sql string, arguments ...argument) {
	values := make([][]byte, len(arguments))
	oids, formats := make([]uint32, len(arguments)), make([]int16, len(arguments))
	for i, a := range arguments {
		value, err := b.conn.TypeMap().Encode(a.oid, pgtype.BinaryFormatCode, a.value, []byte{}) // a nil buffer makes "" a null
		if err != nil && b.err == nil {
			b.err = fmt.Errorf("encode argument %d: %w", i+1, err)
		}
		values[i], oids[i], formats[i] = value, a.oid, pgtype.BinaryFormatCode
	}
	b.wire.ExecParams(sql, values, oids, formats, nil)
}

func (b *batch) send(ctx context.Context) ([]*pgconn.Result, error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.conn.PgConn().ExecBatch(ctx, &b.wire).ReadAll()
}
