package localpg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Query runs one statement as a reader would and returns its columns' names
// and its rows as text, NULL as "". It is for showing results to people and
// for tests that look at the database from outside.
func Query(ctx context.Context, url, sql string) (columns []string, rows [][]string, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, nil, fmt.Errorf("localpg: query: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	result := conn.PgConn().ExecParams(ctx, sql, nil, nil, nil, nil)
	for _, f := range result.FieldDescriptions() {
		columns = append(columns, f.Name)
	}
	for result.NextRow() {
		row := make([]string, len(columns))
		for i, v := range result.Values() {
			row[i] = string(v)
		}
		rows = append(rows, row)
	}
	if _, err := result.Close(); err != nil {
		return nil, nil, fmt.Errorf("localpg: query: %w", err)
	}
	return columns, rows, nil
}
