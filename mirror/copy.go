package mirror

import (
	"encoding/binary"
	"io"
	"time"
)

// copyReader is a page in COPY's binary format, one row in memory at a time:
// nothing has to be escaped, and a fat page is not held twice.
type copyReader struct {
	rows   []row
	encode func(b []byte, r *row) []byte // appends a row
	buf    []byte
	rest   []byte // of buf, not read yet
	ended  bool
}

const (
	// copySignature begins every binary copy; no flags and no extension follow.
	copySignature = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	// postgresEpoch is 2000-01-01 in Unix microseconds: where timestamptz begins to count.
	postgresEpoch = 946_684_800_000_000
	// jsonbFormat is the first byte of a jsonb in binary; its text follows.
	jsonbFormat = 1
)

func newCopyReader(rows []row, encode func(b []byte, r *row) []byte) *copyReader {
	return &copyReader{rows: rows, encode: encode, rest: []byte(copySignature)}
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
		c.buf = c.encode(c.buf[:0], &c.rows[0])
		c.rows = c.rows[1:]
	}
	c.rest = c.buf
	return true
}

// null is the length of a null.
const null = 0xffff_ffff

func appendText(b []byte, text string, valid bool) []byte {
	if !valid {
		return binary.BigEndian.AppendUint32(b, null)
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
}

// appendRecord writes a jsonb.
func appendRecord(b, record []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(record)+1))
	return append(append(b, jsonbFormat), record...)
}

func appendInteger(b []byte, n int64) []byte {
	b = binary.BigEndian.AppendUint32(b, 8)
	return binary.BigEndian.AppendUint64(b, uint64(n))
}

// appendTime writes the zero time as null.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.BigEndian.AppendUint32(b, null)
	}
	b = binary.BigEndian.AppendUint32(b, 8)
	return binary.BigEndian.AppendUint64(b, uint64(t.UnixMicro()-postgresEpoch))
}
