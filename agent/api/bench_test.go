package api_test

import (
	"fmt"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// What a call costs beside the SQL that it runs: the token's and the record's.
func BenchmarkRecordsGet(b *testing.B) {
	w := setUp(b)
	token := w.token(b, "reader", "read")
	const input = `{"resource":"users","id":"1"}`
	caller := agent.Caller{Door: "api", Name: "reader", Scopes: []string{"read"}}
	b.Run("sql", func(b *testing.B) {
		for b.Loop() {
			if _, _, ok, err := w.store.Token(b.Context(), token); err != nil || !ok {
				b.Fatal(err)
			}
			if _, ok, err := w.store.Record(b.Context(), "users", "1"); err != nil || !ok {
				b.Fatal(err)
			}
		}
	})
	b.Run("catalogue", func(b *testing.B) {
		for b.Loop() {
			if _, err := w.service.Do(b.Context(), agent.Call{Caller: caller, Capability: "records.get", Input: []byte(input)}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("door", func(b *testing.B) {
		for b.Loop() {
			if r := w.call(b, "POST", "/api/v1/capabilities/records.get", token, input); r.status != 200 {
				b.Fatal(fmt.Sprint(r.status, r.text))
			}
		}
	})
}
