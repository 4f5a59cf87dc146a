package mirror

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// fillState moves the state row for rows that are all new. What they will be
// counted as is known beforehand; the time is the one that now() is to all of the
// transaction.
const fillState = `
with tally as (
    select $12::bigint + $13::bigint as changed, $12::bigint as inserted, $13::bigint as deleted, 0::bigint as revived, 0::bigint as fell
), ` + fence + `, ` + told + `
select f.epoch, f.base, (extract(epoch from now()) * 1000000)::bigint, (select count(*) from told) from fence f`

const fillStateColumns = 4

// oneOfEach writes nothing and fails where no key keeps an id from being there
// twice: COPY would not notice.
const oneOfEach = `insert into {table} (id) select '' where false on conflict (id) do nothing`

const copyRows = `
copy {table} (id, record, modify_time, deleted_at, version, snapshot_id, synced_at, change_seq, content_hash, delete_reason)
from stdin (format binary)`

const copyRowsColumns = 10

// fill writes a step whose rows are all new, as a first sync's are, by COPY: that
// costs half of what the statement for any page does. The transaction is left open
// for who commits it.
func (m *Mirror) fill(ctx context.Context, conn *pgx.Conn, step Step, p *Batch) (Checkpoint, Counts, error) {
	after := step.After
	after.Tenant = step.Before.Tenant
	c := Counts{Received: p.received, Duplicates: p.duplicates, Quarantined: p.refused, Mended: p.mended}
	for i := range p.rows {
		if p.rows[i].tombstone {
			c.Deleted++
		} else {
			c.Inserted++
		}
	}
	b := newBatch(conn)
	b.add("begin")
	b.add(m.layout.Render(fillState), append(fenceArguments(step, m.channel()),
		argument{pgtype.Int8OID, c.Inserted}, argument{pgtype.Int8OID, c.Deleted})...)
	b.add(m.layout.RenderResource(oneOfEach, after.Resource))
	if len(p.notes) > 0 {
		b.add(m.layout.Render(writeNotes), noteArguments(step, p)...)
	}
	results, err := b.send(ctx)
	if err != nil {
		return Checkpoint{}, Counts{}, err
	}
	if len(results[1].Rows) == 0 {
		return Checkpoint{}, Counts{}, fenced("commit " + after.Resource)
	}
	n, err := integers(results[1].Rows, fillStateColumns)
	if err != nil {
		return Checkpoint{}, Counts{}, err
	}
	after.Epoch = n[0]
	f := filling{seq: n[1], now: time.UnixMicro(n[2]), snapshot: step.snapshot()}
	tag, err := conn.PgConn().CopyFrom(ctx, newCopyReader(p.rows, f.encode), m.layout.RenderResource(copyRows, after.Resource))
	if err != nil {
		return Checkpoint{}, Counts{}, err
	}
	if tag.RowsAffected() != c.Stored() || c.Received != c.Stored()+c.Duplicates+c.Quarantined {
		return Checkpoint{}, Counts{}, &Error{
			Kind: KindInternal, Op: "commit " + after.Resource, Hint: hintAdded,
			Message: fmt.Sprintf("the page does not add up: %d of %d rows were written, %+v", tag.RowsAffected(), c.Stored(), c),
		}
	}
	return after, c, nil
}

// unfit tells that the server refused the rows as a COPY: an id is there already,
// or the table is one that COPY may not write. The statement for any page decides
// then what is wrong, if anything is.
func unfit(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || len(pg.Code) != 5 {
		return false
	}
	switch pg.Code[:2] {
	case "0A", "22", "23", "42":
		return true
	}
	return false
}

// filling encodes new rows for the readers' table.
type filling struct {
	seq      int64 // of the last row
	now      time.Time
	snapshot string
}

func (f *filling) encode(b []byte, r *row) []byte {
	f.seq++
	b = binary.BigEndian.AppendUint16(b, copyRowsColumns)
	b = appendText(b, r.id, true)
	b = appendRecord(b, r.record)
	b = appendTime(b, r.modified)
	switch {
	case !r.tombstone:
		b = appendTime(b, time.Time{})
	case !r.deleted.IsZero():
		b = appendTime(b, r.deleted)
	case !r.modified.IsZero():
		b = appendTime(b, r.modified)
	default:
		b = appendTime(b, f.now)
	}
	b = appendText(b, r.version, r.versioned)
	b = appendText(b, f.snapshot, f.snapshot != "")
	b = appendTime(b, f.now)
	b = appendInteger(b, f.seq)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.hash)))
	b = append(b, r.hash[:]...)
	return appendText(b, "tombstone", r.tombstone)
}
