package views

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
)

// Executor runs statements outside of a transaction, and holds one open beside
// them: a pool of at least two connections.
type Executor interface {
	Beginner
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// indexMark begins the comment of every index of ours; the rest tells what it is on.
const indexMark = "xiaoqu-sync typed column "

// Ours are known by their names; the comment tells what each was built from.
const readIndexes = `
select c.relname, coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), ''), i.indisvalid
from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid
where i.indrelid = to_regclass($1::text) and c.relname like $2::text || '\_typed\_%'`

// ApplyIndexes builds the indexes that the definition asks for and removes those
// of ours that it no longer has, without a lock that would hold up a reader or a
// sync. It is no transaction: what fails is tried again the next time. While
// another process is at it, it leaves it to that one: to this one an index that is
// being built would look unfinished.
func ApplyIndexes(ctx context.Context, db Executor, l migrations.Layout, resource string, d Definition) error {
	if err := migrations.CheckResource(resource); err != nil {
		return err
	}
	if err := d.check(); err != nil {
		return fmt.Errorf("views: %w", err)
	}
	release, got, err := lockIndexes(ctx, db, l, resource)
	if err != nil || !got {
		return err
	}
	defer release()
	wanted := d.indexes(l, resource)
	there, err := existing(ctx, db, l, resource)
	if err != nil {
		return fmt.Errorf("views: read indexes of %s: %w", resource, err)
	}
	for name, mark := range there {
		if w, ok := wanted[name]; ok && w.mark == mark {
			delete(wanted, name)
			continue
		}
		if _, err := db.Exec(ctx, l.Render("drop index concurrently if exists {data}."+ident(name))); err != nil {
			return fmt.Errorf("views: drop index %s: %w", name, err)
		}
	}
	for name, w := range wanted {
		if _, err := db.Exec(ctx, w.create); err != nil {
			return fmt.Errorf("views: create index %s: %w", name, err)
		}
		if _, err := db.Exec(ctx, w.comment); err != nil {
			return fmt.Errorf("views: mark index %s: %w", name, err)
		}
	}
	return nil
}

// lockIndexes takes the right to change the resource's typed indexes. The lock is
// of a transaction that stays open beside, so that it holds behind a pooler. It
// is taken by the simple protocol: an unnamed portal would keep a snapshot, and
// the building of an index waits for every snapshot.
func lockIndexes(ctx context.Context, db Executor, l migrations.Layout, resource string) (release func(), got bool, err error) {
	tx, err := db.Begin(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("views: lock indexes of %s: %w", resource, err)
	}
	release = func() { _ = tx.Rollback(context.WithoutCancel(ctx)) } // the lock goes with the connection at the latest
	const lock = `select pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended($1::text, 0))`
	if _, err = tx.Exec(ctx, "set local idle_in_transaction_session_timeout = 0"); err == nil {
		err = tx.QueryRow(ctx, lock, pgx.QueryExecModeSimpleProtocol, "xiaoqu-sync typed indexes "+l.Schema()+"."+resource).Scan(&got)
	}
	if err != nil || !got {
		release()
	}
	if err != nil {
		err = fmt.Errorf("views: lock indexes of %s: %w", resource, err)
	}
	return release, got, err
}

// index is an index as it should be.
type index struct{ mark, create, comment string }

func (d Definition) indexes(l migrations.Layout, resource string) map[string]index {
	all := map[string]index{}
	for _, c := range d.Columns {
		if !c.Index {
			continue
		}
		expression := render(l, d.expression(c, "record"), resource)
		sum := sha256.Sum256([]byte(expression))
		mark := indexMark + hex.EncodeToString(sum[:8])
		name := fmt.Sprintf("%s_typed_%s", resource, c.Name)
		if len(name) > 63 { // PostgreSQL would cut it, and another might be cut to the same
			name = fmt.Sprintf("%.40s_typed_%s", resource, hex.EncodeToString(sum[:7]))
		}
		method, by := "btree", "("+expression+")"
		if c.Type == Texts {
			method = "gin"
		}
		all[name] = index{
			mark:    mark,
			create:  render(l, "create index concurrently "+ident(name)+" on {table} using ", resource) + method + " (" + by + ")",
			comment: l.Render("comment on index {data}." + ident(name) + " is " + literal(mark)),
		}
	}
	return all
}

// existing gives the indexes of ours by name, an unfinished one with no mark.
func existing(ctx context.Context, db Executor, l migrations.Layout, resource string) (map[string]string, error) {
	rows, err := db.Query(ctx, readIndexes, l.RenderResource("{table}", resource), resource)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	var name, mark string
	var valid bool
	_, err = pgx.ForEachRow(rows, []any{&name, &mark, &valid}, func() error {
		if !valid {
			mark = ""
		}
		all[name] = mark
		return nil
	})
	return all, err
}
