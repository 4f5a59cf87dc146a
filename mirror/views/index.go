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

// Executor runs statements outside of a transaction.
type Executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	migrations.Querier
}

// indexMark begins the comment of every index of ours; the rest tells what it is on.
const indexMark = "xiaoqu-sync typed column "

// Ours are known by their comment, so that a reader's own index is never touched.
const readIndexes = `
select c.relname, coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), ''), i.indisvalid
from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid
where i.indrelid = to_regclass($1::text) and c.relname like $2::text || '\_typed\_%'`

// ApplyIndexes builds the indexes that the definition asks for and removes those
// of ours that it no longer has, without a lock that would hold up a reader or a
// sync. It is no transaction: what fails is tried again the next time. One
// process does it at a time; the caller holds the resource's lease.
func ApplyIndexes(ctx context.Context, db Executor, l migrations.Layout, resource string, d Definition) error {
	if err := migrations.CheckResource(resource); err != nil {
		return err
	}
	if err := d.check(); err != nil {
		return fmt.Errorf("views: %w", err)
	}
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
