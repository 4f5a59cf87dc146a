package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// A resource whose mirror was never begun has no line in the view.
const readFreshness = `
select r.name, coalesce(f.phase, 'first'), f.data_cutoff_at, f.last_success_at, greatest(extract(epoch from f.age), 0)::bigint,
	coalesce(f.live_rows, 0), coalesce(f.deleted_rows, 0), coalesce(f.held, false)
from unnest($1::text[]) with ordinality as r (name, n) left join {data}.freshness f on f.resource = r.name
order by r.n`

// Freshness tells as of when each resource's data is, in the order of the names.
func (s *Store) Freshness(ctx context.Context, resources []string) (all []agent.Freshness, err error) {
	for _, r := range resources {
		if _, f := s.reading(r); f != nil {
			return nil, f
		}
	}
	err = s.read(ctx, "read freshness", statement{readFreshness, []any{resources}, func(rows pgx.Rows) (err error) {
		all, err = pgx.CollectRows(rows, freshness)
		return err
	}})
	return all, err
}

func freshness(row pgx.CollectableRow) (f agent.Freshness, err error) {
	var age *int64
	err = row.Scan(&f.Resource, &f.Phase, &f.DataCutoff, &f.LastSuccess, &age, &f.LiveRows, &f.DeletedRows, &f.Held)
	f.DataCutoff, f.LastSuccess = utc(f.DataCutoff), utc(f.LastSuccess)
	if f.DataCutoff != nil || f.LastSuccess != nil { // greatest of nothing and 0 is 0
		f.AgeSeconds = age
	}
	return f, err
}

// Record reads one row of the view; ok is false when there is no live one.
func (s *Store) Record(ctx context.Context, resource, id string) (r agent.Record, ok bool, err error) {
	reading, f := s.reading(resource)
	if f != nil {
		return r, false, f
	}
	if !storable(id) {
		return r, false, nil
	}
	all, err := s.records(ctx, "read a record of "+resource, reading.record, id)
	if err != nil || len(all) == 0 {
		return r, false, err
	}
	return all[0], true, nil
}

// Changes reads what has a change_seq above after, in its order. A tombstone has
// neither record nor columns: what was deleted is told, and not what it was.
func (s *Store) Changes(ctx context.Context, resource string, after int64, limit int) ([]agent.Record, error) {
	reading, f := s.reading(resource)
	if f != nil {
		return nil, f
	}
	return s.records(ctx, "read changes of "+resource, reading.changes, after, limit)
}

// maxKept bounds what is kept of an answer's records, in bytes. It is more than the
// catalogue gives in one answer, so that it always sees that there is more.
const maxKept = 1 << 20

// records runs a statement whose columns are those of selectSQL. A record may have
// megabytes, and two hundred of them are asked for: what is behind the bound comes,
// and is let go row by row. Two rows are kept in any case.
func (s *Store) records(ctx context.Context, op, sql string, args ...any) (all []agent.Record, err error) {
	err = s.read(ctx, op, statement{sql, args, func(rows pgx.Rows) (err error) {
		all, err = bounded(rows)
		return err
	}})
	return all, err
}

func bounded(rows pgx.Rows) (all []agent.Record, err error) {
	defer rows.Close() // reads to the end
	for kept := 0; rows.Next(); {
		if len(all) > 1 && kept > maxKept {
			return all, nil // an error behind it changes nothing of these
		}
		r, err := record(rows)
		if err != nil {
			return nil, err
		}
		kept += len(r.Record) + len(r.Columns)
		all = append(all, r)
	}
	return all, rows.Err()
}

func record(row pgx.CollectableRow) (r agent.Record, err error) {
	var columns, raw *string
	var synced time.Time
	err = row.Scan(&r.ID, &r.ChangeSeq, &r.ModifyTime, &r.DeletedAt, &synced, &columns, &raw)
	r.ModifyTime, r.DeletedAt, r.SyncedAt = utc(r.ModifyTime), utc(r.DeletedAt), synced.UTC()
	r.Columns, r.Record = text(columns), text(raw)
	return r, err
}

func text(s *string) json.RawMessage {
	if s == nil {
		return nil
	}
	return json.RawMessage(*s)
}

// reading finds a resource of the options; no other name gets into SQL.
func (s *Store) reading(resource string) (reading, *agent.Failure) {
	r, ok := s.readings[resource]
	if !ok {
		return r, &agent.Failure{Class: agent.Invalid, Code: "unknown_resource", Field: "resource", Message: "there is no such resource in the mirror"}
	}
	return r, nil
}
