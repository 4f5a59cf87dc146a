package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
)

func TestColumnsAreReadInTheFilesOrder(t *testing.T) {
	c := load(t, config.Input{File: []byte(minimal + `resources:
  contracts:
    columns:
      key: {path: $.key, type: text}
      amount:
        path: $.fee.amount
        type: numeric
        index: true
        ref: fees.amount
    masked: [$.mobile, "$['id number']"]
`)})
	want := config.Resource{
		Schedule: c.Resources["contracts"].Schedule,
		Columns: []config.Column{
			{Name: "key", Path: "$.key", Type: "text"},
			{Name: "amount", Path: "$.fee.amount", Type: "numeric", Index: true, Ref: "fees.amount"},
		},
		Masked: []string{"$.mobile", "$['id number']"},
	}
	if diff := cmp.Diff(want, c.Resources["contracts"]); diff != "" {
		t.Error(diff)
	}
	shown := map[string]string{}
	for _, s := range c.Effective() {
		shown[s.Name] = s.Value
	}
	if shown["resources.contracts.columns"] != "2 columns" || shown["resources.contracts.masked"] != "$.mobile,$['id number']" {
		t.Errorf("%v", shown)
	}
}

func TestEveryMistakeInColumnsIsReportedWithItsPlace(t *testing.T) {
	in := config.Input{
		File: []byte(minimal + `resources:
  contracts:
    columns:
      a: {path: $.a}
      b: {path: $.b, type: text, indx: true}
      c: {path: 7, type: text}
      d: {path: $.d, type: money}
      e: text
    masked: [7, nonsense]
`),
		CheckColumn: func(c config.Column) error {
			if c.Type == "money" {
				return errors.New("no such type")
			}
			return nil
		},
		CheckPath: func(string) error { return errors.New("a path begins with $") },
	}
	var got []string
	for _, p := range problems(t, in) {
		got = append(got, p.Field+": "+p.Message)
	}
	want := []string{
		"resources.contracts.columns.a: type is missing",
		"resources.contracts.columns.b.indx: is not a known key",
		"resources.contracts.columns.c.path: want text, found a number",
		"resources.contracts.columns.d: is no column: no such type",
		"resources.contracts.columns.e: want keys with values, found text",
		"resources.contracts.masked[0]: want text, found a number",
		"resources.contracts.masked[1]: is no path: a path begins with $",
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
		t.Error(diff)
	}
}
