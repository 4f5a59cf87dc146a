package relay_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent/relay"
)

// manifest is a good one; the text in place of ACTION is one action's fields.
const manifest = `{
	"rsp": "1.0",
	"supplier": {"name": "理发店", "description": "到店预约", "locale": "zh-CN", "categories": ["美发"], "user_binding": "none"},
	"endpoint": {"url": "https://shop.example.com/relay", "auth": "hmac-sha256", "max_concurrency": 20},
	"actions": [ACTION]
}`

const reading = `{"name": "look", "title": "看", "input": {"type": "object"}, "readonly": true, "risk": "low", "confirm": "never", "mode": "sync", "billing": "none", "fee": 0, "amount": "none"}`

const booking = `{"name": "book", "title": "订", "input": {"type": "object", "properties": {"price": {"type": "integer"}, "note": {"type": "string"}}, "required": ["price"]},
	"output": {"type": "object"}, "display_fields": ["note"], "risk": "medium", "confirm": "by_grant", "mode": "async", "billing": "on_complete", "fee": 500, "amount": "none", "timeout_seconds": 60}`

// ruled is a manifest and the rules that it breaks.
type ruled struct {
	action  string
	replace []string // in the whole manifest, old and new by turns
	want    []string // "?" before one that only warns
}

func TestEveryRuleIsHeldAgainstAManifest(t *testing.T) {
	for _, cases := range []map[string]ruled{actionCases(), amountCases(), formCases()} {
		for name, x := range cases {
			t.Run(name, func(t *testing.T) { x.check(t) })
		}
	}
}

func (x ruled) check(t *testing.T) {
	text := strings.Replace(manifest, "ACTION", x.action, 1)
	for i := 0; i < len(x.replace); i += 2 {
		if !strings.Contains(text, x.replace[i]) {
			t.Fatalf("%s is not in the manifest", x.replace[i])
		}
		text = strings.Replace(text, x.replace[i], x.replace[i+1], 1)
	}
	var got []string
	found := relay.Check([]byte(text))
	for _, f := range found {
		rule := f.Rule
		if f.Warning {
			rule = "?" + rule
		}
		if f.Message == "" {
			t.Errorf("%s says nothing", rule)
		}
		if !slices.Contains(got, rule) {
			got = append(got, rule)
		}
	}
	if diff := cmp.Diff(x.want, got); diff != "" {
		t.Errorf("%s\n%v", diff, found)
	}
}

