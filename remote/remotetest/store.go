package remotetest

import (
	"encoding/json"
	"fmt"
	"slices"
)

// dataset is the present data of one resource.
type dataset struct {
	rows    map[string]*row
	ordered []*row // cache; nil after a change; shared with rounds, never written into
	epoch   int    // of its sync tokens
	count   int    // rounds so far
}

func (r *dataset) nextRound() int {
	r.count++
	return r.count
}

// sorted gives all rows in the order of contract §6.
func (r *dataset) sorted() []*row {
	if r.ordered == nil {
		r.ordered = make([]*row, 0, len(r.rows))
		for _, w := range r.rows {
			r.ordered = append(r.ordered, w)
		}
		slices.SortFunc(r.ordered, compareRows)
	}
	return r.ordered
}

func (r *dataset) set(w *row) {
	r.rows[w.id] = w
	r.ordered = nil
}

// must is for mistakes in a test; see the package comment.
func must(err error, doing string) {
	if err != nil {
		panic(fmt.Sprintf("remotetest: %s: %v", doing, err))
	}
}

// change runs f on a resource with the data locked.
func (s *Server) change(name string, f func(*dataset)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.resources[name]
	if r == nil {
		panic("remotetest: unknown resource " + name)
	}
	f(r)
}

// Put adds a record or replaces it. Fields is a JSON object, its values are
// sent byte for byte; id, modify_time, version and deleted_at are the server's
// and left out of it.
func (s *Server) Put(resource, id, fields string) {
	all, err := members([]byte(fields))
	must(err, "put "+id)
	s.change(resource, func(r *dataset) { r.set(newRow(s.variants, id, merge(nil, all), s.clock.stamp(), false)) })
}

// PutRaw adds a record that is exactly these bytes, whatever they are. Id is
// how the data API speaks of it, and its place among rows of equal
// modify_time. It counts as deleted if it is an object with a deleted_at.
func (s *Server) PutRaw(resource, id, raw string) {
	w := &row{id: id, raw: []byte(raw), exact: true}
	if all, err := members(w.raw); err == nil {
		for _, m := range all {
			if m.name == "deleted_at" {
				w.deleted = string(m.value) != "null" && string(m.value) != `""`
			}
		}
	}
	s.change(resource, func(r *dataset) {
		w.mod = s.clock.stamp()
		r.set(w)
	})
}

// Edit lays the members of fields over a record that exists, deleted or not:
// an edit revives it.
func (s *Server) Edit(resource, id, fields string) {
	over, err := members([]byte(fields))
	must(err, "edit "+id)
	s.change(resource, func(r *dataset) {
		base, err := members(r.mustGet(id).object())
		must(err, "edit "+id)
		r.set(newRow(s.variants, id, merge(base, over), s.clock.stamp(), false))
	})
}

// Delete leaves a tombstone (contract §6).
func (s *Server) Delete(resource, id string) {
	s.change(resource, func(r *dataset) {
		r.set(newRow(s.variants, id, r.mustGet(id).kept(), s.clock.stamp(), true))
	})
}

// Purge makes a record vanish: no later page speaks of it, not even with a
// tombstone. Only a full pass can tell.
func (s *Server) Purge(resource, id string) {
	s.change(resource, func(r *dataset) {
		r.mustGet(id)
		delete(r.rows, id)
		r.ordered = nil
	})
}

// Revive brings a deleted record back as it was.
func (s *Server) Revive(resource, id string) {
	s.change(resource, func(r *dataset) {
		r.set(newRow(s.variants, id, r.mustGet(id).kept(), s.clock.stamp(), false))
	})
}

// FreezeClock makes all changes share one modify_time until the clock is let
// go, or the next round begins: the changes after that share another one.
func (s *Server) FreezeClock(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on && !s.clock.frozen {
		s.clock.forward()
	}
	s.clock.frozen = on
}

func (r *dataset) mustGet(id string) *row {
	w := r.rows[id]
	if w == nil {
		panic("remotetest: no record " + id)
	}
	return w
}

// object gives the record's fields as an object.
func (w *row) object() []byte {
	if w.exact {
		return w.raw
	}
	return slices.Concat([]byte("{"), w.fields, []byte("}"))
}

// kept gives the fields that a tombstone keeps; raw text that is no object has
// none.
func (w *row) kept() []byte {
	if !w.exact {
		return w.fields
	}
	all, err := members(w.raw)
	if err != nil {
		return nil
	}
	return merge(nil, all)
}

// Live gives the records that are not deleted: id to the bytes as sent. The
// bytes are shared; do not write into them.
func (s *Server) Live(resource string) map[string]json.RawMessage {
	return s.records(resource, func(w *row) bool { return !w.deleted })
}

// All gives the records and the tombstones.
func (s *Server) All(resource string) map[string]json.RawMessage {
	return s.records(resource, func(*row) bool { return true })
}

func (s *Server) records(name string, want func(*row) bool) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	s.change(name, func(r *dataset) {
		all = make(map[string]json.RawMessage, len(r.rows))
		for id, w := range r.rows {
			if want(w) {
				all[id] = w.raw
			}
		}
	})
	return all
}

// IDs lists the live records in the order of (modify_time, id).
func (s *Server) IDs(resource string) []string {
	var ids []string
	s.change(resource, func(r *dataset) {
		for _, w := range r.sorted() {
			if !w.deleted {
				ids = append(ids, w.id)
			}
		}
	})
	return ids
}
