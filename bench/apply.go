package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/bench/figures"
)

const groupApply = "pages into PostgreSQL, no remote"

// applyRows is how many rows the second group writes in a turn.
const applyRows = 40_000

// measureApply tells how near the mirror comes to what PostgreSQL can take, and
// how far it is ahead of the obvious way.
func measureApply(ctx context.Context, b *bench) error {
	rows := min(applyRows, b.rows)
	b.say("apply: %d rows", rows)
	old, changed := made(rows, 1), made(rows, 2)
	if err := b.bring(ctx, old, resources(1)); err != nil {
		return err
	}
	raw, err := b.dump(ctx)
	if err != nil {
		return err
	}
	if _, err := b.sql.Exec(ctx, "create table public.raw (like xiaoqu.contracts including all); create sequence public.raw_seq"); err != nil {
		return err
	}
	defer func() { _, _ = b.sql.Exec(ctx, "drop table public.raw; drop sequence public.raw_seq") }()
	var wal [3]int64
	ms, err := b.turns(ctx, b.rounds,
		contender{before: b.truncateRaw, do: func(ctx context.Context) error { return b.copyRaw(ctx, raw) }},
		contender{before: b.truncateRaw, do: func(ctx context.Context) error { return b.obvious(ctx, old) }},
		contender{before: b.empty, do: b.counting(&wal[0], func(ctx context.Context) error { return b.bring(ctx, old, resources(1)) })},
		contender{do: b.counting(&wal[1], func(ctx context.Context) error { return b.bring(ctx, changed, resources(1)) })},
		contender{do: b.counting(&wal[2], func(ctx context.Context) error { return b.bring(ctx, changed, resources(1)) })},
		contender{do: func(ctx context.Context) error { return b.obvious(ctx, changed) }},
		contender{do: func(ctx context.Context) error { return b.obvious(ctx, changed) }},
	)
	if err != nil {
		return err
	}
	copied, obviousNew, first := ms[0].wall, ms[1].wall, ms[2].wall
	update, same, obviousUpdate, obviousSame := ms[3].wall, ms[4].wall, ms[5].wall, ms[6].wall
	b.report.Add(
		figures.Of(groupApply, "first sync against one raw COPY of its rows", figures.Ratio, figures.Ratios(copied, first)...).Toward(figures.Higher, 0.5),
		figures.Of(groupApply, "new rows against one upsert a row", figures.Ratio, figures.Ratios(obviousNew, first)...).Toward(figures.Higher, 0),
		figures.Of(groupApply, "changed rows against one upsert a row", figures.Ratio, figures.Ratios(obviousUpdate, update)...).Toward(figures.Higher, 0),
		figures.Of(groupApply, "unchanged rows against one upsert a row", figures.Ratio, figures.Ratios(obviousSame, same)...).Toward(figures.Higher, 0),
		figures.Of(groupApply, "unchanged rows against changed ones", figures.Ratio, figures.Ratios(update, same)...).Toward(figures.Higher, 2),
		figures.Of(groupApply, "raw COPY", "rows/s", rates(rows, copied)...),
		figures.Of(groupApply, "new rows", "rows/s", rates(rows, first)...),
		figures.Of(groupApply, "changed rows", "rows/s", rates(rows, update)...),
		figures.Of(groupApply, "unchanged rows", "rows/s", rates(rows, same)...),
	)
	for i, what := range []string{"raw COPY", "one upsert a row", "new", "changed", "unchanged"} {
		b.report.Add(
			figures.Of(groupApply, "CPU of PostgreSQL, "+what, "µs/row", each(ms[i].server, 1e6/float64(rows))...),
			figures.Of(groupApply, "CPU of the worker, "+what, "µs/row", each(ms[i].worker, 1e6/float64(rows))...))
	}
	for i, what := range []string{"new", "changed", "unchanged"} {
		f := figures.Of(groupApply, "WAL a row, "+what, "B", float64(wal[i])/float64(rows))
		if what == "unchanged" {
			f = f.Toward(figures.Lower, 100)
		}
		b.report.Add(f)
	}
	return nil
}

// counting notes how much WAL the last turn wrote.
func (b *bench) counting(bytes *int64, do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		before, err := b.written(ctx)
		if err == nil {
			err = do(ctx)
		}
		after, afterErr := b.written(ctx)
		*bytes = after - before
		if err == nil {
			err = afterErr
		}
		return err
	}
}

func (b *bench) written(ctx context.Context) (bytes int64, err error) {
	err = b.sql.QueryRow(ctx, "select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint").Scan(&bytes)
	return bytes, err
}

func (b *bench) truncateRaw(ctx context.Context) error {
	_, err := b.sql.Exec(ctx, "truncate public.raw")
	return err
}

// dump is the readers' table as one binary COPY: encoding it again costs the raw
// COPY nothing.
func (b *bench) dump(ctx context.Context) ([]byte, error) {
	var out bytes.Buffer
	_, err := b.sql.PgConn().CopyTo(ctx, &out, "copy xiaoqu.contracts to stdout (format binary)")
	return out.Bytes(), err
}

func (b *bench) copyRaw(ctx context.Context, rows []byte) error {
	_, err := b.sql.PgConn().CopyFrom(ctx, bytes.NewReader(rows), "copy public.raw from stdin (format binary)")
	return err
}

// obvious is what one writes first: the records decoded, an upsert for each, the
// page's in one batch and one transaction, into the same table shape.
func (b *bench) obvious(ctx context.Context, pages *rendered) error {
	const upsert = `insert into public.raw (id, record, modify_time, version, synced_at, change_seq, content_hash)
		values ($1, $2, $3, $4, now(), nextval('public.raw_seq'), '')
		on conflict (id) do update set record = excluded.record, modify_time = excluded.modify_time, version = excluded.version,
			synced_at = now(), change_seq = excluded.change_seq`
	for n := range pages.count {
		batch := &pgx.Batch{}
		for _, raw := range pages.page(n) {
			var r struct {
				ID         json.Number
				ModifyTime time.Time   `json:"modify_time"`
				Version    json.Number `json:"version"`
			}
			if err := json.Unmarshal(raw, &r); err != nil {
				return fmt.Errorf("the obvious way: %w", err)
			}
			batch.Queue(upsert, r.ID.String(), []byte(raw), r.ModifyTime, r.Version.String())
		}
		err := pgx.BeginFunc(ctx, b.sql, func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() })
		if err != nil {
			return fmt.Errorf("the obvious way: %w", err)
		}
	}
	return nil
}
