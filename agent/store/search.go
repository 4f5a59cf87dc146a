package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// maxTerms bounds what one search compares with, whatever its door lets through.
const maxTerms = 1000

// Search reads rows of the view that meet all filters, in the order of ids. That is
// the order of the column's own collation, which its index has: from page to page
// it is the same, and no table is sorted for one page.
func (s *Store) Search(ctx context.Context, q agent.Query) ([]agent.Record, error) {
	reading, f := s.reading(q.Resource)
	if f != nil {
		return nil, f
	}
	sql, args, f := reading.where(q)
	if f != nil {
		return nil, f
	}
	return s.records(ctx, "search "+q.Resource, sql, args...)
}

// where writes the search: each value a parameter, cast to its column's type, so
// that the column's index can be used.
func (r reading) where(q agent.Query) (sql string, args []any, f *agent.Failure) {
	sql = r.search
	param := func(v any) string {
		args = append(args, v)
		return "$" + strconv.Itoa(len(args))
	}
	if q.AfterID != "" {
		if !storable(q.AfterID) {
			return "", nil, invalid("after_id", "no id has a NUL in it")
		}
		sql += " and " + r.key + " > " + param(q.AfterID) + "::text"
	}
	for i, filter := range q.Filters {
		term, f := r.term(filter, param)
		if f != nil {
			f.Field = fmt.Sprintf("filters[%d].%s", i, f.Field)
			f.Message = f.Field + ": " + f.Message
			return "", nil, f
		}
		sql += " and " + term
	}
	return sql + "\norder by " + r.key + " limit " + param(q.Limit) + "::integer", args, nil
}

// operator is what SQL has for the comparison of one value.
func operator(op agent.Op) (string, bool) {
	sql, ok := map[agent.Op]string{agent.Equal: "=", agent.Less: "<", agent.AtMost: "<=", agent.More: ">", agent.AtLeast: ">="}[op]
	return sql, ok
}

// term writes one condition.
func (r reading) term(f agent.Filter, param func(any) string) (string, *agent.Failure) {
	kind, ok := r.types[f.Column]
	if !ok {
		return "", &agent.Failure{Class: agent.Invalid, Code: "unknown_column", Field: "column", Message: "there is no typed column of this name"}
	}
	column := "v." + quote(f.Column)
	sql, compares := operator(f.Op)
	switch {
	case f.Op == agent.IsNull:
		return nullTerm(column, f.Value)
	case f.Op == agent.In && kind != "text[]":
		values, failure := castAll(kind, f.Value)
		if failure != nil {
			return "", failure
		}
		return column + " = any (" + param(values) + "::text[]::" + sqlType(kind) + "[])", nil
	case kind == "text[]" && f.Op == agent.Equal: // one of its texts is this one
		value, failure := cast("text", f.Value)
		if failure != nil {
			return "", failure
		}
		return column + " @> array[" + param(value) + "::text]", nil
	case compares && (kind != "boolean" && kind != "text[]" || f.Op == agent.Equal):
		value, failure := cast(kind, f.Value)
		if failure != nil {
			return "", failure
		}
		return column + " " + sql + " " + param(value) + "::text::" + sqlType(kind), nil
	}
	return "", invalid("op", "a column of type "+kind+" is not compared in this way")
}

func nullTerm(column string, value json.RawMessage) (string, *agent.Failure) {
	var null bool
	if json.Unmarshal(value, &null) != nil {
		return "", invalid("value", "is_null takes true or false")
	}
	if null {
		return column + " is null", nil
	}
	return column + " is not null", nil
}

func castAll(kind string, list json.RawMessage) ([]string, *agent.Failure) {
	var values []json.RawMessage
	if json.Unmarshal(list, &values) != nil || len(values) == 0 || len(values) > maxTerms {
		return nil, invalid("value", fmt.Sprintf("in takes a list of 1 to %d values", maxTerms))
	}
	texts := make([]string, len(values))
	for i, v := range values {
		var f *agent.Failure
		if texts[i], f = cast(kind, v); f != nil {
			return nil, f
		}
	}
	return texts, nil
}

// sqlType is the type in SQL, which is also that of the index's expression.
func sqlType(kind string) string {
	if kind == "integer" {
		return "bigint"
	}
	return kind
}

// cast gives the text of a JSON value that PostgreSQL reads as the column's type.
// What it would not read is found here, where the filter has a name.
func cast(kind string, value json.RawMessage) (string, *agent.Failure) {
	value = bytes.TrimSpace(value)
	var s string
	isText := json.Unmarshal(value, &s) == nil && len(value) > 0 && value[0] == '"'
	switch kind {
	case "text":
		if isText && storable(s) {
			return s, nil
		}
		return "", invalid("value", "the column takes a text without NUL")
	case "boolean":
		if v := string(value); v == "true" || v == "false" {
			return v, nil
		}
		return "", invalid("value", "the column takes true or false")
	case "date":
		if _, err := time.Parse(time.DateOnly, s); isText && err == nil && s > "0001" {
			return s, nil
		}
		return "", invalid("value", "the column takes a day as 2026-09-01")
	case "timestamptz":
		if at, err := time.Parse(time.RFC3339Nano, s); isText && err == nil && at.Year() >= 1 {
			return s, nil
		}
		return "", invalid("value", "the column takes a time with its zone, as 2026-09-01T08:00:00+08:00")
	case "integer", "numeric":
		return castNumber(kind, value)
	}
	return "", invalid("value", "a column of type "+kind+" takes is_null alone")
}

// maxNumber bounds a number's text, in bytes.
const maxNumber = 400

func castNumber(kind string, value json.RawMessage) (string, *agent.Failure) {
	var n json.Number
	if len(value) > maxNumber || len(value) == 0 || value[0] == '"' || json.Unmarshal(value, &n) != nil || n == "" {
		return "", invalid("value", "the column takes a number")
	}
	// Bounded as what PostgreSQL's numeric holds is; SetString refuses larger exponents.
	rat, ok := new(big.Rat).SetString(n.String())
	if f, err := n.Float64(); !ok || err != nil || f == 0 && rat.Sign() != 0 {
		return "", invalid("value", "the number is beyond what is compared here")
	}
	if kind == "numeric" {
		return n.String(), nil
	}
	if !rat.IsInt() || !rat.Num().IsInt64() {
		return "", invalid("value", "the column takes an integer of 64 bits")
	}
	return rat.Num().String(), nil
}

func invalid(field, message string) *agent.Failure {
	return &agent.Failure{Class: agent.Invalid, Code: "invalid_input", Field: field, Message: message}
}
