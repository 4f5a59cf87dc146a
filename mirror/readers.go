package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/views"
)

// indexTimeout bounds the building of one resource's indexes, which read all of its table.
const indexTimeout = 2 * time.Hour

// Views makes the resource's views from the definition, in one transaction, and
// reports whether it had to. Rights on them stay. With dryRun it only looks.
// KindConfig: the definition is wrong, or a view of somebody else's stands on one
// that would have to be dropped; nothing was changed.
func (m *Mirror) Views(ctx context.Context, resource string, d views.Definition, dryRun bool) (changed bool, err error) {
	op := "views of " + resource
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if err := checkResources(op, []string{resource}); err != nil {
		return false, err
	}
	if dryRun {
		changed, err = views.Pending(ctx, m.pool, m.layout, resource, d)
	} else {
		changed, err = views.Apply(ctx, m.pool, m.layout, resource, d)
	}
	var dependent *views.DependentError
	if errors.As(err, &dependent) {
		return false, &Error{
			Kind: KindConfig, Op: op, Err: dependent,
			Message: fmt.Sprintf("%s must be made anew, and %s stands on it", dependent.View, strings.Join(dependent.Dependents, ", ")),
			Hint:    "drop what stands on it, migrate, and make it again; or keep the columns as they were",
		}
	}
	return changed, fail(op, err)
}

const readDeclared = `
select exists (select from {sync}.views where resource = $1::text
               and not (definition->'columns' in ('[]', 'null') and definition->'masked' in ('[]', 'null')))`

// Declared reports whether the resource's views were made with typed columns or
// masked paths. KindSchema: there are no tables yet.
func (m *Mirror) Declared(ctx context.Context, resource string) (declared bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	err = m.pool.QueryRow(ctx, m.layout.Render(readDeclared), resource).Scan(&declared)
	return declared, fail("views of "+resource, err)
}

// Indexes builds the indexes that the definition asks for, and removes those of an
// earlier one, while readers and syncs go on.
func (m *Mirror) Indexes(ctx context.Context, resource string, d views.Definition) error {
	ctx, cancel := context.WithTimeout(ctx, indexTimeout)
	defer cancel()
	return fail("indexes of "+resource, views.ApplyIndexes(ctx, m.pool, m.layout, resource, d))
}

// Misfit is a typed column with values that do not fit it.
type Misfit struct {
	Column string `json:"column"`
	Rows   int64  `json:"rows"`
	ID     string `json:"id"` // of one of them
}

const readMisfits = `select name, count(*), min(id collate "C") from {data}."{resource}_misfits" group by name order by name`

// misfitsTimeout bounds the look for misfits, which reads the whole table.
const misfitsTimeout = 3 * time.Second

// Misfits counts the live rows whose values do not fit a typed column. On a large
// table it may not be done in time: known is false then, and nothing is wrong.
func (m *Mirror) Misfits(ctx context.Context, resource string) (all []Misfit, known bool, err error) {
	known, err = m.look(ctx, "misfits of "+resource, resource, func(ctx context.Context) error {
		sql := strings.ReplaceAll(m.layout.Render(readMisfits), "{resource}", resource)
		rows, err := m.pool.Query(ctx, sql)
		if err == nil {
			all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Misfit])
		}
		return err
	})
	return all, known, err
}

// Unfilled names the typed columns whose paths lead to nothing in any live record.
// As with Misfits, known may be false on a large table.
func (m *Mirror) Unfilled(ctx context.Context, resource string, d views.Definition) (columns []string, known bool, err error) {
	known, err = m.look(ctx, "unfilled columns of "+resource, resource, func(ctx context.Context) error {
		columns, err = views.Unfilled(ctx, m.pool, m.layout, resource, d)
		return err
	})
	return columns, known, err
}

// Idle names the masked paths that hide nothing: no live record has anything there.
// As with Misfits, known may be false on a large table.
func (m *Mirror) Idle(ctx context.Context, resource string, d views.Definition) (paths []string, known bool, err error) {
	known, err = m.look(ctx, "masks of "+resource, resource, func(ctx context.Context) error {
		paths, err = views.Idle(ctx, m.pool, m.layout, resource, d)
		return err
	})
	return paths, known, err
}