func actionCases() map[string]ruled {
	return map[string]ruled{
		"a good read":                               {reading, nil, nil},
		"a good booking":                            {booking, nil, nil},
		"two good ones":                             {reading + "," + booking, nil, nil},
		"M-NAME-1: a name twice":                    {reading + "," + strings.Replace(booking, `"book"`, `"look"`, 1), nil, []string{"M-NAME-1"}},
		"M-RISK-1: low, but it writes":              {reading, []string{`"readonly": true`, `"readonly": false`}, []string{"M-RISK-1"}},
		"M-RISK-1: low, and says nothing":           {reading, []string{`"readonly": true, `, ``}, []string{"M-RISK-1"}},
		"M-RISK-1: low, but it is billed":           {reading, []string{`"billing": "none"`, `"billing": "on_complete"`}, []string{"M-RISK-1", "?M-BILL-2"}},
		"M-RISK-1: a medium read is no harm":        {reading, []string{`"risk": "low"`, `"risk": "medium"`}, nil},
		"M-FEE-1: a fee without billing":            {booking, []string{`"on_complete"`, `"none"`}, []string{"M-FEE-1"}},
		"M-FEE-1: of a read as well":                {reading, []string{`"fee": 0`, `"fee": 100`}, []string{"M-FEE-1"}},
		"M-BILL-1: on_accept, at once":              {booking, []string{`"on_complete"`, `"on_accept"`, `"async"`, `"sync"`, `, "timeout_seconds": 60`, ``}, []string{"M-BILL-1"}},
		"M-BILL-1: on_accept, later":                {booking, []string{`"on_complete"`, `"on_accept"`}, nil},
		"M-BILL-1: on_accept, proposed":             {booking, []string{`"on_complete"`, `"on_accept"`, `"async"`, `"async_multi"`}, nil},
		"M-BILL-2: a billed read":                   {reading, []string{`"risk": "low"`, `"risk": "medium"`, `"billing": "none"`, `"billing": "on_complete"`}, []string{"?M-BILL-2"}},
		"M-MODE-1: a time for what is at once":      {reading, []string{`"mode": "sync"`, `"mode": "sync", "timeout_seconds": 60`}, []string{"?M-MODE-1"}},
		"M-DISP-1: a field that is not there":       {booking, []string{`["note"]`, `["note", "phone"]`}, []string{"M-DISP-1"}},
		"M-DISP-1: in an input without any":         {reading, []string{`"readonly"`, `"display_fields": ["x"], "readonly"`}, []string{"M-DISP-1"}},
		"M-SCHEMA-1: an input of no such type":      {booking, []string{`{"type": "string"}`, `{"type": "text"}`}, []string{"M-SCHEMA-1"}},
		"M-SCHEMA-1: an output of no such type":     {booking, []string{`"output": {"type": "object"}`, `"output": {"type": "thing"}`}, []string{"M-SCHEMA-1"}},
		"M-SCHEMA-1: an older dialect":              {reading, []string{`{"type": "object"}`, `{"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}`}, []string{"M-SCHEMA-1"}},
		"M-SCHEMA-1: the dialect spelled out":       {reading, []string{`{"type": "object"}`, `{"type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema"}`}, nil},
		"M-SCHEMA-1: a pattern that is none":        {booking, []string{`{"type": "string"}`, `{"type": "string", "pattern": "("}`}, []string{"M-SCHEMA-1"}},
		"M-BIND-1: a token, no help":                {reading, []string{`"user_binding": "none"`, `"user_binding": "token"`}, []string{"M-BIND-1"}},
		"M-BIND-1: a token, an empty help":          {reading, []string{`"user_binding": "none"`, `"user_binding": "token", "binding": {}`}, []string{"M-BIND-1"}},
		"M-BIND-1: a token and help":                {reading, []string{`"user_binding": "none"`, `"user_binding": "token", "binding": {"help_url": "https://x.example.com/bind"}`}, nil},
		"M-BIND-1, P-BIND-1: oauth":                 {reading, []string{`"user_binding": "none"`, `"user_binding": "oauth"`}, []string{"M-BIND-1", "P-BIND-1"}},
		"P-BIND-1: oauth with help":                 {reading, []string{`"user_binding": "none"`, `"user_binding": "oauth", "binding": {"help_url": "https://x.example.com/bind"}`}, []string{"P-BIND-1"}},
		"P-FEE-0: billed for nothing":               {booking, []string{`"fee": 500`, `"fee": 0`}, []string{"?P-FEE-0"}},
		"P-FEE-1: too little":                       {booking, []string{`"fee": 500`, `"fee": 99`}, []string{"P-FEE-1"}},
		"P-FEE-1: the least":                        {booking, []string{`"fee": 500`, `"fee": 100`}, nil},
		"P-FEE-1: the most":                         {booking, []string{`"fee": 500`, `"fee": 10000`}, nil},
		"P-FEE-1: too much":                         {booking, []string{`"fee": 500`, `"fee": 10001`}, []string{"P-FEE-1"}},
		"P-FEE-1: with a price it is not looked at": {booking, []string{`"fee": 500`, `"fee": 99999`, `"amount": "none"`, `"amount": 6800`}, nil},
		"P-FEE-0: nor with a price of the input":    {booking, []string{`"fee": 500`, `"fee": 0`, `"amount": "none"`, `"amount": {"from": "input.price"}`}, nil},
		"P-FEE-1: nor of a read":                    {booking, []string{`"fee": 500`, `"fee": 99999`, `"risk"`, `"readonly": true, "risk"`}, []string{"?M-BILL-2"}},
	}
}

