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
	if len(d.Columns) == 0 {
		return nil, nil
	}
	parts := make([]string, len(d.Columns))
	for i, c := range d.Columns {
		path, _ := ParsePath(c.Path) // checked
		parts[i] = fmt.Sprintf("select %d as n, %s as name where not exists (select from {table} where deleted_at is null and record #> %s is not null)",
			i, literal(c.Name), path.array())
	}
	sql := "select name from (" + strings.Join(parts, "\nunion all\n") + ") x\nwhere exists (select from {table} where deleted_at is null) order by n"
	rows, err := db.Query(ctx, render(l, sql, resource))
	if err != nil {
		return nil, fmt.Errorf("views: look for what fills the columns of %s: %w", resource, err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
