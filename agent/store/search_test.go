package store_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

func (f fixture) found(t testing.TB, q agent.Query) (string, error) {
	t.Helper()
	q.Resource = "contracts"
	if q.Limit == 0 {
		q.Limit = 10
	}
	all, err := f.Search(t.Context(), q)
	ids := make([]string, len(all))
	for i, r := range all {
		ids[i] = r.ID
	}
	return strings.Join(ids, " "), err
}

func filter(column string, op agent.Op, value string) agent.Filter {
	return agent.Filter{Column: column, Op: op, Value: json.RawMessage(value)}
}

func TestSearchFindsWhatMeetsAllFilters(t *testing.T) {
	f := setUp(t)
	f.put(t, 1, "a", big, false)
	f.put(t, 2, "b", `{"status":"ended","amount":1.50,"n":-3,"signed":false,"begun":"2026-10-01T00:00:00Z","day":"2026-10-01","tags":["y"]}`, false)
	f.put(t, 3, "c", `{"status":"it's"}`, false)
	f.put(t, 4, "gone", big, true)
	for _, tt := range []struct {
		want    string
		filters []agent.Filter
	}{
		{"a b c", nil},
		{"a", []agent.Filter{filter("status", agent.Equal, `"active"`)}},
		{"c", []agent.Filter{filter("status", agent.Equal, `"it's"`)}},
		{"a b", []agent.Filter{filter("status", agent.In, `["ended","active"]`)}},
		{"a", []agent.Filter{filter("amount", agent.Equal, `12345678901234567890.1`)}},
		{"", []agent.Filter{filter("amount", agent.Equal, `12345678901234567890.2`)}},
		{"b", []agent.Filter{filter("amount", agent.Less, `2e0`)}},
		{"a", []agent.Filter{filter("n", agent.More, `9007199254740992`)}},
		{"a b", []agent.Filter{filter("n", agent.AtMost, `9007199254740993.0`)}},
		{"b", []agent.Filter{filter("n", agent.In, `[-3, 1e2]`)}},
		{"a", []agent.Filter{filter("signed", agent.Equal, `true`)}},
		{"b", []agent.Filter{filter("begun", agent.AtLeast, `"2026-10-01T08:00:00+08:00"`)}},
		{"a", []agent.Filter{filter("day", agent.Less, `"2026-09-02"`)}},
		{"a b", []agent.Filter{filter("day", agent.In, `["2026-09-01","2026-10-01"]`)}},
		{"a b", []agent.Filter{filter("tags", agent.Equal, `"y"`)}},
		{"a", []agent.Filter{filter("tags", agent.Equal, `"x"`)}},
		{"c", []agent.Filter{filter("n", agent.IsNull, `true`)}},
		{"a", []agent.Filter{filter("more", agent.IsNull, `false`)}},
		{"b", []agent.Filter{filter("tags", agent.Equal, `"y"`), filter("status", agent.Equal, `"ended"`)}},
		{"", []agent.Filter{filter("status", agent.Equal, `"' or true --"`)}},
	} {
		if got, err := f.found(t, agent.Query{Filters: tt.filters}); err != nil || got != tt.want {
			t.Errorf("%+v: %q, %v; want %q", tt.filters, got, err, tt.want)
		}
	}
}

func TestSearchNamesTheFilterThatDoesNotFit(t *testing.T) {
	f := setUp(t)
	for _, tt := range []struct {
		filter agent.Filter
		field  string
	}{
		{filter("record", agent.Equal, `"x"`), "column"},
		{filter(`status" = 'x' or true; --`, agent.Equal, `"x"`), "column"},
		{filter("status", agent.Equal, `1`), "value"},
		{filter("status", agent.Equal, `"a\u0000b"`), "value"},
		{filter("status", "like", `"x"`), "op"},
		{filter("status", agent.In, `[]`), "value"},
		{filter("status", agent.In, `"x"`), "value"},
		{filter("amount", agent.Equal, `"1"`), "value"},
		{filter("amount", agent.Equal, `1e400`), "value"},
		{filter("amount", agent.Equal, `1e-999999999`), "value"},
		{filter("n", agent.Equal, `1.5`), "value"},
		{filter("n", agent.Equal, `9223372036854775808`), "value"},
		{filter("n", agent.Equal, `null`), "value"},
		{filter("signed", agent.Less, `true`), "op"},
		{filter("signed", agent.Equal, `"true"`), "value"},
		{filter("begun", agent.Less, `"now"`), "value"},
		{filter("begun", agent.Less, `"2026-09-09T08:00:00"`), "value"},
		{filter("begun", agent.Less, `"2026-02-30T08:00:00Z"`), "value"},
		{filter("day", agent.Equal, `"infinity"`), "value"},
		{filter("day", agent.Equal, `"0000-01-01"`), "value"},
		{filter("tags", agent.Less, `"x"`), "op"},
		{filter("tags", agent.In, `["x"]`), "op"},
		{filter("more", agent.Equal, `"x"`), "value"},
		{filter("n", agent.IsNull, `1`), "value"},
		{filter("n", agent.IsNull, ``), "value"},
	} {
		_, err := f.found(t, agent.Query{Filters: []agent.Filter{filter("n", agent.IsNull, `true`), tt.filter}})
		code := "invalid_input"
		if tt.field == "column" {
			code = "unknown_column"
		}
		failure := wantFailure(t, err, agent.Invalid, code)
		if want := "filters[1]." + tt.field; failure.Field != want {
			t.Errorf("%+v: field %s", tt.filter, failure.Field)
		}
		if v := strings.Trim(string(tt.filter.Value), `"[]`); len(v) > 4 && strings.Contains(failure.Message, v) {
			t.Errorf("the message quotes the value: %s", failure.Message)
		}
	}
	_, err := f.found(t, agent.Query{AfterID: "\x00"})
	wantFailure(t, err, agent.Invalid, "invalid_input")
}

func TestSearchGoesOnAfterAnID(t *testing.T) {
	f := setUp(t)
	ids := []string{"1", "10", "9", "B", "a", "é", "某"}
	for i, id := range ids {
		f.put(t, int64(i), id, `{"status":"s"}`, false)
	}
	seen := map[string]bool{}
	after := ""
	for range ids {
		got, err := f.found(t, agent.Query{AfterID: after, Limit: 1, Filters: []agent.Filter{filter("status", agent.Equal, `"s"`)}})
		if err != nil {
			t.Fatal(err)
		}
		seen[got], after = true, got
	}
	if len(seen) != len(ids) {
		t.Errorf("%v", seen)
	}
	if got, err := f.found(t, agent.Query{AfterID: after}); got != "" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
