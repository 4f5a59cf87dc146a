package views

import (
	"strings"
	"testing"
)

func TestPaths(t *testing.T) {
	for text, want := range map[string]string{
		"$.status":                       "array['status']::text[]",
		"$.fee.amount":                   "array['fee', 'amount']::text[]",
		"$.tags[0].name":                 "array['tags', '0', 'name']::text[]",
		"$.tags[-1]":                     "array['tags', '-1']::text[]",
		"$['a key']['b.c']":              "array['a key', 'b.c']::text[]",
		"$.名称":                           "array['名称']::text[]",
		`$.a\b`:                          `array[ E'a\\b']::text[]`,
		"$[0]":                           "array['0']::text[]",
		"$.x" + strings.Repeat(".x", 15): "array['x'" + strings.Repeat(", 'x'", 15) + "]::text[]",
	} {
		p, err := ParsePath(text)
		if err != nil || p.array() != want {
			t.Errorf("%s: %s, %v", text, p.array(), err)
		}
	}
	for text, says := range map[string]string{
		"":                               "begins with $",
		"status":                         "begins with $",
		"$":                              "names a member",
		"$status":                        "at character 2",
		"$.":                             "at character 2",
		"$.a..b":                         "at character 4",
		"$.a[x]":                         "number of an element",
		"$.a[":                           "number of an element",
		"$.a[]":                          "number of an element",
		"$.a[99999]":                     "number of an element",
		"$['a":                           "not closed",
		"$['a'b']":                       "quote",
		"$.{table}":                      "brace",
		"$.a\x00":                        "empty",
		"$.a'b":                          "quote",
		"$.*":                            "one value",
		"$.x" + strings.Repeat(".x", 16): "at most",
	} {
		if _, err := ParsePath(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestColumnsAreChecked(t *testing.T) {
	good := Column{Name: "amount", Path: "$.fee.amount", Type: Numeric, Index: true, Ref: "fees.amount"}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Column){
		"a capital":         func(c *Column) { c.Name = "Amount" },
		"a digit first":     func(c *Column) { c.Name = "1st" },
		"a name of ours":    func(c *Column) { c.Name = "deleted_at" },
		"a hidden name":     func(c *Column) { c.Name = "content_hash" },
		"a quote":           func(c *Column) { c.Name = `a"b` },
		"an unknown type":   func(c *Column) { c.Type = "money" },
		"no type":           func(c *Column) { c.Type = "" },
		"a wrong path":      func(c *Column) { c.Path = "amount" },
		"a wrong ref":       func(c *Column) { c.Ref = "fees" },
		"an index on jsonb": func(c *Column) { c.Type = JSON },
	} {
		c := good
		change(&c)
		if c.Check() == nil {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if (Definition{Columns: []Column{good, good}}).check() == nil {
		t.Error("the same name twice")
	}
	for _, masked := range []string{"mobile", "$.id", "$['id']", "$.version"} {
		if (Definition{Masked: []string{masked}}).check() == nil {
			t.Errorf("%s cannot be hidden", masked)
		}
	}
}

// FuzzPath holds that a path that parses stays inside its literal.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"$.a", "$['a']", "$[0]", `$.\'`, "$.a\\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePath(text)
		if err != nil {
			return
		}
		a := p.array()
		if n := strings.Count(a, "'"); n != 2*len(p.steps) {
			t.Fatalf("%q has %d quotes", a, n)
		}
	})
}
