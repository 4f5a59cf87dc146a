package mirror

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"iter"
	"slices"
	"time"
)

// Batch is a page's records, judged and ready to be written: rows sorted by id
// with each id once, and what goes to quarantine. It owns its bytes.
type Batch struct {
	received   int64
	rows       []row
	duplicates int64 // records that a later one of the same id replaced
	refused    int64
	mended     int64
	notes      []note
	// spared are the ids of refused records: the remote still has them, so a
	// full pass must not take their rows for absent.
	spared []string
}

// note is one line for the quarantine table.
type note struct {
	kind   string // "refused" or "mended"
	reason string
	id     string // of the record when it has one
	raw    []byte
	hash   [16]byte
	length int
	seen   int // times in this page
}

const (
	noteRefused = "refused"
	noteMended  = "mended"
	// keptOfHuge is how much of a record beyond the size limit is kept.
	keptOfHuge = 64 << 10
)

// NewBatch judges every record of a page; zone is for times that name none.
// Sorting by id lets two writers of the same rows queue where they would
// deadlock; the last of an id wins.
func NewBatch(records []json.RawMessage, zone *time.Location) *Batch {
	d := newDecoder(zone)
	size := 0
	for _, raw := range records {
		size += len(raw)
	}
	d.arena = make([]byte, 0, size)
	b := &Batch{received: int64(len(records)), rows: make([]row, 0, len(records))}
	for _, raw := range records {
		r, reason := d.decode(raw)
		switch {
		case reason != "":
			b.refused++
			id := refusedID(raw)
			if id != "" {
				b.spared = append(b.spared, id)
			}
			b.note(noteRefused, reason, id, raw)
			continue
		case r.mended:
			b.mended++
			b.note(noteMended, reasonMended, r.id, raw)
		}
		b.rows = append(b.rows, r)
	}
	b.dedupe()
	return b
}

// note adds a line, or counts the same bytes once more: one statement may not
// meet a key twice.
func (b *Batch) note(kind, reason, id string, raw []byte) {
	sum := sha256.Sum256(raw)
	n := note{kind: kind, reason: reason, id: id, raw: raw, hash: [16]byte(sum[:16]), length: len(raw), seen: 1}
	for i := range b.notes {
		if b.notes[i].hash == n.hash && b.notes[i].kind == kind {
			b.notes[i].seen++
			return
		}
	}
	if len(raw) > maxRecordBytes {
		n.raw = raw[:keptOfHuge]
	}
	b.notes = append(b.notes, n)
}

// IDs are the ids that the rows will have.
func (b *Batch) IDs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range b.rows {
			if !yield(b.rows[i].id) {
				return
			}
		}
	}
}

func (b *Batch) dedupe() {
	slices.SortStableFunc(b.rows, func(x, y row) int { return cmp.Compare(x.id, y.id) })
	kept := b.rows[:0]
	for i, r := range b.rows {
		if i+1 < len(b.rows) && b.rows[i+1].id == r.id {
			b.duplicates++
			continue
		}
		kept = append(kept, r)
	}
	b.rows = kept
}
