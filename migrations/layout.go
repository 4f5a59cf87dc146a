package migrations

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

var (
	schemaName   = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,40}$`)
	resourceName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	ownSuffix    = regexp.MustCompile(`_(live|all|masked|misfits|change_seq|pkey)$|_typed_`)
)

const (
	// freshnessView shares the data schema with the resources' tables.
	freshnessView = "freshness"
	// stagingPrefix begins the names of staging tables, in the bookkeeping schema.
	stagingPrefix = "staging_"
)

// Layout knows the names of everything in the database for one configured data
// schema. The zero value is not usable; make one with NewLayout.
type Layout struct {
	data, sync string
}

// NewLayout checks the name of the data schema. The bookkeeping schema's name
// is the same with "_sync" behind it.
func NewLayout(schema string) (Layout, error) {
	if !schemaName.MatchString(schema) || strings.HasPrefix(schema, "pg_") {
		return Layout{}, fmt.Errorf("migrations: schema name %.60q: use a to z, 0 to 9 and _, at most 41 characters, not beginning with a digit or pg_", schema)
	}
	return Layout{data: schema, sync: schema + "_sync"}, nil
}

// CheckResource refuses names that cannot be a table beside the objects that are
// already in the data schema.
func CheckResource(name string) error {
	switch {
	case !resourceName.MatchString(name):
		return fmt.Errorf("migrations: resource name %.60q: use a to z, 0 to 9 and _, at most 40 characters, beginning with a letter", name)
	case name == freshnessView, ownSuffix.MatchString(name):
		return fmt.Errorf("migrations: resource name %q could be that of a view or an index", name)
	}
	return nil
}

// Schema is the plain name of the data schema.
func (l Layout) Schema() string { return l.data }

// Render puts the quoted schema names in place of {data} and {sync}.
func (l Layout) Render(sql string) string {
	return strings.NewReplacer("{data}", quote(l.data), "{sync}", quote(l.sync)).Replace(sql)
}

// RenderResource does what Render does and puts one resource's table, its live
// view, its cursor index and its staging table in place of {table}, {live},
// {index} and {staging}. The name has passed CheckResource.
func (l Layout) RenderResource(sql, resource string) string {
	return strings.NewReplacer(
		"{data}", quote(l.data), "{sync}", quote(l.sync),
		"{table}", quote(l.data, resource),
		"{live}", quote(l.data, resource+"_live"),
		"{index}", quote(resource+"_change_seq"),
		"{staging}", quote(l.sync, stagingPrefix+resource),
	).Replace(sql)
}

func quote(parts ...string) string { return pgx.Identifier(parts).Sanitize() }
