package mirror

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
)

// Finding is the verdict on one thing that the mirror needs of its database.
type Finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Hint   string `json:"hint"` // what to do when it is not OK
}

const oldestServer = 130000

const readServer = `
select current_setting('server_version'), current_setting('server_version_num')::integer,
       pg_catalog.pg_is_in_recovery(), current_setting('default_transaction_read_only')::boolean,
       current_setting('server_encoding'), current_user::text, pg_catalog.current_database()::text,
       pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE'),
       pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY')`

// server is what readServer tells.
type server struct {
	version           string
	number            int
	standby, readOnly bool
	encoding          string
	login, database   string
	mayCreate         bool // schemas
	mayTemp           bool // temporary tables
}

// Probe looks whether the database can hold the mirror: connection, version,
// writability, encoding, rights, schema. It never writes. What is wrong is a
// finding that is not OK; the error is set only when the database could not be
// asked, and the findings then end with the one that failed.
func (m *Mirror) Probe(ctx context.Context, resources []string) ([]Finding, error) {
	if err := checkResources("probe", resources); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	var s server
	err := m.pool.QueryRow(ctx, readServer).Scan(&s.version, &s.number, &s.standby, &s.readOnly, &s.encoding, &s.login, &s.database, &s.mayCreate, &s.mayTemp)
	if err != nil {
		return lastFinding(nil, "connect", fail("probe", err))
	}
	found := s.findings()
	state, err := migrations.Inspect(ctx, m.pool, m.layout, resources)
	var newer *migrations.NewerError
	if err != nil && !errors.As(err, &newer) {
		return lastFinding(found, "schema", fail("probe", err))
	}
	lacking, missingErr := m.lacking(ctx, s, state, resources)
	if missingErr != nil {
		return lastFinding(found, "rights", fail("probe", missingErr))
	}
	found = append(found, rightsFinding(s, lacking), schemaFinding(state, newer))
	return found, nil
}

// lastFinding adds the failure as a finding and hands it on, unless the finding
// says it all: that the login may not even look.
func lastFinding(found []Finding, name string, err error) ([]Finding, error) {
	f := Finding{Name: name, Detail: err.Error()}
	var own *Error
	if errors.As(err, &own) {
		f.Hint = own.Hint
		if own.Kind == KindDenied {
			f.Name, f.Detail, err = "rights", own.Message, nil
		}
	}
	return append(found, f), err
}

func (s server) findings() []Finding {
	version := Finding{Name: "version", OK: s.number >= oldestServer, Detail: "PostgreSQL " + s.version}
	if !version.OK {
		version.Hint = "use PostgreSQL 13 or later"
	}
	writable := Finding{Name: "writable", OK: true, Detail: "primary, read and write"}
	switch {
	case s.standby:
		writable = Finding{Name: "writable", Detail: "the server is a standby", Hint: "point the database URL at the primary"}
	case s.readOnly:
		writable = Finding{Name: "writable", Detail: "default_transaction_read_only is on", Hint: "alter the role or the database to allow writing"}
	}
	encoding := Finding{Name: "encoding", OK: s.encoding == "UTF8", Detail: s.encoding}
	if !encoding.OK {
		encoding.Hint = "create the database with encoding UTF8"
	}
	connect := Finding{Name: "connect", OK: true, Detail: fmt.Sprintf("database %s as %s", s.database, s.login)}
	return []Finding{connect, version, writable, encoding}
}

// Schemas that are there are asked for the rights that are needed in them; a
// schema's and a table's rights can only be asked by name when they exist.
const readRights = `
select p.need from (
    select 'USAGE on schema ' || s.nspname as need, pg_catalog.has_schema_privilege(s.oid, 'USAGE') as given
    from pg_catalog.pg_namespace s where s.nspname in ($1::text, $2::text)
    union all
    select 'CREATE on schema ' || s.nspname, pg_catalog.has_schema_privilege(s.oid, 'CREATE')
    from pg_catalog.pg_namespace s where s.nspname = $1::text and $4::boolean or s.nspname = $2::text and $5::boolean
    union all
    select r.name || ' on ' || s.nspname || '.' || c.relname, pg_catalog.has_table_privilege(c.oid, r.name)
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace s on s.oid = c.relnamespace
    cross join (values ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE')) as r (name)
    where c.relkind in ('r', 'p')
      and (s.nspname = $1::text and c.relname = any ($3::text[]) and r.name not in ('DELETE', 'TRUNCATE')
           or s.nspname = $2::text and c.relname in ('state', 'runs', 'quarantine', 'leases', 'passes', 'purges', 'views', 'alerts') and r.name <> 'TRUNCATE'
           or s.nspname = $2::text and c.relname in (select 'staging_' || w from unnest($3::text[]) w) and r.name <> 'UPDATE')
    union all
    -- Only its owner may add a column to a table of an earlier release.
    select 'ownership of ' || s.nspname || '.' || c.relname, pg_catalog.pg_has_role(c.relowner, 'USAGE')
    from pg_catalog.pg_class c join pg_catalog.pg_namespace s on s.oid = c.relnamespace
    where c.relkind in ('r', 'p')
      and (s.nspname = $1::text and c.relname = any ($6::text[])
           or $5::boolean and s.nspname = $2::text and c.relname in ('state', 'runs'))
) p where not p.given order by 1`

// lacking lists the rights that the login needs and has not.
func (m *Mirror) lacking(ctx context.Context, s server, state migrations.State, resources []string) ([]string, error) {
	var lacking []string
	if len(state.Schemas) > 0 && !s.mayCreate {
		lacking = append(lacking, "CREATE on database "+s.database)
	}
	if !s.mayTemp {
		lacking = append(lacking, "TEMPORARY on database "+s.database)
	}
	rows, err := m.pool.Query(ctx, readRights, m.layout.Schema(), m.layout.Schema()+"_sync", resources,
		state.Pending(), state.Version < state.Latest, state.Resources)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		var need string
		if err := rows.Scan(&need); err != nil {
			return nil, err
		}
		lacking = append(lacking, need)
	}
	return lacking, rows.Err()
}

func rightsFinding(s server, lacking []string) Finding {
	if len(lacking) == 0 {
		return Finding{Name: "rights", OK: true, Detail: s.login + " has what it needs"}
	}
	return Finding{
		Name: "rights", Detail: s.login + " lacks " + strings.Join(lacking, ", "),
		Hint: "grant them to " + s.login + ", or let an owner run `xiaoqu-sync migrate`",
	}
}

// schemaFinding takes pending migrations as fine: the next run applies them.
func schemaFinding(s migrations.State, newer *migrations.NewerError) Finding {
	f := Finding{Name: "schema", OK: true, Detail: fmt.Sprintf("version %d", s.Version)}
	if newer != nil {
		f.OK, f.Detail = false, fmt.Sprintf("the database is at version %d, this binary knows %d", newer.Database, newer.Binary)
		f.Hint = "use the release that migrated the database, or a later one"
	} else if text := pending(s); text != "" {
		f.Detail, f.Hint = text+"; the first sync makes what is missing", "run `xiaoqu-sync migrate`, unless migrations are applied automatically"
	}
	return f
}
