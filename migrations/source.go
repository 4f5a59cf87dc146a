package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"
)

//go:embed sql/*.sql
var files embed.FS

const (
	resourceTemplate = "sql/resource.sql"
	historyTable     = "migrations" // in the bookkeeping schema
)

// migration is one numbered file.
type migration struct {
	version int64
	name    string // without folder and extension
	sql     string // not rendered
}

// numbered reads the embedded numbered files, in order.
func numbered() ([]migration, error) {
	entries, err := files.ReadDir("sql") // sorted by name
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	var all []migration
	for _, e := range entries {
		file := path.Join("sql", e.Name())
		if file == resourceTemplate {
			continue
		}
		number, _, _ := strings.Cut(e.Name(), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil || version != int64(len(all)+1) {
			return nil, fmt.Errorf("migrations: file %s breaks the numbering", e.Name())
		}
		text, err := files.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("migrations: %w", err)
		}
		all = append(all, migration{version: version, name: strings.TrimSuffix(e.Name(), ".sql"), sql: string(text)})
	}
	return all, nil
}

// provider gives the files to goose, each rendered and in a transaction of its own.
func provider(db *sql.DB, l Layout, all []migration) (*goose.Provider, error) {
	steps := make([]*goose.Migration, 0, len(all))
	for _, m := range all {
		text := l.Render(m.sql)
		run := func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, text)
			return err
		}
		steps = append(steps, goose.NewGoMigration(m.version, &goose.GoFunc{RunTx: run}, nil))
	}
	// The name needs no quotes: it ends in _sync, which makes it no reserved word.
	return goose.NewProvider(goose.DialectPostgres, db, nil,
		goose.WithGoMigrations(steps...),
		goose.WithTableName(l.sync+"."+historyTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()),
	)
}
