package remotetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// row is one version of a record. It never changes: a change makes a new one,
// so a round that holds the old one is not disturbed.
type row struct {
	id      string
	raw     []byte // exactly what is sent
	fields  []byte // members between id and modify_time; part of raw, or of the last live version
	mod     int64  // Unix milliseconds
	deleted bool
	exact   bool // raw came from the test and is not ours to rewrite
}

// compareRows is the order of contract §6: modify_time, then id. Ids of digits
// compare as numbers.
func compareRows(a, b *row) int {
	return cmp.Or(cmp.Compare(a.mod, b.mod), cmp.Compare(len(a.id), len(b.id)), cmp.Compare(a.id, b.id))
}

// visibleToPerson stands for the row filter of a personal token (contract §1):
// such a token sees a part of the tenant, and nothing in a page says so.
func (w *row) visibleToPerson() bool {
	return w.id == "" || w.id[len(w.id)-1]%2 == 0
}

// newRow renders a record: id, the fields, then what the remote adds.
func newRow(v Variants, id string, fields []byte, mod int64, deleted bool) *row {
	w := &row{id: id, mod: mod, deleted: deleted}
	b := make([]byte, 0, len(fields)+160)
	b = append(b, `{"id":`...)
	b = appendID(b, id, v.StringIDs)
	start := len(b)
	if len(fields) > 0 && (!deleted || !v.BareTombstones) {
		b = append(append(b, ','), fields...)
		w.fields = b[start+1 : len(b) : len(b)]
	} else {
		w.fields = fields
	}
	b = append(b, `,"modify_time":`...)
	b = appendString(b, v.timeText(mod))
	b = append(b, `,"version":`...)
	if v.StringVersions {
		b = append(strconv.AppendInt(append(b, '"'), mod, 10), '"')
	} else {
		b = strconv.AppendInt(b, mod, 10)
	}
	switch {
	case deleted:
		b = appendString(append(b, `,"deleted_at":`...), v.timeText(mod))
	case v.LiveDeletedAt == DeletedAtEmpty:
		b = append(b, `,"deleted_at":""`...)
	case v.LiveDeletedAt != DeletedAtAbsent:
		b = append(b, `,"deleted_at":null`...)
	}
	w.raw = append(b, '}')
	return w
}

// appendID writes digits as a JSON number unless told otherwise, anything else
// as a string.
func appendID(b []byte, id string, asString bool) []byte {
	number := id != "" && len(id) <= 20 && (id[0] != '0' || id == "0")
	for i := 0; number && i < len(id); i++ {
		number = id[i] >= '0' && id[i] <= '9'
	}
	if number && !asString {
		return append(b, id...)
	}
	return appendString(b, id)
}

// member is one member of a JSON object with the bytes of its value untouched.
type member struct {
	name  string
	value json.RawMessage
}

// members reads an object without decoding its values: every digit stays.
func members(object []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	t, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("not an object: %w", err)
	}
	if t != json.Delim('{') {
		return nil, errors.New("not an object")
	}
	var all []member
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		var m member
		m.name, _ = t.(string) // a member's name always is one
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	_, err = d.Token()
	return all, err
}

// own reports the members that the remote itself gives a record.
func own(name string) bool {
	switch name {
	case "id", "modify_time", "version", "deleted_at":
		return true
	}
	return false
}

// merge lays the members of change over those of base and leaves out our own.
func merge(base, change []member) []byte {
	var b []byte
	put := func(m member) {
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = append(append(appendString(b, m.name), ':'), m.value...)
	}
	newer := make(map[string]member, len(change))
	for _, m := range change {
		newer[m.name] = m
	}
	for _, m := range base {
		if c, ok := newer[m.name]; ok {
			m = c
			delete(newer, m.name)
		}
		if !own(m.name) {
			put(m)
		}
	}
	for _, m := range change {
		if _, ok := newer[m.name]; ok && !own(m.name) {
			delete(newer, m.name)
			put(m)
		}
	}
	return b
}

// clock gives the modify_time of changes and the cut-off of rounds. It only
// moves forward, and it always moves after a cut-off.
type clock struct {
	last   int64 // Unix milliseconds
	tick   int64
	wall   bool
	frozen bool
}

func newClock(wall bool) clock {
	if wall {
		// Old enough that made-up rows do not reach into the future.
		return clock{last: time.Now().AddDate(0, 0, -30).UnixMilli(), tick: 1, wall: true}
	}
	return clock{last: time.Date(2026, 9, 15, 8, 0, 0, 0, shanghai()).UnixMilli(), tick: 1000}
}

func (c *clock) forward() int64 {
	c.last += c.tick
	if c.wall {
		c.last = max(c.last, time.Now().UnixMilli())
	}
	return c.last
}

// stamp is the modify_time of a change that happens now.
func (c *clock) stamp() int64 {
	if c.frozen {
		return c.last
	}
	return c.forward()
}

// past is the modify_time of made-up history: a second apart, not yet today.
func (c *clock) past() int64 {
	if !c.frozen {
		c.last += 1000
	}
	return c.last
}

// cutoff ends the present: all changes so far are within, all later ones not.
func (c *clock) cutoff() int64 {
	if !c.frozen {
		return c.forward()
	}
	end := c.last
	c.forward()
	return end
}

func shanghai() *time.Location { return time.FixedZone("CST", 8*60*60) }
