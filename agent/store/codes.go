package store

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Codes are read and typed by people: no I, L, O or U is in them.
const codeAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

const insertCode = `
insert into {sync}.agent_codes (hash, ref, display, expires_at) values ($1::bytea, $2::text, $3::text, now() + $4::float8 * interval '1 second')`

// AddCode makes a code of 80 random bits that binds the account ref, shown to
// people as display, to whoever redeems it first within its life. The code, as
// XXXX-XXXX-XXXX-XXXX, is told this once.
func (s *Store) AddCode(ctx context.Context, ref, display string, life time.Duration) (code string, err error) {
	random := make([]byte, 10)
	_, _ = rand.Read(random) // never fails
	plain := base32.NewEncoding(codeAlphabet).EncodeToString(random)
	err = s.do(ctx, "add a code", statement{sql: insertCode, args: []any{hashOf(plain), ref, display, seconds(life)}})
	if err != nil {
		return "", err
	}
	return plain[:4] + "-" + plain[4:8] + "-" + plain[8:12] + "-" + plain[12:], nil
}

// The same user again, whose answer was lost, gets the same one.
const redeemCode = `
update {sync}.agent_codes set uid = $2::text
where hash = $1::bytea and expires_at > now() and (uid is null or uid = $2)
returning ref, display`

// Redeem uses a code up for the platform's user uid and gives what it binds; ok is
// false when there is no such code, it has expired, or somebody else has used it.
func (s *Store) Redeem(ctx context.Context, code, uid string) (ref, display string, ok bool, err error) {
	if len(code) > maxSecret || uid == "" || !storable(uid) {
		return "", "", false, nil
	}
	rows := func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&ref, &display}, func() error { ok = true; return nil })
		return err
	}
	err = s.do(ctx, "redeem a code", statement{redeemCode, []any{hashOf(asPrinted(code)), uid}, rows})
	return ref, display, ok, err
}

// asPrinted undoes what people do to a code: small letters, spaces, look-alikes.
func asPrinted(code string) string {
	return strings.NewReplacer("-", "", " ", "", "O", "0", "I", "1", "L", "1").Replace(strings.ToUpper(strings.TrimSpace(code)))
}
