package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

const (
	// maxRows bounds a list in an answer; a platform takes 256 KiB and more.
	maxRows     = 200
	defaultRows = 50
	maxAnswer   = 512 << 10 // bytes of records in one answer
	maxFilters  = 8
	maxInt      = 1<<53 - 1 // the largest that every language has
	maxID       = 2704      // bytes, the longest that can be indexed
)

// records are the capabilities that return the tenant's records.
func (s *Service) records() []*Capability {
	row := recordShape()
	all := []*Capability{
		{
			ID: "records.get", Title: "One record", TitleZH: "查一条记录", Risk: Low, Idempotent: true, Timeout: readTime, Personal: []string{personalRecords},
			Description: "One live record by its id, as the mirror has it, with its typed columns.",
			Input:       object(shape{"resource": s.oneResource(), "id": text("The record's id.", maxID)}, "resource", "id").encode(),
			Output:      object(shape{"found": flag("Whether there is a live record of this id."), "record": orNull(row)}, "found", "record").encode(),
			run:         handle(s.get),
		},
		{
			ID: "records.search", Title: "Search records", TitleZH: "搜索记录", Risk: Low, Idempotent: true, Timeout: readTime, Personal: []string{personalRecords},
			Description: "Live records whose typed columns meet all filters, in the order of ids. Pass the answer's next as after_id for the next part.",
			Input: object(shape{
				"resource": s.oneResource(), "filters": s.filtersShape(), "after_id": text("Only ids after this one.", maxID), "limit": limitShape(),
			}, "resource").encode(),
			Output: object(shape{"records": list(row, maxRows), "next": orNull(free("For after_id; null when this was the last part."))}, "records", "next").encode(),
			run:    handle(s.search),
		},
		{
			ID: "changes.list", Title: "What changed", TitleZH: "变更列表", Risk: Low, Idempotent: true, Timeout: readTime, Personal: []string{personalRecords},
			Description: "What changed after a change_seq, in order, deletions too. Keep the answer's next and pass it as after; 0 begins with everything.",
			Input: object(shape{
				"resource": s.oneResource(), "after": number("A change_seq; 0 from the beginning.", 0, maxInt), "limit": limitShape(),
			}, "resource", "after").encode(),
			Output: object(shape{"changes": list(row, maxRows), "next": count("For after."), "more": flag("Whether there is more now.")}, "changes", "next", "more").encode(),
			run:    handle(s.changes),
		},
	}
	return all
}

type getInput struct {
	Resource string `json:"resource"`
	ID       string `json:"id"`
}

func (s *Service) get(ctx context.Context, in getInput) (string, any, error) {
	r, ok, err := s.options.Mirror.Record(ctx, in.Resource, in.ID)
	if err != nil {
		return "", nil, err
	}
	if !ok {
		return "no live record of " + in.Resource + " has this id", map[string]any{"found": false, "record": nil}, nil
	}
	r.shorten()
	return "one record of " + in.Resource, map[string]any{"found": true, "record": r}, nil
}

type searchInput struct {
	Resource string   `json:"resource"`
	Filters  []Filter `json:"filters"`
	AfterID  string   `json:"after_id"`
	Limit    whole    `json:"limit"`
}

func (s *Service) search(ctx context.Context, in searchInput) (string, any, error) {
	if f := s.vet(in); f != nil {
		return "", nil, f
	}
	limit := limitOr(in.Limit)
	rows, err := s.options.Mirror.Search(ctx, Query{Resource: in.Resource, Filters: in.Filters, AfterID: in.AfterID, Limit: limit + 1})
	if err != nil {
		return "", nil, err
	}
	rows, more := cutRecords(rows, limit)
	var next any
	if more {
		next = rows[len(rows)-1].ID
	}
	return fmt.Sprintf("%d records of %s%s", len(rows), in.Resource, andMore(more)), map[string]any{"records": rows, "next": next}, nil
}

type changesInput struct {
	Resource string `json:"resource"`
	After    whole  `json:"after"`
	Limit    whole  `json:"limit"`
}

func (s *Service) changes(ctx context.Context, in changesInput) (string, any, error) {
	limit := limitOr(in.Limit)
	rows, err := s.options.Mirror.Changes(ctx, in.Resource, int64(in.After), limit+1)
	if err != nil {
		return "", nil, err
	}
	rows, more := cutRecords(rows, limit)
	next := int64(in.After)
	if len(rows) > 0 {
		next = rows[len(rows)-1].ChangeSeq
	}
	return fmt.Sprintf("%d changes of %s%s", len(rows), in.Resource, andMore(more)), map[string]any{"changes": rows, "next": next, "more": more}, nil
}

