package mirror

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
)

// weighing is a pass set against the mirror, within a transaction that holds
// both still. What it found row by row is in pg_temp.difference.
type weighing struct {
	pass       Pass // as it is stored
	difference Difference
	buried     int64 // of the inserted: tombstones
	known      int64 // rows of the mirror now, deleted ones too
	staged     int64 // differences that come from staging
	repeated   int64 // staged rows that a later one of the same id replaced
	spared     int64 // ids of refused records: what the mirror has of them stays
}

// mergeSettings are for one transaction: it bounds itself by mergeTimeout, and
// its joins should not spill more than they must. Names that this server does
// not have are left out; more memory than this is not taken away.
const mergeSettings = `
select count(pg_catalog.set_config(w.name, w.value, true))
from (values ('lock_timeout', '10s'), ('statement_timeout', '30min'), ('transaction_timeout', '0'),
             ('idle_in_transaction_session_timeout', '0'), ('jit', 'off'), ('work_mem', '64MB')) as w (name, value)
join pg_catalog.pg_settings s on s.name = w.name
where w.name <> 'work_mem' or s.setting::bigint < 65536`

const lockState = `select change_seq from {sync}.state where resource = $1::text and epoch = $2::bigint for update`

// countStaging counts rows, different ids and spared ids in one scan. Hashes of
// ids are enough to know that no id came twice; when two collide an exact
// statement finds nothing to remove.
const countStaging = `
select coalesce(sum(g.n), 0)::bigint, count(*), coalesce(sum(g.spared), 0)::bigint
from (select count(*) as n, count(*) filter (where content_hash is null) as spared
      from {staging} where not explains group by pg_catalog.hashtextextended(id, 0)) g`

const removeRepeated = `
delete from {staging} s
using (select id, max(seq) as seq from {staging} where not explains group by id having count(*) > 1) last
where s.id = last.id and s.seq < last.seq and not s.explains`

// findDifference joins the pass and the mirror once, in full. Rows that are equal
// in content hash, fingerprint and in being deleted leave no trace, and neither do
// tombstones that were purged. n numbers what will be written: upserts in the
// order of ids, then absences.
const findDifference = `
create temp table difference on commit drop as
select row_number() over (order by d.fate = 'absent', d.id collate "C") as n, d.*, false as explained
from (
    select s.place, coalesce(s.id, t.id) as id, s.tombstone, t.deleted_at,
           case when s.id is null then 'absent'
                when t.id is null then 'inserted'
                when s.tombstone and t.deleted_at is null then 'tombstoned'
                when not s.tombstone and t.deleted_at is not null then 'revived'
                else 'updated' end as fate
    from (select ctid as place, id, tombstone, coalesce(deleted_at, modify_time) as deleted_at, content_hash, {fingerprint} as fingerprint
          from {staging} where not explains) s
    full join (select id, deleted_at, content_hash, {fingerprint} as fingerprint from {table}) t on t.id = s.id
    left join {sync}.purges purged on purged.resource = {resource}
    where case when s.id is null then t.deleted_at is null
               when s.content_hash is null then false -- spared: what the mirror has of it stays
               when t.id is null then not s.tombstone or coalesce(s.deleted_at, '-infinity') >= coalesce(purged.before, '-infinity')
               else s.content_hash <> t.content_hash or s.fingerprint is distinct from t.fingerprint
                    or s.tombstone <> (t.deleted_at is not null) end
) d`

// The fingerprint shows a row that somebody changed by hand, which its content
// hash does not. It costs as much as the rest of the comparison.
const (
	noFingerprint   = `null::bigint`
	fullFingerprint = `
pg_catalog.hashtextextended(coalesce(extract(epoch from modify_time)::text, '') || coalesce('/' || version, ''),
                            pg_catalog.jsonb_hash_extended(record, 0))`
)

// reasonExpired is the remote's word (contract §5). It doubts our position and not
// the mirror; every other reason to read everything again is a doubt about rows.
const reasonExpired = "SYNC_CURSOR_EXPIRED"

func (p Pass) fingerprint() string {
	if p.Purpose == PurposeRebuild && p.Reason == reasonExpired {
		return noFingerprint
	}
	return fullFingerprint
}

const explainDifference = `
update pg_temp.difference d set explained = true
where exists (select from {staging} e where e.explains and e.id = d.id)`

const tallyDifference = `
select d.*, t.*
from (select count(*) filter (where fate = 'inserted' and not explained),
             count(*) filter (where fate = 'updated' and not explained),
             count(*) filter (where fate = 'revived' and not explained),
             count(*) filter (where fate = 'tombstoned' and not explained),
             count(*) filter (where fate = 'absent' and not explained),
             count(*) filter (where explained),
             count(*) filter (where fate = 'inserted' and tombstone),
             count(*) filter (where place is not null)
      from pg_temp.difference) d,
     (select count(*), count(*) filter (where deleted_at is null) from {table}) t`

// Compare says what a merge of the pass would do, and does nothing: it runs in a
// transaction that is rolled back. For a verification, differences that Explain
// has explained are not counted.
//
// KindFenced: the mirror or the pass moved on. ErrStagingLost: begin again.
func (m *Mirror) Compare(ctx context.Context, before Checkpoint, p Pass) (Difference, error) {
	op := "compare " + before.Resource
	var d Difference
	err := m.transaction(ctx, mergeTimeout, func(ctx context.Context, conn *pgx.Conn) error {
		w, err := m.weigh(ctx, conn, op, before, p)
		if err != nil {
			return err
		}
		if err := m.details(ctx, conn, &w); err != nil {
			return err
		}
		d = w.difference
		_, err = conn.Exec(ctx, "rollback")
		return err
	})
	return d, m.promised(ctx, op, before.Resource, err)
}

