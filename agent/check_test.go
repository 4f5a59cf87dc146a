package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// secret stands where a person's data might; no failure may say it again.
const secret = "13800001234"

func TestAnInputThatDoesNotFitIsNamedByItsField(t *testing.T) {
	h := newHouse(t)
	s := h.service(t, nil)
	for _, tt := range []struct{ capability, input, field, says string }{
		{"records.get", `{"resource":"users"}`, "id", "missing property 'id'"},
		{"records.get", `{"resource":"` + secret + `","id":"1"}`, "resource", "one of 'contracts', 'users'"},
		{"records.get", `{"resource":"users","id":` + secret + `}`, "id", "got number, want string"},
		{"records.get", `{"resource":"users","id":"1","x":"` + secret + `"}`, "x", `no property "x"`},
		{"records.get", `["` + secret + `"]`, "", "want object"},
		{"records.get", `{"resource":"users","id":""}`, "id", "minLength"},
		{"records.get", `{"resource":"users","id":"` + strings.Repeat(secret, 1000) + `"}`, "id", "maxLength"},
		{"records.get", secret + ` x`, "", "not JSON"},
		{"records.get", `{"resource":"users","id":"1"} ` + secret, "", "not JSON"},
		{"changes.list", `{"resource":"users","after":-` + secret + `}`, "after", "at least 0"},
		{"changes.list", `{"resource":"users","after":0,"limit":` + secret + `}`, "limit", "at most 200"},
		{"changes.list", `{"resource":"users","after":1.5}`, "after", "want integer"},
		{"sync.run", `{"resources":["users","users"]}`, "resources", "equal"},
		{"sync.run", `{"resources":[` + strings.Repeat("1e999999,", 20000) + `1]}`, "", "exponent"},
		{"changes.list", `{"resource":"users","after":1E-401}`, "", "exponent"},
		{"changes.list", `{"resource":"users","after":` + strings.Repeat("1", 401) + `}`, "", "digits"},
		{"sync.run", `{"resources":[]}`, "resources", "minItems"},
		{"sync.run", `{"resources":["users","` + secret + `"]}`, "resources[1]", "one of"},
		{"records.search", `{"resource":"contracts","filters":[{"column":"status","op":"like","value":"` + secret + `"}]}`, "filters[0].op", "one of"},
		{"records.search", `{"resource":"contracts","filters":[{"column":"status","op":"eq"}]}`, "filters[0].value", "'value'"},
		{"records.search", `{"resource":"contracts","filters":[{"column":"status","op":"eq","value":{"a":"` + secret + `"}}]}`, "filters[0].value", "got object"},
		{"records.search", `{"resource":"users","filters":[{"column":"status","op":"eq","value":"` + secret + `"}]}`, "filters[0].column", "no typed column"},
	} {
		_, err := s.Do(t.Context(), call(tt.capability, tt.input, ""))
		f, ok := err.(*agent.Failure) //nolint:errorlint // Do promises the type itself
		if !ok || f.Class != agent.Invalid || f.Field != tt.field || !strings.Contains(f.Message, tt.says) {
			t.Errorf("%s %.80s: field %q, %v", tt.capability, tt.input, f.Field, err)
			continue
		}
		if strings.Contains(fmt.Sprint(f.Message, f.Suggestions, f.Field), secret) || len(f.Message) > 300 {
			t.Errorf("%s %.80s: the failure quotes the input: %v", tt.capability, tt.input, err)
		}
	}
	_, err := s.Do(t.Context(), call("records.get", `{"resource":"users","id":"`+strings.Repeat(" ", 256<<10)+`"}`, ""))
	failure(t, err, agent.Invalid, "input_too_large")
}

// What a schema cannot say: each type takes its own values, each comparison its types.
func TestAFilterFitsItsColumn(t *testing.T) {
	h := newHouse(t)
	s := h.service(t, nil)
	for _, tt := range []struct {
		column, op, value string
		fits              bool
	}{
		{"status", "eq", `"a"`, true},
		{"status", "eq", `1`, false},
		{"status", "in", `["a","b"]`, true},
		{"status", "in", `["a",1]`, false},
		{"status", "in", `"a"`, false},
		{"status", "eq", `["a"]`, false},
		{"status", "is_null", `true`, true},
		{"status", "is_null", `"true"`, false},
		{"amount", "gt", `1.5`, true},
		{"amount", "gt", `"1.5"`, false},
		{"amount", "gt", `1e400`, false},
		{"n", "lte", `5`, true},
		{"n", "lte", `5.5`, false},
		{"n", "lte", `9223372036854775808`, false},
		{"signed", "eq", `true`, true},
		{"signed", "lt", `true`, false},
		{"signed", "in", `[true]`, true},
		{"begun", "gte", `"2026-09-01T00:00:00Z"`, true},
		{"begun", "gte", `"yesterday"`, false},
		{"begun", "gte", `1`, false},
		{"tags", "eq", `"x"`, true},
		{"tags", "lt", `"x"`, false},
		{"tags", "in", `["x"]`, false},
	} {
		input := fmt.Sprintf(`{"resource":"contracts","filters":[{"column":%q,"op":%q,"value":%s}]}`, tt.column, tt.op, tt.value)
		_, err := s.Do(t.Context(), call("records.search", input, ""))
		if (err == nil) != tt.fits {
			t.Errorf("%s: %v", input, err)
		}
		if !tt.fits && !strings.HasPrefix(failure(t, err, agent.Invalid, "invalid_input").Field, "filters[0].") {
			t.Errorf("%s: %+v", input, err)
		}
	}
}

// Whatever comes: no panic, a failure of ours, and no long text.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"resource":"users","id":"1"}`, `{"resource":"contracts","filters":[{"column":"n","op":"in","value":[1]}]}`, `{"resource":"users","after":1e999999}`,
		"\xff", `{"resource":"users","id":"\u0000"}`, `[[[[[[[[`, `{"a":1,"a":2}`, `{"resources":["users"]}`,
	} {
		f.Add(seed)
	}
	s := everyCapability(f)
	f.Fuzz(func(t *testing.T, input string) {
		for _, c := range s.Capabilities() {
			err := c.Check([]byte(input))
			if err == nil {
				continue
			}
			if len(err.Message) > 600 || err.Class != agent.Invalid {
				t.Errorf("%s: %v", c.ID, err)
			}
		}
	})
}
