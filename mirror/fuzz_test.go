package mirror

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

// FuzzRow holds that what decode accepts, PostgreSQL takes as jsonb and text, and
// that the typed fields are those of the stored record.
func FuzzRow(f *testing.F) {
	for _, d := range dirty {
		f.Add([]byte(d.record))
	}
	for _, s := range []string{
		`{"id":9223372036854775807,"n":[1e400,-0,0.10,1E+2]}`, `{"id":"","id":"x"}`, `{"id":"a","deleted_at":{"x":[]}}`,
		`{"id":"\ud83d\ude00"}`, `{"id":1e3}`, `[[[[]]]]`, `{"id":"a","v":1e-1000}`, "{\"id\":\"\x00\"}", `{"id":"a"}x`,
	} {
		f.Add([]byte(s))
	}
	zone := shanghai(f)
	var conn *pgx.Conn
	if url := os.Getenv("XIAOQU_TEST_DATABASE_URL"); url != "" {
		var err error
		if conn, err = pgx.Connect(context.Background(), url); err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, reason := newDecoder(zone).decode(raw)
		if reason != "" {
			return
		}
		if !json.Valid(r.record) {
			t.Fatalf("%q is stored as %q", raw, r.record)
		}
		if conn == nil {
			return
		}
		var id, back string
		err := conn.QueryRow(t.Context(), "select $1::text, $2::text::jsonb ->> 'id'", r.id, string(r.record)).Scan(&id, &back)
		if err != nil || id != r.id {
			t.Fatalf("%q: %v", raw, err)
		}
		if back != r.id && r.id != "-0" { // the one integer that jsonb writes another way
			t.Fatalf("%q: id %q, record says %q", raw, r.id, back)
		}
	})
}