// look does f, which reads a whole table, for a short time; known tells whether
// that was enough.
func (m *Mirror) look(ctx context.Context, op, resource string, f func(context.Context) error) (known bool, err error) {
	if err := checkResources(op, []string{resource}); err != nil {
		return false, err
	}
	short, cancel := context.WithTimeout(ctx, misfitsTimeout)
	defer cancel()
	err = f(short)
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		return false, nil
	}
	return err == nil, fail(op, err)
}

// What a view calls is called with the reader's own rights, which a database may
// have taken from everybody.
const grantFunctions = `
grant usage on schema {data} to {role};
grant execute on all functions in schema {data} to {role};
alter default privileges in schema {data} grant execute on functions to {role};`

const grantReader = grantFunctions + `
grant select on all tables in schema {data} to {role};
alter default privileges in schema {data} grant select on tables to {role}`

const grantMaskedReader = grantFunctions + `
revoke all on all tables in schema {data} from {role};
alter default privileges in schema {data} revoke select on tables from {role};
grant select on {data}.freshness to {role}`

// What a masked reader can read beside the masked views, and what grantMasked gives.
const readUnmasked = `
select c.relname from pg_catalog.pg_class c join pg_catalog.pg_namespace s on s.oid = c.relnamespace
where s.nspname = $1::text and c.relkind in ('r', 'p', 'v', 'm') and c.relname <> 'freshness' and c.relname not like '%\_masked'
  and exists (select from pg_catalog.pg_attribute a
              where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
                and a.attname not in ('id', 'modify_time', 'deleted_at', 'synced_at', 'change_seq')
                and pg_catalog.has_column_privilege($2::name, c.oid, a.attnum, 'select'))
order by 1 limit 5`

// The table's own columns hold nothing of the record but its id. Who follows
// change_seq needs them: the masked view has no tombstones.
const grantMasked = `;
grant select on {data}."{resource}_masked" to {role};
grant select (id, modify_time, deleted_at, synced_at, change_seq) on {data}."{resource}" to {role}`

// GrantReader lets a role read all tables and views of the readers' schema, those
// to come as well; or, masked, freshness, the masked views, and what else it takes
// to follow changes (ids, times, change_seq), and takes from it what it had of the
// others. The role must exist. Views that are made later by somebody else are not in
// it. KindConfig: a role that is to be masked reads the rest by another role or as
// everybody; nothing was changed.
func (m *Mirror) GrantReader(ctx context.Context, role string, masked bool, resources []string) error {
	op := "grant to " + role
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if err := checkResources(op, resources); err != nil {
		return err
	}
	sql := grantReader
	if masked {
		sql = grantMaskedReader
		for _, r := range resources {
			sql += strings.ReplaceAll(grantMasked, "{resource}", r)
		}
	}
	sql = strings.ReplaceAll(m.layout.Render(sql), "{role}", pgx.Identifier{role}.Sanitize())
	return fail(op, m.transaction(ctx, opTimeout, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "begin; "+sql); err != nil || !masked {
			return err
		}
		return m.onlyMasked(ctx, conn, op, role)
	}))
}

func (m *Mirror) onlyMasked(ctx context.Context, conn *pgx.Conn, op, role string) error {
	rows, err := conn.Query(ctx, readUnmasked, m.layout.Schema(), role)
	if err != nil {
		return err
	}
	seen, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(seen) == 0 {
		return err
	}
	return &Error{
		Kind: KindConfig, Op: op, Err: errUnmasked,
		Message: fmt.Sprintf("%s would still read %s", role, strings.Join(seen, ", ")),
		Hint:    "it is a superuser, or has the right from another role or from PUBLIC: take that away, or use another role",
	}
}

var errUnmasked = errors.New("the role reads what is not masked")

const readSample = `
select record from {table} where deleted_at is null order by change_seq desc limit $1::bigint`

// Suggest proposes typed columns for what the resource's newest live records have,
// and for what is declared of them. KindSchema: there is no table yet.
func (m *Mirror) Suggest(ctx context.Context, resource string, records int, declared []views.Column) ([]views.Suggestion, error) {
	op := "suggest columns of " + resource
	if err := checkResources(op, []string{resource}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	rows, err := m.pool.Query(ctx, m.layout.RenderResource(readSample, resource), records)
	if err != nil {
		return nil, fail(op, err)
	}
	sample, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (raw json.RawMessage, err error) {
		err = row.Scan((*[]byte)(&raw))
		return raw, err
	})
	if err != nil {
		return nil, fail(op, err)
	}
	return views.Suggest(sample, declared), nil
}
