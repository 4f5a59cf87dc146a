package mirror

import (
	"context"
	"encoding/binary"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// StageStep is one page of a full pass and where it leads.
type StageStep struct {
	Before    Pass
	After     Checkpoint // where the page leads from Before.At; its Epoch and Pages are set by Stage
	Batch     *Batch     // nil for a page without records
	RunID     int64
	RequestID string // of the call that brought the page, for the quarantine
	Last      bool   // the page ended the pass
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

// Stage writes a page to staging and the pass's position in one transaction of two
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
		epoch, err := m.movePass(ctx, conn, s, after, b.notes)
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
	return Step{Before: s.Before.At, After: s.After, RunID: s.RunID, RequestID: s.RequestID}
}

func (s StageStep) after(b *Batch) Pass {
	p := s.Before
	p.At = s.After
	p.At.Phase, p.At.Pages, p.At.Tenant = PhaseRebuild, s.Before.At.Pages+1, s.Before.At.Tenant
	p.Rows += int64(len(b.spared) + len(b.rows))
	p.Complete = s.Last
	return p
}

// movePass sends BEGIN, the pass's position and the page's quarantine in one round trip.
func (m *Mirror) movePass(ctx context.Context, conn *pgx.Conn, s StageStep, after Pass, notes []note) (epoch int64, err error) {
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
	if len(notes) > 0 {
		b.add(m.layout.Render(writeNotes), noteArguments(s.step(), notes)...)
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
	r := newCopyReader(rows, s.Before.Rows, s.step().snapshot())
	tag, err := conn.PgConn().CopyFrom(ctx, r, m.layout.RenderResource(copyStaging, s.After.Resource))
	if err != nil {
		return err
	}
	return committed(tag)
}

// copyReader is a page in COPY's binary format, one row in memory at a time:
// nothing has to be escaped, and a fat page is not held twice.
type copyReader struct {
	rows     []row
	seq      int64 // of the next row
	snapshot string
	buf      []byte
	rest     []byte // of buf, not read yet
	ended    bool
}

const (
	// copySignature begins every binary copy; no flags and no extension follow.
	copySignature = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	copyColumns   = 9
	// postgresEpoch is 2000-01-01 in Unix microseconds: where timestamptz begins to count.
	postgresEpoch = 946_684_800_000_000
	// jsonbFormat is the first byte of a jsonb in binary; its text follows.
	jsonbFormat = 1
)

func newCopyReader(rows []row, seq int64, snapshot string) *copyReader {
	return &copyReader{rows: rows, seq: seq, snapshot: snapshot, rest: []byte(copySignature)}
}

// Read fills p with as much of the page as it holds.
func (c *copyReader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(c.rest) == 0 && !c.next() {
			return n, io.EOF
		}
		k := copy(p[n:], c.rest)
		c.rest = c.rest[k:]
		n += k
	}
	return n, nil
}

// next encodes the next row, or the trailer, and reports whether there was one.
func (c *copyReader) next() bool {
	switch {
	case c.ended:
		return false
	case len(c.rows) == 0:
		c.ended = true
		c.buf = append(c.buf[:0], 0xff, 0xff) // minus one column: the trailer
	default:
		c.encode(&c.rows[0])
		c.rows = c.rows[1:]
	}
	c.rest = c.buf
	return true
}

func (c *copyReader) encode(r *row) {
	b := binary.BigEndian.AppendUint16(c.buf[:0], copyColumns)
	b = binary.BigEndian.AppendUint32(b, 8)
	b = binary.BigEndian.AppendUint64(b, uint64(c.seq))
	c.seq++
	b = appendText(b, r.id, true)
	if r.record == nil { // a spared id: everything else is null
		for range copyColumns - 2 {
			b = binary.BigEndian.AppendUint32(b, null)
		}
		c.buf = b
		return
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.record)+1))
	b = append(append(b, jsonbFormat), r.record...)
	b = appendTime(b, r.modified)
	b = appendTime(b, r.deleted)
	b = append(b, 0, 0, 0, 1, 0)
	if r.tombstone {
		b[len(b)-1] = 1
	}
	b = appendText(b, r.version, r.versioned)
	b = appendText(b, c.snapshot, c.snapshot != "")
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.hash)))
	c.buf = append(b, r.hash[:]...)
}

// null is the length of a null.
const null = 0xffff_ffff

func appendText(b []byte, text string, valid bool) []byte {
	if !valid {
		return binary.BigEndian.AppendUint32(b, null)
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
}

// appendTime writes the zero time as null.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.BigEndian.AppendUint32(b, null)
	}
	b = binary.BigEndian.AppendUint32(b, 8)
	return binary.BigEndian.AppendUint64(b, uint64(t.UnixMicro()-postgresEpoch))
}
