package views

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSuggestionsFitTheRecordsAndShowNobody(t *testing.T) {
	var records []json.RawMessage
	for i := range 30 {
		state := []string{"active", "draft", "ended"}[i%3]
		records = append(records, fmt.Appendf(nil, `{"id":"c%d","status":%q,"fee":{"amount":%d.50,"currencyCode":"CNY"},"signed":"2026-09-%02d","at":"2026-09-01T00:00:%02dZ",
			"mobile":"138001380%02d","name":"张%d","vip":%t,"n":%d,"ownerId":185200000001258%04d,"record":1,"tags":["a"],"items":[{"x":1}],"maybe":null,"manager_name":"王芳","signer":{"title":"李强"},"mixed":%s,"a key":1,"it's":1}`,
			i, state, i, i%28+1, i, i, i, i%2 == 0, i, i, []string{`1`, `"x"`}[i%2]))
	}
	records = append(records, json.RawMessage(`[]`), json.RawMessage(`{"status":"draft","rare":1}`))
	var got []string
	for _, s := range Suggest(records, nil) {
		got = append(got, fmt.Sprint(s.Name, " ", s.Path, " ", s.Type, " ", s.Records, " ", s.Nulls, " ", s.Examples))
	}
	want := []string{
		"status $.status text 31 0 [active draft ended]",
		"fee_amount $.fee.amount numeric 30 0 [9.99 99.99]",
		"fee_currency_code $.fee.currencyCode text 30 0 [CNY]",
		"signed $.signed date 30 0 [9999-99-99]",
		"at $.at timestamptz 30 0 [9999-99-99a99:99:99a]",
		"mobile $.mobile text 30 0 [99999999999]",
		"name $.name text 30 0 [字9 字99]",
		"vip $.vip boolean 30 0 []",
		"n $.n integer 30 0 [9 99]",
		"owner_id $.ownerId text 30 0 [9999999999999999999]",
		"record_value $.record integer 30 0 [1]",
		"tags $.tags text[] 30 0 []",
		"items $.items jsonb 30 0 []",
		"manager_name $.manager_name text 30 0 [字字]",
		"signer_title $.signer.title text 30 0 [字字]",
		"mixed $.mixed text 30 0 [1 x]",
		"a_key $['a key'] integer 30 0 [1]",
		"rare $.rare integer 1 0 [9]",
		"maybe $.maybe text 30 30 []",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
