package views

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
)

// Unfilled names the columns whose paths lead to nothing in any live record: most
// likely they are wrong. Of a table without live rows it names none. It reads the
// table up to the first record that has each path.
func Unfilled(ctx context.Context, db migrations.Querier, l migrations.Layout, resource string, d Definition) ([]string, error) {
	if err := migrations.CheckResource(resource); err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("views: %w", err)
	}
	var names, paths []string
	for _, c := range d.Columns {
		names, paths = append(names, c.Name), append(paths, c.Path)
	}
	return nowhere(ctx, db, l, resource, names, paths)
}

// Idle names the masked paths that lead to nothing in any live record, and so hide
// nothing. It reads what Unfilled reads.
func Idle(ctx context.Context, db migrations.Querier, l migrations.Layout, resource string, d Definition) ([]string, error) {
	if err := migrations.CheckResource(resource); err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("views: %w", err)
	}
	return nowhere(ctx, db, l, resource, d.Masked, d.Masked)
}

// nowhere gives the names of paths that no live record has.
func nowhere(ctx context.Context, db migrations.Querier, l migrations.Layout, resource string, names, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	parts := make([]string, len(paths))
	for i, text := range paths {
		path, _ := ParsePath(text) // checked
		parts[i] = fmt.Sprintf("select %d as n, %s as name where not exists (select from {table} where deleted_at is null and record #> %s is not null)",
			i, literal(names[i]), path.array())
	}
	sql := "select name from (" + strings.Join(parts, "\nunion all\n") + ") x\nwhere exists (select from {table} where deleted_at is null) order by n"
	rows, err := db.Query(ctx, render(l, sql, resource))
	if err != nil {
		return nil, fmt.Errorf("views: look where the paths of %s lead: %w", resource, err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