// vet checks what a schema cannot say: whether the resource has the column, and
// whether the value is one of its type.
func (s *Service) vet(in searchInput) *Failure {
	types := map[string]string{}
	for _, r := range s.options.Resources {
		if r.Name == in.Resource {
			for _, c := range r.Columns {
				types[c.Name] = c.Type
			}
		}
	}
	for i, f := range in.Filters {
		field := "filters[" + strconv.Itoa(i) + "]"
		kind, ok := types[f.Column]
		if !ok {
			return &Failure{
				Class: Invalid, Code: "unknown_column", Field: field + ".column", Message: fmt.Sprintf("%s has no typed column of this name", in.Resource),
				Suggestions: []string{"the operator makes columns in resources." + in.Resource + ".columns"},
			}
		}
		if !fits(kind, f) {
			return &Failure{
				Class: Invalid, Code: "invalid_input", Field: field + ".value",
				Message: fmt.Sprintf("%s.value: the column is %s, and %s does not take this value", field, kind, f.Op),
			}
		}
	}
	return nil
}

// fits reports whether the filter's value suits the column's type.
func fits(kind string, f Filter) bool {
	var v any
	if len(f.Value) > 0 && json.Unmarshal(f.Value, &v) != nil {
		return false
	}
	switch f.Op {
	case IsNull:
		_, ok := v.(bool)
		return ok
	case In:
		l, ok := v.([]any)
		for _, x := range l {
			ok = ok && suits(kind, x)
		}
		return ok && len(l) > 0 && kind != "text[]"
	default:
		return suits(kind, v) && (kind != "boolean" && kind != "text[]" || f.Op == Equal)
	}
}

func suits(kind string, v any) bool {
	switch kind {
	case "numeric":
		_, ok := v.(float64)
		return ok
	case "integer":
		n, ok := v.(float64)
		return ok && n == math.Trunc(n)
	case "boolean":
		_, ok := v.(bool)
		return ok
	default:
		_, ok := v.(string)
		return ok
	}
}

func (s *Service) filtersShape() shape {
	value := shape{
		"description": "A text, number or boolean as the column's type is; with in, a list of them; with is_null, true or false.",
		"anyOf": []any{
			shape{"type": "string", "maxLength": 1000},
			shape{"type": "number"},
			shape{"type": "boolean"},
			shape{"type": "array", "minItems": 1, "maxItems": 100, "items": shape{"type": []any{"string", "number", "boolean"}, "maxLength": 1000}},
		},
	}
	column := text("A typed column of the resource.", 63)
	if names := s.columnNames(); len(names) > 0 {
		column = oneOf("A typed column of the resource.", names...)
	}
	l := list(object(shape{
		"column": column, "op": oneOf("How to compare.", Equal, Less, AtMost, More, AtLeast, In, IsNull), "value": value,
	}, "column", "op", "value"), maxFilters)
	l["description"] = "All must hold."
	return l
}

func recordShape() shape {
	return object(shape{
		"id": free("The record's id."), "change_seq": count("Of its last change."),
		"modify_time": orNull(moment("By the remote.")), "deleted_at": orNull(moment("When it was deleted; null while it lives.")),
		"synced_at": moment("When the mirror wrote it."),
		"columns":   orNull(anyObject("The typed columns by name.")),
		"record":    orNull(anyObject("As the remote gave it.")),
		"omitted":   flag("The record is larger than an answer may be; SQL reads it."),
	}, "id", "change_seq", "modify_time", "deleted_at", "synced_at", "columns", "record", "omitted")
}

func limitShape() shape {
	l := number("How many at most.", 1, maxRows)
	l["default"] = defaultRows
	return l
}

func limitOr(n whole) int {
	if n == 0 {
		return defaultRows
	}
	return int(n)
}

// whole is an integer of an input up to maxInt: 2.0 and 2e0 are two, as in JSON Schema.
type whole int64

// UnmarshalJSON takes what the schema took.
func (n *whole) UnmarshalJSON(text []byte) error {
	var f float64 // it has every integer up to maxInt
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	*n = whole(f)
	return nil
}

// shorten leaves a record out that no answer could hold: a reader gets over it, and
// is told.
func (r *Record) shorten() {
	if len(r.Record)+len(r.Columns) > maxAnswer {
		r.Record, r.Columns, r.Omitted = nil, nil, true
	}
}

// cut takes the one row that was asked for too many off again.
func cut[T any](rows []T, limit int) ([]T, bool) {
	if len(rows) > limit {
		return rows[:limit], true
	}
	return orNone(rows), false
}

// cutRecords also ends the list where the answer would become too long; one row
// is always in it, so that a reader gets on.
func cutRecords(rows []Record, limit int) ([]Record, bool) {
	rows, more := cut(rows, limit)
	size := 0
	for i := range rows {
		r := &rows[i]
		r.shorten()
		size += len(r.Record) + len(r.Columns)
		if size > maxAnswer && i > 0 {
			return rows[:i], true
		}
	}
	return rows, more
}

// orNone is an empty list for JSON instead of null.
func orNone[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

func andMore(more bool) string {
	if more {
		return ", and more"
	}
	return ""
}
