package mirror

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"iter"
	"slices"
	"time"
)

// Batch is the records of a page, or of several that follow each other, judged
// and ready to be written: rows sorted by id with each id once, and what goes to
// quarantine. It owns its bytes.
type Batch struct {
	// RequestID is of the call that brought the page, for the quarantine.
	RequestID string

	pages      int64
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
	seen   int // times in this batch
	// requestID is of the call that brought it last, "" while that is its batch's.
	requestID string
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
	b := &Batch{pages: 1, received: int64(len(records)), rows: make([]row, 0, len(records))}
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
	if len(raw) > maxRecordBytes {
		n.raw = raw[:keptOfHuge]
	}
	b.keep(n)
}

func (b *Batch) keep(n note) {
	for i := range b.notes {
		if b.notes[i].hash == n.hash && b.notes[i].kind == n.kind {
			b.notes[i].seen += n.seen
			b.notes[i].requestID = n.requestID
			return
		}
	}
	b.notes = append(b.notes, n)
}

// Join makes one batch of pages that follow each other, so that they commit
// together. They are as one larger page: of an id that is on several the last
// wins. What goes to quarantine keeps its own page's request. The pages belong to
// the new batch; at least one is needed.
func Join(pages []*Batch) *Batch {
	if len(pages) == 1 {
		return pages[0]
	}
	b := &Batch{RequestID: pages[len(pages)-1].RequestID}
	size := 0
	for _, p := range pages {
		size += len(p.rows)
	}
	b.rows = make([]row, 0, size)
	for _, p := range pages {
		b.pages += p.pages
		b.received += p.received
		b.duplicates += p.duplicates
		b.refused += p.refused
		b.mended += p.mended
		b.rows = append(b.rows, p.rows...)
		b.spared = append(b.spared, p.spared...)
		for _, n := range p.notes {
			n.requestID = p.RequestID
			b.keep(n)
		}
	}
	b.dedupe()
	return b
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
