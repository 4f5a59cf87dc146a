package mirror

import (
	"context"
	"encoding/binary"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// StageStep is one page of a full pass, or several that were joined, and where the
// last one leads.
type StageStep struct {
	Before Pass
	After  Checkpoint // where the last page leads; its Epoch and Pages are set by Stage
	Batch  *Batch     // nil for a page without records
	RunID  int64
	Last   bool // the last page ended the pass
}

const movePass = `
update {sync}.passes
set cursor = $3::text, sync_token = $4::text, snapshot_id = $5::text, data_cutoff_at = $6::timestamptz,
    pages = $7::bigint, rows = $8::bigint, complete = $9::boolean, epoch = epoch + 1
where resource = $1::text and epoch = $2::bigint and not complete
returning epoch`

const copyStaging = `
copy {staging} (seq, id, record, modify_time, deleted_at, tombstone, version, snapshot_id, content_hash)
from stdin (format binary); commit`

// Stage writes a step's rows to staging and the pass's position in one transaction of two
// round trips and returns the pass as it then stands. Errors are those of Commit,
// compared with the pass instead of the state row; and ErrStagingLost.
func (m *Mirror) Stage(ctx context.Context, s StageStep) (Pass, Counts, error) {
	op := "stage " + s.Before.At.Resource
	if err := s.check(op); err != nil {
		return Pass{}, Counts{}, err
	}
	b := s.Batch
	if b == nil {
		b = NewBatch(nil, nil)
	}
	after := s.after(b)
	err := m.transaction(ctx, opTimeout, func(ctx context.Context, conn *pgx.Conn) error {
		epoch, err := m.movePass(ctx, conn, s, after, b)
		if err != nil {
			return err
		}
		after.At.Epoch = epoch
		return m.copyRows(ctx, conn, s, b.staged())
	})
	counts := Counts{
		Received: b.received, Staged: int64(len(b.rows)), Duplicates: b.duplicates, Quarantined: b.refused, Mended: b.mended,
	}
	if err != nil {
		return Pass{}, counts, m.promised(ctx, op, after.At.Resource, err)
	}
	return after, counts, nil
}

func (s StageStep) check(op string) error {
	if err := checkResources(op, []string{s.Before.At.Resource}); err != nil {
		return err
	}
	switch {
	case s.After.Resource != s.Before.At.Resource:
		return &Error{Kind: KindInternal, Op: op, Message: "a step leads from one resource to another"}
	case s.Before.Complete:
		return &Error{Kind: KindInternal, Op: op, Message: "the pass is complete"}
	case s.Last == (s.After.SyncToken == ""):
		return &Error{Kind: KindInternal, Op: op, Message: "the last page of a pass, and no other, brings a token"}
	}
	return nil
}

// step is the same page as Commit would see it, for the quarantine.
func (s StageStep) step() Step {
	return Step{Before: s.Before.At, After: s.After, RunID: s.RunID}
}

func (s StageStep) after(b *Batch) Pass {
	p := s.Before
	p.At = s.After
	p.At.Phase, p.At.Pages, p.At.Tenant = PhaseRebuild, s.Before.At.Pages+b.pages, s.Before.At.Tenant
	p.Rows += int64(len(b.spared) + len(b.rows))
	p.Complete = s.Last
	return p
}

// movePass sends BEGIN, the pass's position and the pages' quarantine in one round trip.
func (m *Mirror) movePass(ctx context.Context, conn *pgx.Conn, s StageStep, after Pass, pages *Batch) (epoch int64, err error) {
	b := newBatch(conn)
	b.add("begin")
	b.add(m.layout.Render(movePass),
		argument{pgtype.TextOID, after.At.Resource},
		argument{pgtype.Int8OID, s.Before.At.Epoch},
		argument{pgtype.TextOID, after.At.Cursor},
		argument{pgtype.TextOID, after.At.SyncToken},
		argument{pgtype.TextOID, after.At.SnapshotID},
		argument{pgtype.TimestamptzOID, after.At.DataCutoffAt},
		argument{pgtype.Int8OID, after.At.Pages},
		argument{pgtype.Int8OID, after.Rows},
		argument{pgtype.BoolOID, after.Complete},
	)
	if len(pages.notes) > 0 {
		b.add(m.layout.Render(writeNotes), noteArguments(s.step(), pages)...)
	}
	results, err := b.send(ctx)
	if err != nil {
		return 0, err
	}
	if len(results[1].Rows) == 0 {
		return 0, passFenced("stage " + after.At.Resource)
	}
	n, err := integers(results[1].Rows, 1)
	if err != nil {
		return 0, err
	}
	return n[0], nil
}

// staged are the rows for staging: those of spared ids are ids alone, and come
// first, so that a record of the same page that could be stored counts instead.
func (b *Batch) staged() []row {
	if len(b.spared) == 0 {
		return b.rows
	}
	rows := make([]row, 0, len(b.spared)+len(b.rows))
	for _, id := range b.spared {
		rows = append(rows, row{id: id})
	}
	return append(rows, b.rows...)
}

// copyRows sends the rows and COMMIT in one round trip. A COPY stores all of them
// or fails, and then the COMMIT behind it is not run.
func (m *Mirror) copyRows(ctx context.Context, conn *pgx.Conn, s StageStep, rows []row) error {
	if len(rows) == 0 {
		return commit(ctx, conn)
	}
	e := staging{seq: s.Before.Rows, snapshot: s.step().snapshot()}
	r := newCopyReader(rows, e.encode)
	tag, err := conn.PgConn().CopyFrom(ctx, r, m.layout.RenderResource(copyStaging, s.After.Resource))
	if err != nil {
		return err
	}
	return committed(tag)
}

// staging encodes rows for the staging table.
type staging struct {
	seq      int64 // of the next row
	snapshot string
}

const copyStagingColumns = 9

func (s *staging) encode(b []byte, r *row) []byte {
	b = binary.BigEndian.AppendUint16(b, copyStagingColumns)
	b = appendInteger(b, s.seq)
	s.seq++
	b = appendText(b, r.id, true)
	if r.record == nil { // a spared id: everything else is null
		for range copyStagingColumns - 2 {
			b = binary.BigEndian.AppendUint32(b, null)
		}
		return b
	}
	b = appendRecord(b, r.record)
	b = appendTime(b, r.modified)
	b = appendTime(b, r.deleted)
	b = append(b, 0, 0, 0, 1, 0)
	if r.tombstone {
		b[len(b)-1] = 1
	}
	b = appendText(b, r.version, r.versioned)
	b = appendText(b, s.snapshot, s.snapshot != "")
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.hash)))
	return append(b, r.hash[:]...)
}
