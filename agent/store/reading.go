package store

import (
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
)

// reading is how one resource is read: its statements with all names in them.
type reading struct {
	record, search, changes string            // search ends within its conditions
	key                     string            // the id that search goes by
	types                   map[string]string // of the typed columns
}

// Times are as they are in the table; texts keep the digits of every number.
const (
	selectSQL = `
select v.id, v.change_seq, v.modify_time, v.deleted_at, v.synced_at, {columns}, v.record::text`
	recordSQL = selectSQL + `
from {view} v where v.id = $1::text`
	searchSQL = selectSQL + `
from {view} v where true`

	changesSQL = `
select v.id, v.change_seq, v.modify_time, v.deleted_at, v.synced_at,
	case when v.deleted_at is null then {columns} end, case when v.deleted_at is null then v.record::text end
from {view} v
where v.change_seq > $1::bigint order by v.change_seq limit $2::integer`

	// The masked view is a barrier to the planner: ordered or joined, it would mask the
	// whole table first. "offset 0" keeps each row's look-up by id by itself, in the
	// order of the table's own indexes. It has no tombstones either.
	maskedSearchSQL = selectSQL + `
from {table} t cross join lateral (select x.* from {view} x where x.id = t.id offset 0) v where t.deleted_at is null`
	maskedChangesSQL = `
select t.id, t.change_seq, t.modify_time, t.deleted_at, t.synced_at, m.columns, m.record
from (
	select id, change_seq, modify_time, deleted_at, synced_at from {table} where change_seq > $1::bigint order by change_seq limit $2::integer
) t
left join lateral (select {columns} as columns, v.record::text as record from {view} v where v.id = t.id offset 0) m on t.deleted_at is null
order by t.change_seq`
)

func newReading(layout migrations.Layout, r agent.Resource, masked bool) reading {
	names := make([]string, len(r.Columns))
	types := map[string]string{}
	for i, c := range r.Columns {
		names[i] = "v." + quote(c.Name)
		types[c.Name] = c.Type
	}
	columns := `'{}'::text`
	if len(names) > 0 {
		columns = "(select pg_catalog.row_to_json(c)::text from (select " + strings.Join(names, ", ") + ") c)"
	}
	rows, all := "_live", "_all"
	search, key, changes := searchSQL, "v.id", changesSQL
	if masked {
		rows, all = "_masked", "_masked"
		search, key, changes = maskedSearchSQL, "t.id", maskedChangesSQL
	}
	render := func(sql, view string) string {
		sql = strings.NewReplacer("{columns}", columns, "{view}", "{data}."+quote(r.Name+view)).Replace(sql)
		return layout.RenderResource(sql, r.Name)
	}
	return reading{
		record: render(recordSQL, rows), search: render(search, rows), changes: render(changes, all),
		key: key, types: types,
	}
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
