package store

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrTokenExists means that there is a token of this name; revoke it first.
var ErrTokenExists = errors.New("agent/store: there is a token of this name: revoke it first, or take another name")

// ErrTokenName means that a name cannot be a token's.
var ErrTokenName = errors.New("agent/store: a token's name is a to z, A to Z, 0 to 9, dot, dash and _, at most 64 characters")

var tokenName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// tokenPrefix lets people and scanners of secrets know what it is.
const tokenPrefix = "xqa_"

// TokenInfo is what can be shown of a token.
type TokenInfo struct {
	Name      string     `json:"name"`
	Scopes    []string   `json:"scopes"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"` // null: never
}

const insertToken = `
insert into {sync}.agent_tokens (name, hash, scopes, expires_at)
values ($1::text, $2::bytea, $3::text[], now() + $4::float8 * interval '1 second')
on conflict (name) do nothing returning name`

// AddToken makes a token with a name for people and returns its secret, which is
// told this once; life 0 is for ever. ErrTokenExists, ErrTokenName.
func (s *Store) AddToken(ctx context.Context, name string, scopes []string, life time.Duration) (secret string, err error) {
	if !tokenName.MatchString(name) {
		return "", ErrTokenName
	}
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	secret = tokenPrefix + base64.RawURLEncoding.EncodeToString(random)
	var lives *float64
	if life > 0 {
		n := seconds(life)
		lives = &n
	}
	var made bool
	err = s.do(ctx, "add a token", statement{insertToken, []any{name, hashOf(secret), append([]string{}, scopes...), lives}, some(&made)})
	switch {
	case err != nil:
		return "", err
	case !made:
		return "", ErrTokenExists
	}
	return secret, nil
}

const tokenColumns = `select name, scopes, created_at, expires_at from {sync}.agent_tokens `

// Token finds a token by its secret; ok is false when there is none, or it has expired.
func (s *Store) Token(ctx context.Context, secret string) (name string, scopes []string, ok bool, err error) {
	if len(secret) > maxSecret {
		return "", nil, false, nil
	}
	var t *TokenInfo
	sql := tokenColumns + `where hash = $1::bytea and (expires_at is null or expires_at > now())`
	err = s.do(ctx, "read a token", statement{sql, []any{hashOf(secret)}, one(&t, tokenInfo)})
	if err != nil || t == nil {
		return "", nil, false, err
	}
	return t.Name, t.Scopes, true, nil
}

// Tokens lists them by name, those that have expired too.
func (s *Store) Tokens(ctx context.Context) (all []TokenInfo, err error) {
	rows := func(rows pgx.Rows) (err error) {
		all, err = pgx.CollectRows(rows, tokenInfo)
		return err
	}
	err = s.do(ctx, "list tokens", statement{tokenColumns + `order by name collate "C"`, nil, rows})
	return all, err
}

func tokenInfo(row pgx.CollectableRow) (t TokenInfo, err error) {
	err = row.Scan(&t.Name, &t.Scopes, &t.CreatedAt, &t.ExpiresAt)
	t.CreatedAt, t.ExpiresAt = t.CreatedAt.UTC(), utc(t.ExpiresAt)
	return t, err
}

// The door of tokens is the one over HTTP.
const revokeToken = `
with gone as (
	delete from {sync}.agent_tokens where name = $1::text returning name
), cancelled as (
	update {sync}.agent_tasks t set state = 'cancelled', ended_at = now(), changes = t.changes + 1
	from gone where t.door = 'api' and t.caller = gone.name and t.state in ('accepted', 'choosing')
)
select name from gone`

// RevokeToken removes a token; false when there is none of this name. Its tasks that
// nobody works on are cancelled: one that was stolen must not have its last wish done.
func (s *Store) RevokeToken(ctx context.Context, name string) (gone bool, err error) {
	if !tokenName.MatchString(name) {
		return false, nil
	}
	err = s.do(ctx, "revoke a token", statement{revokeToken, []any{name}, some(&gone)})
	return gone, err
}
