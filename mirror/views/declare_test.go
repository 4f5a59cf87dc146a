package views

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func names(columns []Column) string {
	var all []string
	for _, c := range columns {
		all = append(all, fmt.Sprint(c.Name, " ", c.Path, " ", c.Type))
	}
	return strings.Join(all, "; ")
}

func TestColumnsAreReadFromASchema(t *testing.T) {
	const record = `{"properties":{"id":{"type":"string"},"status":{"enum":["a","b"]},"fee":{"type":"object","properties":{"amount":{"type":["number","null"]}}},
		"at":{"type":"string","format":"date-time"},"ends":{"oneOf":[{"type":"null"},{"$ref":"#/$defs/day"}]},"n":{"type":"integer"},"vip":{"type":"boolean"},
		"tags":{"type":"array","items":{"type":"string"}},"items":{"type":"array","items":{"type":"object"}},"any":true,"free":{"type":"object"},"both":{"type":["string","number"]}}}`
	const defs = `"$defs":{"day":{"type":"string","format":"date"},"loop":{"$ref":"#/$defs/loop"},"record":` + record + `}`
	const columns = "id $.id text; status $.status text; fee_amount $.fee.amount numeric; at $.at timestamptz; ends $.ends date; n $.n integer; vip $.vip boolean; " +
		"tags $.tags text[]; items $.items jsonb; free $.free jsonb; both $.both text"
	for name, tt := range map[string]struct{ schema, want string }{
		"in the envelope":       {`{"properties":{"data":{"properties":{"records":{"type":"array","items":` + record + `}}}},` + defs + `}`, columns},
		"by reference":          {`{"properties":{"records":{"items":{"$ref":"#/$defs/record"}}},` + defs + `}`, columns},
		"beside another list":   {`{"properties":{"errors":{"items":{"properties":{"code":{"type":"string"}}}},"list":{"items":{"$ref":"#/$defs/record"}}},` + defs + `}`, columns},
		"named by the list key": {`{"properties":{"rows":{"items":{"properties":{"code":{"type":"string"}}}},"list":{"items":{"$ref":"#/$defs/record"}}},` + defs + `}`, "code $.code text"},
		"a reference in a ring": {`{"properties":{"records":{"items":{"$ref":"#/$defs/loop"}}},` + defs + `}`, ""},
		"a foreign reference":   {`{"properties":{"records":{"items":{"$ref":"https://example.com/x.json"}}}}`, ""},
		"no list":               {`{"properties":{"data":{"type":"object"}}}`, ""},
		"no schema":             {``, ""},
		"no JSON Schema":        {`{"properties":[1],"items":7}`, ""},
		"much too deep":         {strings.Repeat(`{"properties":{"a":`, 500) + `{}` + strings.Repeat(`}}`, 500), ""},
	} {
		listKey := map[bool]string{true: "rows"}[name == "named by the list key"]
		if diff := cmp.Diff(tt.want, names(Declared(json.RawMessage(tt.schema), listKey))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestWhatIsDeclaredAndWhatIsSeenComeTogether(t *testing.T) {
	records := []json.RawMessage{json.RawMessage(`{"status":"a","amount":7,"none":null,"ends":"soon"}`)}
	declared := []Column{{Name: "amount", Path: "$.amount", Type: Numeric}, {Name: "none", Path: "$.none", Type: Date}, {Name: "ends", Path: "$.ends", Type: Date}, {Name: "id", Path: "$.id", Type: Text}, {Name: "user_id", Path: "$.user_id", Type: Integer}, {Name: "later", Path: "$.later", Type: Boolean}, {Name: "odd", Path: "$['o'dd']", Type: Text}}
	var got []Column
	for _, s := range Suggest(records, declared) {
		got = append(got, s.Column)
	}
	const want = "status $.status text; amount $.amount numeric; ends $.ends text; none $.none date; user_id $.user_id text; later $.later boolean"
	if diff := cmp.Diff(want, names(got)); diff != "" {
		t.Error(diff)
	}
}
