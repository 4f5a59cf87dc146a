package migrations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Querier is the reading half of a connection or a pool.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// State says what is in the database and what this binary expects there.
type State struct {
	Version int64 // of the bookkeeping in the database, 0 when there is none
	Latest  int64 // that this binary knows
	Schemas []string
	// Schemas are the schemas still to be made, Resources those of the asked
	// ones whose table, live view or staging table is not there or is of an
	// earlier release.
	Resources []string
}

// Pending reports whether Apply would do anything.
func (s State) Pending() bool {
	return s.Version < s.Latest || len(s.Schemas) > 0 || len(s.Resources) > 0
}

// NewerError means that the database was migrated by a later release.
type NewerError struct{ Database, Binary int64 }

func (e *NewerError) Error() string {
	return fmt.Sprintf("migrations: the database is at version %d, this binary knows %d", e.Database, e.Binary)
}

// Inspect reads the state without changing anything. It returns *NewerError
// when the database is ahead of this binary.
func Inspect(ctx context.Context, db Querier, l Layout, resources []string) (State, error) {
	for _, r := range resources {
		if err := CheckResource(r); err != nil {
			return State{}, err
		}
	}
	all, err := numbered()
	if err != nil {
		return State{}, err
	}
	s := State{Latest: int64(len(all))}
	if s.Schemas, err = missing(ctx, db, missingSchemas, []string{l.data, l.sync}); err != nil {
		return State{}, fmt.Errorf("migrations: read schemas: %w", err)
	}
	if s.Version, err = version(ctx, db, l); err != nil {
		return State{}, fmt.Errorf("migrations: read version: %w", err)
	}
	if s.Version > s.Latest {
		return s, &NewerError{Database: s.Version, Binary: s.Latest}
	}
	if s.Resources, err = missing(ctx, db, missingResources, resources, l.data, l.sync); err != nil {
		return State{}, fmt.Errorf("migrations: read tables: %w", err)
	}
	return s, nil
}

// The catalogues are read rather than to_regclass, which wants the right to use
// the schema before it says anything.
const (
	missingSchemas = `
select w.name from unnest($1::text[]) with ordinality as w (name, n)
where not exists (select from pg_catalog.pg_namespace s where s.nspname = w.name)
order by w.n`

	// delete_reason is what the table of the first release lacks.
	missingResources = `
select w.name from unnest($1::text[]) with ordinality as w (name, n)
where 3 > (
    select count(*) from pg_catalog.pg_class c join pg_catalog.pg_namespace s on s.oid = c.relnamespace
    where s.nspname = $2::text and c.relname = w.name || '_live' and c.relkind = 'v'
       or s.nspname = $3::text and c.relname = '` + stagingPrefix + `' || w.name and c.relkind in ('r', 'p')
       or s.nspname = $2::text and c.relname = w.name and c.relkind in ('r', 'p') and exists (
              select from pg_catalog.pg_attribute a
              where a.attrelid = c.oid and a.attname = 'delete_reason' and not a.attisdropped))
order by w.n`

	tableThere = `
select exists (
    select from pg_catalog.pg_class c join pg_catalog.pg_namespace s on s.oid = c.relnamespace
    where s.nspname = $1::text and c.relname = $2::text)`

	historyVersion = `select coalesce(max(version_id), 0)::bigint from {sync}.` + historyTable + ` where is_applied`
)

func missing(ctx context.Context, db Querier, sql string, names []string, more ...any) ([]string, error) {
	rows, err := db.Query(ctx, sql, append([]any{names}, more...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func version(ctx context.Context, db Querier, l Layout) (int64, error) {
	var there bool
	if err := db.QueryRow(ctx, tableThere, l.sync, historyTable).Scan(&there); err != nil || !there {
		return 0, err
	}
	var v int64
	err := db.QueryRow(ctx, l.Render(historyVersion)).Scan(&v)
	return v, err
}

// StagingThere reports whether the resource's staging table exists. The name has
// passed CheckResource.
func StagingThere(ctx context.Context, db Querier, l Layout, resource string) (bool, error) {
	var there bool
	if err := db.QueryRow(ctx, tableThere, l.sync, stagingPrefix+resource).Scan(&there); err != nil {
		return false, fmt.Errorf("migrations: read staging: %w", err)
	}
	return there, nil
}
