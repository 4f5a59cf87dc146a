package mirror

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxRecordBytes = 64 << 20
	maxIDBytes     = 2000 // the primary key's index refuses 2,704
	maxIDDigits    = 20
)

// Why a record was set aside: the words in quarantine.reason.
const (
	reasonSize    = "larger than 64 MiB"
	reasonSyntax  = "not valid JSON"
	reasonObject  = "not a JSON object"
	reasonDepth   = "nested too deeply"
	reasonValues  = "too many values"
	reasonNumber  = "number out of range"
	reasonNoID    = "no id"
	reasonIDKind  = "id is neither a string nor an integer"
	reasonIDEmpty = "id is empty"
	reasonIDLong  = "id is too long"
	reasonIDText  = "id holds text that cannot be stored"
	reasonMended  = "NUL or invalid Unicode was replaced by U+FFFD"
)

// row is one record as it goes to the table. Its bytes belong to the decoder's page.
type row struct {
	id        string
	record    []byte // a valid jsonb text
	hash      [16]byte
	modified  time.Time // zero: null
	deleted   time.Time // zero: null, or a tombstone whose time nobody can read
	tombstone bool
	version   string
	versioned bool
	mended    bool
}

// decoder turns records into rows. It is reused for the records of a page, by one
// goroutine.
type decoder struct {
	zone    *time.Location // of times that name none
	strict  jsontext.Options
	lenient jsontext.Options
	scan    scan
	arena   []byte // holds the rows' records
}

func newDecoder(zone *time.Location) *decoder {
	dup := jsontext.AllowDuplicateNames(true) // jsonb keeps the last
	return &decoder{zone: zone, strict: dup, lenient: jsontext.AllowInvalidUTF8(true)}
}

// decode judges one record. A reason other than "" means that it is refused.
func (d *decoder) decode(raw json.RawMessage) (row, string) {
	if len(raw) > maxRecordBytes {
		return row{}, reasonSize
	}
	var r row
	text, reason := d.normalize(raw, &r)
	if reason != "" {
		return row{}, reason
	}
	if text[0] != '{' {
		return row{}, reasonObject
	}
	if reason := d.scan.run(text); reason != "" {
		return row{}, reason
	}
	if r.id, reason = identity(d.scan.fields[fieldID], r.mended); reason != "" {
		return row{}, reason
	}
	sum := sha256.Sum256(d.scan.canon)
	r.record, r.hash = text, [16]byte(sum[:16])
	d.columns(&r)
	return r, ""
}

// refusedID looks for the id of a record that cannot be stored; "" when it has
// none that could be a row's.
func refusedID(raw []byte) string {
	const most = 64 << 10 // an id that stands behind so much is not worth the search
	d := jsontext.NewDecoder(bytes.NewReader(raw[:min(len(raw), maxRecordBytes)]), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != '{' {
		return ""
	}
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() == '"' && d.InputOffset() < most {
		var name jsontext.Token
		if name, err = d.ReadToken(); err != nil {
			break
		}
		if name.String() != "id" {
			err = d.SkipValue()
			continue
		}
		value, err := d.ReadValue()
		if err != nil {
			return ""
		}
		id, _ := identity(value, true) // a U+FFFD in it may stand for anything: then it is nobody's
		return id
	}
	return ""
}

// normalize checks the syntax and writes the record without spaces and with
// minimally escaped strings. Number texts stay. What PostgreSQL cannot hold in a
// text (NUL, lone surrogates, invalid UTF-8) becomes U+FFFD.
func (d *decoder) normalize(raw []byte, r *row) ([]byte, string) {
	start := len(d.arena)
	arena, err := jsontext.AppendFormat(d.arena, raw, d.strict)
	if err != nil {
		r.mended = true
		if arena, err = jsontext.AppendFormat(d.arena, raw, d.strict, d.lenient); err != nil {
			return nil, unreadable(raw)
		}
	}
	text := arena[start:len(arena):len(arena)]
	if bytes.Contains(text, []byte(escapedNUL)) {
		mended, found := mendNUL(text)
		r.mended = r.mended || found
		arena = append(arena[:start], mended...)
		text = arena[start:len(arena):len(arena)]
	}
	d.arena = arena
	return text, ""
}

// unreadable says why a text is no JSON to the decoder, which stops at a depth of its own.
func unreadable(raw []byte) string {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth > maxDepth {
			return reasonDepth
		}
	}
	return reasonSyntax
}

const escapedNUL = `\u0000`

// mendNUL replaces every escaped NUL, and leaves alone the same six characters
// behind an escaped backslash.
func mendNUL(text []byte) (mended []byte, found bool) {
	mended = make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != '\\':
			mended = append(mended, text[i])
		case bytes.HasPrefix(text[i:], []byte(escapedNUL)):
			mended = utf8.AppendRune(mended, utf8.RuneError)
			i += len(escapedNUL) - 1
			found = true
		default:
			mended = append(mended, text[i], text[i+1])
			i++
		}
	}
	return mended, found
}

// identity reads the id: a string, or an integer as its exact text. An id that
// had to be mended would be another record's.
func identity(value []byte, mended bool) (id, reason string) {
	switch {
	case len(value) == 0:
		return "", reasonNoID
	case value[0] == '"':
		id = textOf(value)
		switch {
		case id == "":
			return "", reasonIDEmpty
		case len(id) > maxIDBytes:
			return "", reasonIDLong
		case mended && strings.ContainsAny(id, "\x00\uFFFD"): // NUL: of a record that was refused before it was mended
			return "", reasonIDText
		}
		return id, ""
	case value[0] != '-' && (value[0] < '0' || value[0] > '9'), bytes.ContainsAny(value, ".eE"):
		return "", reasonIDKind
	case len(bytes.TrimPrefix(value, []byte("-"))) > maxIDDigits:
		return "", reasonIDLong
	}
	return string(value), ""
}

// columns fills the typed columns. What cannot be read stays null: the record
// itself is whole in any case.
func (d *decoder) columns(r *row) {
	f := &d.scan.fields
	r.modified, _ = parseTime(timeText(f[fieldModified], f[fieldModifiedCamel]), d.zone)
	deleted := timeText(f[fieldDeleted], f[fieldDeletedCamel])
	if r.tombstone = given(deleted); r.tombstone {
		r.deleted, _ = parseTime(deleted, d.zone)
	}
	v := f[fieldVersion]
	if len(v) > 0 && (v[0] == '"' || v[0] == '-' || v[0] >= '0' && v[0] <= '9') {
		r.version, r.versioned = textOf(v), true
	}
}

// timeText takes the first of two spellings of one field that says anything.
func timeText(snake, camel []byte) []byte {
	if given(snake) {
		return snake
	}
	return camel
}

// given is contract §6's test for a tombstone's deleted_at ("非空"): missing, null
// and "" are empty, anything else is not.
func given(value []byte) bool {
	return len(value) > 0 && string(value) != "null" && string(value) != `""`
}

// textOf unquotes a string that normalize wrote; a number's text is itself.
func textOf(value []byte) string {
	if value[0] != '"' {
		return string(value)
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1])
	}
	text, _ := jsontext.AppendUnquote(nil, value) // valid: normalize wrote it
	return string(text)
}