// weigh begins a transaction, locks state and pass, and finds the differences.
func (m *Mirror) weigh(ctx context.Context, conn *pgx.Conn, op string, before Checkpoint, p Pass) (weighing, error) {
	var w weighing
	if err := checkResources(op, []string{before.Resource}); err != nil {
		return w, err
	}
	if err := m.hold(ctx, conn, op, before, p, &w); err != nil {
		return w, err
	}
	if err := m.count(ctx, conn, op, &w); err != nil {
		return w, err
	}
	prepare := `analyze {staging} (seq, id); ` + findDifference + `; analyze pg_temp.difference`
	if w.pass.Purpose == PurposeVerify {
		prepare += `; ` + explainDifference
	}
	names := strings.NewReplacer("{fingerprint}", w.pass.fingerprint(), "{resource}", "'"+before.Resource+"'")
	if _, err := conn.Exec(ctx, m.layout.RenderResource(names.Replace(prepare), before.Resource)); err != nil {
		return w, err
	}
	d := &w.difference
	err := conn.QueryRow(ctx, m.layout.RenderResource(tallyDifference, before.Resource)).Scan(
		&d.Inserted, &d.Updated, &d.Revived, &d.Tombstoned, &d.Absent, &d.Explained, &w.buried, &w.staged, &w.known, &d.Live)
	d.Unchanged = w.pass.Rows - w.repeated - w.staged - w.spared
	return w, err
}

// hold locks the state row and then the pass, in the order of every writer, and
// proves that both stand where the caller believes.
func (m *Mirror) hold(ctx context.Context, conn *pgx.Conn, op string, before Checkpoint, p Pass, w *weighing) error {
	if !p.Complete {
		return &Error{Kind: KindInternal, Op: op, Message: "the pass is not complete"}
	}
	if _, err := conn.Exec(ctx, "begin isolation level read committed"); err != nil {
		return err
	}
	if err := conn.QueryRow(ctx, mergeSettings).Scan(nil); err != nil {
		return err
	}
	var changeSeq int64
	err := conn.QueryRow(ctx, m.layout.Render(lockState), before.Resource, before.Epoch).Scan(&changeSeq)
	if errors.Is(err, pgx.ErrNoRows) {
		return fenced(op)
	}
	if err != nil {
		return err
	}
	w.pass, err = scanPass(conn.QueryRow(ctx, m.layout.Render(readPass+` for update`), before.Resource), before.Resource)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && w.pass.At.Epoch != p.At.Epoch {
		return passFenced(op)
	}
	if err == nil && w.pass.Purpose != PurposeVerify && changeSeq != w.pass.BaseSeq {
		return &Error{Kind: KindFenced, Op: op, Message: ErrMoved.Error(), Hint: "begin a new rebuild or dry run", Err: ErrMoved}
	}
	return err
}

// count proves that staging holds what the pass promises, and leaves the last row of each id.
func (m *Mirror) count(ctx context.Context, conn *pgx.Conn, op string, w *weighing) error {
	resource := w.pass.At.Resource
	counting := m.layout.RenderResource(countStaging, resource)
	var rows, ids int64
	if err := conn.QueryRow(ctx, counting).Scan(&rows, &ids, &w.spared); err != nil {
		return err
	}
	if rows != w.pass.Rows {
		return stagingLost(op)
	}
	if ids == rows {
		return nil
	}
	tag, err := conn.Exec(ctx, m.layout.RenderResource(removeRepeated, resource))
	w.repeated = tag.RowsAffected()
	if err != nil || w.spared == 0 {
		return err
	}
	return conn.QueryRow(ctx, counting).Scan(nil, nil, &w.spared) // a record may have taken a spared id's place
}

const sampleDifference = `
select r.fate, r.id
from (select fate, id, row_number() over (partition by fate order by id collate "C") as k
      from pg_temp.difference where not explained) r
where r.k <= 10 order by r.fate, r.k`

// differingFields compares texts: two numbers may be equal and not the same.
const differingFields = `
select f.name, count(*)
from (select s.record as staged, t.record as mirrored
      from (select place, id from pg_temp.difference where fate = 'updated' and not explained order by n limit 10000) d
      join {staging} s on s.ctid = d.place
      join {table} t on t.id = d.id) r
cross join lateral (
    select coalesce(a.key, b.key) as name
    from pg_catalog.jsonb_each_text(r.staged) a
    full join pg_catalog.jsonb_each_text(r.mirrored) b on b.key = a.key
    where a.key is null or b.key is null or a.value is distinct from b.value) f
group by f.name order by count(*) desc, f.name limit 100`

// details adds samples and fields, for people.
func (m *Mirror) details(ctx context.Context, conn *pgx.Conn, w *weighing) error {
	d := &w.difference
	d.Samples, d.Fields = map[string][]string{}, map[string]int64{}
	rows, err := conn.Query(ctx, sampleDifference)
	if err != nil {
		return err
	}
	var fate, id string
	if _, err = pgx.ForEachRow(rows, []any{&fate, &id}, func() error {
		d.Samples[fate] = append(d.Samples[fate], id)
		return nil
	}); err != nil || d.Updated == 0 {
		return err
	}
	if rows, err = conn.Query(ctx, m.layout.RenderResource(differingFields, w.pass.At.Resource)); err != nil {
		return err
	}
	var name string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&name, &n}, func() error {
		d.Fields[name] = n
		return nil
	})
	return err
}