func amountCases() map[string]ruled {
	const input = `{"type": "object", "properties": {"price": {"type": "integer"}, "note": {"type": "string"}}, "required": ["price"]}`
	priced := func(property, more string) []string {
		return []string{
			input, `{"type": "object", "properties": {"price": ` + property + `}, "required": ["price"]` + more + `}`,
			`"amount": "none"`, `"amount": {"from": "input.price"}`, `"display_fields": ["note"]`, `"display_fields": []`,
		}
	}
	return map[string]ruled{
		"M-AMT: a field that says integer":       {booking, priced(`{"type": "integer"}`, ``), nil},
		"M-AMT: a definition that says it":       {booking, priced(`{"$ref": "#/$defs/cents"}`, `, "$defs": {"cents": {"type": "integer"}}`), nil},
		"M-AMT: a definition of a definition":    {booking, priced(`{"$ref": "#/$defs/a"}`, `, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "integer"}}`), nil},
		"M-AMT: a name with a slash and a tilde": {booking, priced(`{"$ref": "#/$defs/a~1b~0c%20d"}`, `, "$defs": {"a/b~c d": {"type": "integer"}}`), nil},
		"M-AMT: within a list":                   {booking, priced(`{"$ref": "#/prefix/1"}`, `, "prefix": [{"type": "string"}, {"type": "integer"}]`), nil},
		"M-AMT-1: no such field":                 {booking, []string{`"amount": "none"`, `"amount": {"from": "input.cost"}`}, []string{"M-AMT-1"}},
		"M-AMT-1: a field of a field":            {booking, []string{`"amount": "none"`, `"amount": {"from": "input.price.cents"}`}, []string{"M-AMT-1"}},
		"M-AMT-2: a number":                      {booking, priced(`{"type": "number"}`, ``), []string{"M-AMT-2"}},
		"M-AMT-2: an integer or null":            {booking, priced(`{"type": ["integer", "null"]}`, ``), []string{"M-AMT-2"}},
		"M-AMT-2: a composition":                 {booking, priced(`{"allOf": [{"type": "integer"}]}`, ``), []string{"M-AMT-2"}},
		"M-AMT-2: a constant":                    {booking, priced(`{"const": 100}`, ``), []string{"M-AMT-2"}},
		"M-AMT-2: a definition of a text":        {booking, priced(`{"$ref": "#/$defs/cents"}`, `, "$defs": {"cents": {"type": "string"}}`), []string{"M-AMT-2"}},
		"M-AMT-2: a definition composed":         {booking, priced(`{"$ref": "#/$defs/cents"}`, `, "$defs": {"cents": {"allOf": [{"type": "integer"}]}}`), []string{"M-AMT-2"}},
		"M-AMT-2: a circle":                      {booking, priced(`{"$ref": "#/$defs/a"}`, `, "$defs": {"a": {"$ref": "#/$defs/a"}}`), []string{"M-AMT-2"}},
		"M-AMT-2: a definition by its anchor":    {booking, priced(`{"$ref": "#cents"}`, `, "$defs": {"cents": {"$anchor": "cents", "type": "integer"}}`), []string{"M-AMT-2"}},
		"M-AMT-2: nowhere":                       {booking, priced(`{"$ref": "#/$defs/none"}`, ``), []string{"M-SCHEMA-1", "M-AMT-2"}},
		"M-AMT-2: elsewhere":                     {booking, priced(`{"$ref": "https://example.com/cents"}`, ``), []string{"M-SCHEMA-1", "M-AMT-2"}},
		"M-AMT-3: it may be left out":            {booking, []string{`"required": ["price"]`, `"required": []`, `"amount": "none"`, `"amount": {"from": "input.price"}`}, []string{"M-AMT-3"}},
		"M-AMT-2 and 3: a text, not required":    {booking, []string{`"amount": "none"`, `"amount": {"from": "input.note"}`}, []string{"M-AMT-2", "M-AMT-3"}},
	}
}

