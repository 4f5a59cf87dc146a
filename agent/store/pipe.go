package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

const (
	// opTimeout bounds one call here, the server's part of it and the way. A process
	// that is to stop makes at most two more.
	opTimeout = 4 * time.Second
	// writeTimeout and readTimeout bound one statement at the server, which would
	// otherwise work on for a client that has gone. What reads answers a person who
	// waits, within the catalogue's own limit.
	writeTimeout = "3500ms"
	readTimeout  = "2300ms"
)

const (
	// For one transaction. set_config needs no BEGIN, so that a failure needs no
	// ROLLBACK: Sync ends the transaction either way.
	settings       = `select pg_catalog.set_config('statement_timeout', $1::text, true)`
	readerSettings = `select pg_catalog.set_config('role', $2::text, true), pg_catalog.set_config('statement_timeout', $1::text, true),
		pg_catalog.set_config('transaction_read_only', 'on', true)`
	// For what may be lost together with the server, and is then only done again.
	loosely = `select pg_catalog.set_config('synchronous_commit', 'off', true)`

	plainSettings = `select pg_catalog.set_config('statement_timeout', $1::text, true), pg_catalog.set_config('transaction_read_only', 'on', true)`
)

// statement is one of a call's, with what takes its rows; nil where nobody needs them.
type statement struct {
	sql  string
	args []any
	rows func(pgx.Rows) error
}

// do sends the statements as one transaction in one round trip. Each sees what
// others committed before it began (READ COMMITTED), a later one more than an
// earlier.
func (s *Store) do(ctx context.Context, op string, all ...statement) error {
	head := statement{sql: settings, args: []any{writeTimeout}}
	return s.send(ctx, op, append([]statement{head}, all...))
}

// read sends one statement as the reader, to whom everything is read only.
func (s *Store) read(ctx context.Context, op string, one statement) error {
	head := statement{sql: plainSettings, args: []any{readTimeout}}
	if s.role != "" {
		head = statement{sql: readerSettings, args: []any{readTimeout, s.role}}
	}
	timer := time.NewTimer(opTimeout)
	defer timer.Stop()
	select {
	case s.looks <- struct{}{}:
		defer func() { <-s.looks }()
	case <-timer.C:
		return &agent.Failure{Class: agent.Limited, Code: "too_many_calls", Message: "too many calls at once, and slow ones", RetryAfter: time.Second}
	case <-ctx.Done():
		return fail(ctx, op, ctx.Err())
	}
	return s.send(ctx, op, []statement{head, one})
}

func (s *Store) send(ctx context.Context, op string, all []statement) error {
	short, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	var b pgx.Batch
	for _, st := range all {
		q := b.Queue(s.layout.Render(st.sql), st.args...)
		if st.rows != nil {
			q.Query(st.rows)
		}
	}
	// Close reads all answers, the end of the transaction too.
	return fail(ctx, op, s.pool.SendBatch(short, &b).Close())
}

// seconds is a duration for SQL: $1::float8 * interval '1 second'.
func seconds(d time.Duration) float64 { return d.Seconds() }

// one takes at most one row.
func one[T any](to **T, scan pgx.RowToFunc[T]) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, scan)
		if err == nil && len(all) > 0 {
			*to = &all[0]
		}
		return err
	}
}

// some reports whether there was a row.
func some(to *bool) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			*to = true
		}
		return rows.Err()
	}
}

func count(to *int64) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			*to++
		}
		return rows.Err()
	}
}
