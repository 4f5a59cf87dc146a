package views

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
)

// DependentError means that something of somebody else's stands on a view of ours
// that would have to be dropped. Nothing was changed.
type DependentError struct {
	View       string   // of ours
	Dependents []string // "schema.view", or what else it is, of theirs
}

func (e *DependentError) Error() string {
	return fmt.Sprintf("views: %s must be made anew, and %s depends on it", e.View, strings.Join(e.Dependents, ", "))
}

// Beginner is where a transaction can begin.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	migrations.Querier
}

const readDefinition = `select definition from {sync}.views where resource = $1::text`

// Pending reports whether the resource's views were made from another definition.
func Pending(ctx context.Context, db migrations.Querier, l migrations.Layout, resource string, d Definition) (bool, error) {
	want, err := d.text()
	if err != nil {
		return false, err
	}
	var same bool
	err = db.QueryRow(ctx, l.Render(`select coalesce((`+readDefinition+`) = $2::jsonb, false)`), resource, want).Scan(&same)
	if err != nil {
		return false, fmt.Errorf("views: read definition of %s: %w", resource, err)
	}
	return !same, nil
}

// Apply makes the resource's views from the definition, in one transaction, unless
// they are already. Rights on them stay, readers in the middle of a query too.
// *DependentError: a view would have to be dropped and may not be. Indexes are
// another matter: see ApplyIndexes.
func Apply(ctx context.Context, db Beginner, l migrations.Layout, resource string, d Definition) (changed bool, err error) {
	if err := migrations.CheckResource(resource); err != nil {
		return false, err
	}
	if pending, err := Pending(ctx, db, l, resource, d); err != nil || !pending {
		return false, err
	}
	all, err := d.views()
	if err != nil {
		return false, err
	}
	tx, err := db.Begin(ctx)
	if err != nil {
		return false, fmt.Errorf("views: begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing is left of it after a commit
	a := applying{tx: tx, layout: l, resource: resource, definition: d}
	if err := a.all(ctx, all); err != nil {
		return false, err
	}
	if err := tx.Commit(ctx); err != nil {
		return false, fmt.Errorf("views: commit: %w", err)
	}
	return true, nil
}

type applying struct {
	tx         pgx.Tx
	layout     migrations.Layout
	resource   string
	definition Definition
}

const noteDefinition = `
insert into {sync}.views (resource, definition) values ($1::text, $2::jsonb)
on conflict (resource) do update set definition = excluded.definition, applied_at = now()`

// all makes the views and notes from what. Two processes take turns at the lock.
func (a applying) all(ctx context.Context, all []view) error {
	text, err := a.definition.text()
	if err != nil {
		return err
	}
	const first = `select pg_catalog.set_config('lock_timeout', '10s', true)`
	for _, sql := range []string{first, a.layout.Render(`lock table {sync}.views in share row exclusive mode`)} {
		if _, err := a.tx.Exec(ctx, sql); err != nil {
			return fmt.Errorf("views: lock: %w", err)
		}
	}
	made := map[string]bool{}
	for _, v := range all {
		made[v.suffix] = true
		if err := a.one(ctx, v); err != nil {
			return err
		}
	}
	if !made["masked"] {
		if err := a.drop(ctx, view{suffix: "masked"}); err != nil {
			return err
		}
	}
	if _, err := a.tx.Exec(ctx, a.layout.Render(noteDefinition), a.resource, text); err != nil {
		return fmt.Errorf("views: note definition of %s: %w", a.resource, err)
	}
	return nil
}

// one replaces the view where that keeps it, for then nothing that depends on it
// is touched, and makes it anew otherwise.
func (a applying) one(ctx context.Context, v view) error {
	create := render(a.layout, v.create(a.resource, a.definition), a.resource)
	err := a.attempt(ctx, create)
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "42P16" && pg.Code != "42P13" { // invalid_table_definition: columns were dropped or changed
		return a.wrap("create", v, err)
	}
	grants, err := a.grants(ctx, v)
	if err != nil {
		return a.wrap("read grants of", v, err)
	}
	if err := a.drop(ctx, v); err != nil {
		return err
	}
	if _, err = a.tx.Exec(ctx, create); err != nil {
		return a.wrap("create", v, err)
	}
	name := render(a.layout, v.name(a.resource), a.resource)
	if _, err = a.tx.Exec(ctx, strings.ReplaceAll(revokeDefaults, "{view}", name)); err == nil {
		_, err = a.tx.Exec(ctx, strings.Join(grants, "\n"))
	}
	return a.wrap("give back the rights on", v, err)
}

// attempt runs statements that may fail without taking the transaction along.
func (a applying) attempt(ctx context.Context, sql string) error {
	inner, err := a.tx.Begin(ctx) // a savepoint
	if err != nil {
		return err
	}
	if _, err := inner.Exec(ctx, sql); err != nil {
		return errors.Join(err, inner.Rollback(ctx))
	}
	return inner.Commit(ctx)
}

// A view depends by its rule. A function does by its body or by the type of the
// view's rows, and so does a table's column.
const readDependents = `
select distinct coalesce(s.nspname || '.' || c.relname, pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid))
from pg_catalog.pg_class v
join pg_catalog.pg_depend d on d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid = v.oid
    or d.refclassid = 'pg_catalog.pg_type'::regclass and d.refobjid in (v.reltype, (select t.typarray from pg_catalog.pg_type t where t.oid = v.reltype))
left join pg_catalog.pg_rewrite r on r.oid = d.objid and d.classid = 'pg_catalog.pg_rewrite'::regclass
left join pg_catalog.pg_class c on c.oid = coalesce(r.ev_class, case when d.classid = 'pg_catalog.pg_class'::regclass then d.objid end)
left join pg_catalog.pg_namespace s on s.oid = c.relnamespace
where v.oid = to_regclass($1::text) and d.deptype = 'n' and c.oid is distinct from v.oid
order by 1 limit 20`

func (a applying) drop(ctx context.Context, v view) error {
	name := render(a.layout, v.name(a.resource), a.resource)
	err := a.attempt(ctx, "drop view if exists "+name)
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "2BP01" {
		return a.wrap("drop", v, err)
	}
	rows, err := a.tx.Query(ctx, readDependents, name)
	if err != nil {
		return a.wrap("read what depends on", v, err)
	}
	dependents, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return a.wrap("read what depends on", v, err)
	}
	return &DependentError{View: a.layout.Schema() + "." + a.resource + "_" + v.suffix, Dependents: dependents}
}

// The owner's own rights come back with the view.
const readGrants = `
select 'grant ' || g.privilege_type || ' on ' || $1::text || ' to '
       || case g.grantee when 0 then 'public' else pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(g.grantee)) end
       || case when g.is_grantable then ' with grant option' else '' end || ';'
from pg_catalog.pg_class c cross join lateral pg_catalog.aclexplode(c.relacl) g
where c.oid = to_regclass($1::text) and g.grantee <> c.relowner
union all
select 'grant ' || g.privilege_type || ' (' || pg_catalog.quote_ident(x.attname) || ') on ' || $1::text || ' to '
       || case g.grantee when 0 then 'public' else pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(g.grantee)) end
       || case when g.is_grantable then ' with grant option' else '' end || ';'
from pg_catalog.pg_attribute x cross join lateral pg_catalog.aclexplode(x.attacl) g
where x.attrelid = to_regclass($1::text) and x.attname = any ($2::text[])`

// A view that is made comes with the default privileges of its schema. One that is
// made anew has the rights that it had, and no others: somebody may have taken one
// of these away.
const revokeDefaults = `
do $do$
declare
    g record;
begin
    for g in select case x.grantee when 0 then 'public' else pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(x.grantee)) end as who
             from pg_catalog.pg_class c cross join lateral pg_catalog.aclexplode(c.relacl) x where c.oid = '{view}'::regclass and x.grantee <> c.relowner loop
        execute 'revoke all on {view} from ' || g.who;
    end loop;
end
$do$`

// grants are the statements that give back who had which right on the view, also
// on single columns that it still has.
func (a applying) grants(ctx context.Context, v view) ([]string, error) {
	kept := base()
	for _, c := range a.definition.Columns {
		kept = append(kept, c.Name)
	}
	rows, err := a.tx.Query(ctx, readGrants, render(a.layout, v.name(a.resource), a.resource), kept)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func (a applying) wrap(what string, v view, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("views: %s %s_%s: %w", what, a.resource, v.suffix, err)
}

// text is the definition as it is stored. Its version tells when this package
// renders the same definition in another way.
func (d Definition) text() (string, error) {
	const version = 2 // values that are too long for an index
	text, err := json.Marshal(struct {
		Version int `json:"version"`
		Definition
	}{version, d})
	if err != nil {
		return "", fmt.Errorf("views: write definition: %w", err)
	}
	return string(text), nil
}