func formCases() map[string]ruled {
	return map[string]ruled{
		"FORM: an unknown field is left alone": {reading, []string{`"title"`, `"icon": 1, "title"`}, nil},
		"FORM: a name with capitals":           {reading, []string{`"look"`, `"Look"`}, []string{"FORM"}},
		"FORM: a name of one letter":           {reading, []string{`"look"`, `"l"`}, []string{"FORM"}},
		"FORM: no title":                       {reading, []string{`"title": "看", `, ``}, []string{"FORM"}},
		"FORM: an input that is no object":     {reading, []string{`{"type": "object"}`, `{"type": "array"}`}, []string{"FORM"}},
		"FORM: an unknown risk":                {booking, []string{`"medium"`, `"some"`}, []string{"FORM"}},
		"FORM: a fee below nothing":            {booking, []string{`"fee": 500`, `"fee": -500`}, []string{"FORM", "P-FEE-1"}},
		"FORM: a broken fee":                   {booking, []string{`"fee": 500`, `"fee": 500.5`}, []string{"FORM"}},
		"FORM: a fee as 5e2":                   {booking, []string{`"fee": 500`, `"fee": 5e2`}, []string{"FORM"}},
		"FORM: a name twice in an object":      {reading, []string{`"fee": 0`, `"fee": 0, "fee": 0`}, []string{"FORM"}},
		"FORM: less than a minute":             {booking, []string{`"timeout_seconds": 60`, `"timeout_seconds": 59`}, []string{"FORM"}},
		"FORM: more than a week":               {booking, []string{`"timeout_seconds": 60`, `"timeout_seconds": 604801`}, []string{"FORM"}},
		"FORM: no action":                      {``, nil, []string{"FORM"}},
		"FORM: an endpoint without TLS":        {reading, []string{`https://shop`, `http://shop`}, []string{"FORM"}},
		"FORM: no category":                    {reading, []string{`["美发"]`, `[]`}, []string{"FORM"}},
		"FORM: another major":                  {reading, []string{`"rsp": "1.0"`, `"rsp": "2.0"`}, []string{"FORM"}},
		"FORM: no JSON":                        {`{`, nil, []string{"FORM"}},
	}
}

func TestAHundredActionsAreTakenAndNoMore(t *testing.T) {
	var actions []string
	for i := range 101 {
		actions = append(actions, strings.Replace(reading, `"look"`, fmt.Sprintf(`"look_%d"`, i), 1))
	}
	if found := relay.Check([]byte(strings.Replace(manifest, "ACTION", strings.Join(actions[:100], ","), 1))); len(found) > 0 {
		t.Error(found)
	}
	if found := relay.Check([]byte(strings.Replace(manifest, "ACTION", strings.Join(actions, ","), 1))); len(found) != 1 || found[0].Rule != "FORM" {
		t.Error(found)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(strings.Replace(manifest, "ACTION", reading+","+booking, 1))
	f.Add(`{"actions":[{"input":{"$ref":"#/properties/x"},"amount":{"from":"input.x"}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		found := relay.Check([]byte(text))
		if len(found) == 0 && !json.Valid([]byte(text)) {
			t.Error("what is no JSON is a good manifest")
		}
	})
}

func TestTheManifestIsWrittenFromTheCatalogueAndKeepsEveryRule(t *testing.T) {
	o := ownManifest(t)
	text, err := relay.Manifest(o)
	if err != nil {
		t.Fatal(err)
	}
	if found := relay.Check(text); len(found) > 0 {
		t.Error(found)
	}
	golden(t, "testdata/manifest.golden.json", string(text)+"\n")
	o.Scopes = []string{"read"}
	text, err = relay.Manifest(o)
	if err != nil || strings.Contains(string(text), `"sync_run"`) {
		t.Errorf("%v: a scope that only reads lets sync.run into the manifest", err)
	}
	if found := relay.Check(text); len(found) > 0 {
		t.Error(found)
	}
}
