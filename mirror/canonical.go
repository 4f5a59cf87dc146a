package mirror

import (
	"bytes"
	"slices"
)

const (
	maxDepth          = 512     // of nesting; PostgreSQL's own limit depends on its stack
	maxValues         = 4 << 20 // PostgreSQL builds a jsonb in arrays of at most 1 GiB, which double
	maxNumberDigits   = 1000    // written in one number
	maxNumberExponent = 1000    // either sign; numeric itself ends at 1e131072, as 131,073 bytes
)

// scan walks one JSON text that is known to be valid, without spaces and with
// minimally escaped strings. In one pass it writes the canonical form (the members
// of every object sorted by name, everything else as it stands), checks the
// bounds, and remembers where the top-level fields are. It is reused from record
// to record; nothing that it holds outlives the next start.
type scan struct {
	text    []byte
	canon   []byte   // the canonical form
	members []member // of the objects that are open, innermost last
	spare   []byte
	fields  [fieldCount][]byte // raw values of the top-level fields that have columns, nil when missing
	values  int                // of every kind and depth
}

// member is one object member's place in canon; its name is the first nameEnd bytes after start.
type member struct{ start, nameEnd, end int }

// The top-level fields that have columns, in both spellings seen in the wild.
const (
	fieldID = iota
	fieldModified
	fieldModifiedCamel
	fieldDeleted
	fieldDeletedCamel
	fieldVersion
	fieldCount
)

// run returns why the text cannot be stored, or "".
func (s *scan) run(text []byte) string {
	s.text, s.canon, s.members = text, s.canon[:0], s.members[:0]
	s.fields, s.values = [fieldCount][]byte{}, 0
	_, reason := s.value(0, 1)
	return reason
}

// value copies the value at i to canon and returns the offset behind it.
func (s *scan) value(i, depth int) (end int, reason string) {
	if s.values++; s.values > maxValues {
		return 0, reasonValues
	}
	switch s.text[i] {
	case '{', '[':
		if depth > maxDepth {
			return 0, reasonDepth
		}
		if s.text[i] == '{' {
			return s.object(i, depth)
		}
		return s.array(i, depth)
	case '"':
		end = stringEnd(s.text, i)
	case 't', 'n':
		end = i + len("true")
	case 'f':
		end = i + len("false")
	default:
		if end = numberEnd(s.text, i); !storableNumber(s.text[i:end]) {
			return 0, reasonNumber
		}
	}
	s.canon = append(s.canon, s.text[i:end]...)
	return end, ""
}

func (s *scan) array(i, depth int) (end int, reason string) {
	for s.text[i] != ']' {
		s.canon = append(s.canon, s.text[i]) // '[' or ','
		if i++; s.text[i] == ']' {
			break
		}
		if i, reason = s.value(i, depth+1); reason != "" {
			return 0, reason
		}
	}
	s.canon = append(s.canon, ']')
	return i + 1, ""
}

func (s *scan) object(i, depth int) (end int, reason string) {
	base, sorted := len(s.members), true
	s.canon = append(s.canon, '{')
	body := len(s.canon)
	for s.text[i] != '}' {
		if i++; s.text[i] == '}' { // behind '{' or ','
			break
		}
		m := member{start: len(s.canon)}
		colon := stringEnd(s.text, i)
		name := s.text[i+1 : colon-1]
		s.canon = append(s.canon, s.text[i:colon+1]...)
		m.nameEnd = len(s.canon) - 2 // the quote and the colon are not part of the name
		from := colon + 1
		if i, reason = s.value(from, depth+1); reason != "" {
			return 0, reason
		}
		if depth == 1 {
			s.note(name, s.text[from:i])
		}
		s.canon = append(s.canon, ',')
		m.end = len(s.canon)
		if sorted && len(s.members) > base {
			sorted = s.compare(s.members[len(s.members)-1], m) <= 0
		}
		s.members = append(s.members, m)
	}
	if !sorted {
		s.sort(body, s.members[base:])
	}
	s.members = s.members[:base]
	s.canon = append(s.canon, '}')
	return i + 1, ""
}

func (s *scan) compare(a, b member) int {
	return bytes.Compare(s.canon[a.start+1:a.nameEnd], s.canon[b.start+1:b.nameEnd])
}

// sort rewrites an object's body. It is stable: of a name that stands twice jsonb
// keeps the last, so their order is part of the content.
func (s *scan) sort(body int, members []member) {
	slices.SortStableFunc(members, s.compare)
	s.spare = s.spare[:0]
	for _, m := range members {
		s.spare = append(s.spare, s.canon[m.start:m.end]...)
	}
	copy(s.canon[body:], s.spare)
}

// note keeps a top-level field; the last of one name wins, as in jsonb.
func (s *scan) note(name, value []byte) {
	switch string(name) {
	case "id":
		s.fields[fieldID] = value
	case "modify_time":
		s.fields[fieldModified] = value
	case "modifyTime":
		s.fields[fieldModifiedCamel] = value
	case "deleted_at":
		s.fields[fieldDeleted] = value
	case "deletedAt":
		s.fields[fieldDeletedCamel] = value
	case "version":
		s.fields[fieldVersion] = value
	}
}

// stringEnd returns the offset behind the string that begins at i.
func stringEnd(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func numberEnd(text []byte, i int) int {
	for ; i < len(text); i++ {
		switch text[i] {
		case ',', ']', '}':
			return i
		}
	}
	return i
}

// storableNumber bounds what jsonb would write out in full.
func storableNumber(number []byte) bool {
	mantissa, exponent := number, []byte(nil)
	if e := bytes.IndexAny(number, "eE"); e >= 0 {
		mantissa, exponent = number[:e], number[e+1:]
	}
	if len(mantissa) > maxNumberDigits {
		return false
	}
	size := 0
	for _, c := range bytes.TrimLeft(exponent, "+-") {
		if size = size*10 + int(c-'0'); size > maxNumberExponent {
			return false
		}
	}
	return true
}
