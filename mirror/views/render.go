package views

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
)

// view is one view of a resource, with its SQL not yet rendered by a layout.
type view struct {
	suffix string // of its name
	query  string
	about  string
}

// views gives the views of a resource in the order in which they are made.
func (d Definition) views() ([]view, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	columns := strings.Join(base(), ", ")
	for _, c := range d.Columns {
		columns += ",\n       " + d.expression(c, "record") + " as " + ident(c.Name)
	}
	all := []view{
		{"live", "select " + columns + "\nfrom {table}\nwhere deleted_at is null", "What is not deleted at the source."},
		{"all", "select " + strings.Replace(columns, "deleted_at", "deleted_at, delete_reason", 1) + "\nfrom {table}", "With what is deleted at the source."},
		{"misfits", d.misfits(), "Values that do not fit their typed column, which is null there."},
	}
	if len(d.Masked) > 0 {
		all = append(all, view{"masked", d.masked(), "What is not deleted, with personal data hidden."})
	}
	return all, nil
}

// expression is a column's value out of the record, or out of what stands for it.
// What an index could not take is null in an indexed column.
func (d Definition) expression(c Column, record string) string {
	value := d.value(c, record)
	if c.Index && slices.Contains([]Type{Text, Numeric, Texts}, c.Type) {
		return "{data}._short(" + value + ")"
	}
	return value
}

func (d Definition) value(c Column, record string) string {
	path, _ := ParsePath(c.Path) // checked
	v := record + " #> " + path.array()
	switch c.Type {
	case Integer:
		return "{data}._integer(" + v + ")"
	case Numeric:
		return "{data}._numeric(" + v + ")"
	case Boolean:
		return "{data}._boolean(" + v + ")"
	case Date:
		return "{data}._date(" + v + ")"
	case Timestamptz:
		return "{data}._time(" + v + ", " + literal(d.Zone) + ")"
	case Texts:
		return "{data}._texts(" + v + ")"
	case JSON:
		return "nullif(" + v + ", 'null')"
	default:
		return "{data}._text(" + v + ")"
	}
}

// misfits has a line for each value that is there and is null in its column.
func (d Definition) misfits() string {
	parts := []string{"select null::text as id, null::text as name, null::text as path, null::text as type, null::jsonb as value where false"}
	for _, c := range d.Columns {
		if c.Type == JSON {
			continue // everything fits
		}
		path, _ := ParsePath(c.Path) // checked
		v := "record #> " + path.array()
		parts = append(parts, fmt.Sprintf("select id, %s, %s, %s, %s\nfrom {table}\nwhere deleted_at is null and %s <> 'null' and %s is null",
			literal(c.Name), literal(c.Path), literal(string(c.Type)), v, v, d.expression(c, "record")))
	}
	return strings.Join(parts, "\nunion all\n")
}

// masked hides the paths in the record itself, and so in every column that leads
// there. Each path is hidden in what the one before it left. Without "offset 0"
// the planner would do all of it again for each column.
func (d Definition) masked() string {
	from, record := "{table} t", "t.record"
	for i, m := range d.Masked {
		path, _ := ParsePath(m) // checked
		a, next := path.array(), fmt.Sprintf("m%d", i)
		from += fmt.Sprintf("\ncross join lateral (select case when %[1]s #> %[2]s is null then %[1]s\n"+
			"    else pg_catalog.jsonb_set(%[1]s, %[2]s, {data}._mask(%[1]s #> %[2]s), false) end as record offset 0) %[3]s", record, a, next)
		record = next + ".record"
	}
	columns := "t.id, " + record + ", t.modify_time, t.version, t.snapshot_id, t.synced_at, t.change_seq, t.deleted_at"
	for _, c := range d.Columns {
		columns += ",\n       " + d.expression(c, record) + " as " + ident(c.Name)
	}
	return "select " + columns + "\nfrom " + from + "\nwhere t.deleted_at is null"
}

// name is a view's full name.
func (v view) name(resource string) string { return `{data}.` + ident(resource+"_"+v.suffix) }

// create gives the statements that make the view and say what it is.
func (v view) create(resource string, d Definition) string {
	options := ""
	if v.suffix == "masked" {
		options = " with (security_barrier)"
	}
	sql := "create or replace view " + v.name(resource) + options + " as\n" + v.query + ";\n" +
		"comment on view " + v.name(resource) + " is " + literal(v.about) + ";\n"
	if v.suffix == "misfits" {
		return sql
	}
	for _, c := range d.Columns {
		about := "From " + c.Path + " of the record; null where that is no " + string(c.Type) + "."
		if c.Ref != "" {
			about += " Leads to " + c.Ref + "."
		}
		sql += "comment on column " + v.name(resource) + "." + ident(c.Name) + " is " + literal(about) + ";\n"
	}
	return sql
}

func ident(name string) string { return `"` + name + `"` } // names are checked: no quote is in them

// render puts the names of a layout into SQL of this package.
func render(l migrations.Layout, sql, resource string) string {
	return l.RenderResource(sql, resource)
}
