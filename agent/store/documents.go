package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// maxSecret bounds a token or code that somebody shows, in bytes.
const maxSecret = 200

const readDocument = `
select title, name, type, body, expires_at from {sync}.agent_documents where hash = $1::bytea and expires_at > now()`

// Document reads what a link's token leads to; nil when there is none, or it has
// expired.
func (s *Store) Document(ctx context.Context, token string) (*agent.Document, *agent.Link, error) {
	if len(token) > maxSecret {
		return nil, nil, nil
	}
	link := agent.Link{Token: token}
	var d *agent.Document
	scan := func(row pgx.CollectableRow) (d agent.Document, err error) {
		err = row.Scan(&d.Title, &d.Name, &d.Type, &d.Body, &link.ExpiresAt)
		return d, err
	}
	err := s.do(ctx, "read a document", statement{readDocument, []any{hashOf(token)}, one(&d, scan)})
	if err != nil || d == nil {
		return nil, nil, err
	}
	sum := sha256.Sum256(d.Body)
	link.Title, link.Name, link.Type, link.Size = d.Title, d.Name, d.Type, int64(len(d.Body))
	link.SHA256, link.ExpiresAt = hex.EncodeToString(sum[:]), link.ExpiresAt.UTC()
	return d, &link, nil
}
