package migrations

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	lockWait = time.Minute
	lockPoll = 200 * time.Millisecond
)

// ErrBusy means that another process was still migrating after a minute.
var ErrBusy = errors.New("migrations: another process is migrating this database")

// Report says what Apply did, or in a dry run would do.
type Report struct {
	Schema  string   `json:"schema"`
	DryRun  bool     `json:"dry_run"`
	From    int64    `json:"from_version"`
	To      int64    `json:"to_version"`
	Schemas []string `json:"schemas"`   // made
	Applied []string `json:"applied"`   // numbered files, in order
	Created []string `json:"resources"` // whose objects were made
}

// Apply brings the database to this binary's schema and makes the missing
// objects of the resources. With nothing to do it only reads. Two processes at
// once are safe: one works, the other waits and finds everything done. The pool
// must allow two connections.
func Apply(ctx context.Context, pool *pgxpool.Pool, l Layout, resources []string, dryRun bool) (Report, error) {
	state, err := Inspect(ctx, pool, l, resources)
	if err != nil || dryRun || !state.Pending() {
		return report(l, state, dryRun), err
	}
	unlock, err := lock(ctx, pool, l)
	if err != nil {
		return Report{}, err
	}
	defer unlock()
	if state, err = Inspect(ctx, pool, l, resources); err != nil {
		return Report{}, err
	}
	if err := apply(ctx, pool, l, state); err != nil {
		return Report{}, err
	}
	return report(l, state, false), nil
}

func report(l Layout, s State, dryRun bool) Report {
	r := Report{
		Schema: l.data, DryRun: dryRun, From: s.Version, To: max(s.Version, s.Latest),
		Schemas: append([]string{}, s.Schemas...), Applied: []string{}, Created: append([]string{}, s.Resources...),
	}
	all, _ := numbered() // Inspect has read them
	for _, m := range all {
		if m.version > s.Version {
			r.Applied = append(r.Applied, m.name)
		}
	}
	return r
}

func apply(ctx context.Context, pool *pgxpool.Pool, l Layout, s State) error {
	for _, name := range s.Schemas {
		// Without "if not exists" it needs no more rights than it uses; the lock keeps others out.
		if _, err := pool.Exec(ctx, "create schema "+quote(name)); err != nil {
			return fmt.Errorf("migrations: create schema %s: %w", name, err)
		}
	}
	if s.Version < s.Latest {
		if err := upgrade(ctx, pool, l); err != nil {
			return err
		}
	}
	template, err := files.ReadFile(resourceTemplate)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	for _, r := range s.Resources {
		// Several statements sent as one are one transaction.
		if _, err := pool.Exec(ctx, l.RenderResource(string(template), r)); err != nil {
			return fmt.Errorf("migrations: create %s: %w", r, err)
		}
	}
	return nil
}

func upgrade(ctx context.Context, pool *pgxpool.Pool, l Layout) error {
	all, err := numbered()
	if err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }() // gives the pool's connections back; the pool stays open
	p, err := provider(db, l, all)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrations: apply: %w", err)
	}
	return nil
}

// lock waits for the right to migrate. It is an advisory lock of a transaction
// that stays open on a connection of its own: a session's lock would not hold
// behind a pooler in transaction mode. It is tried, not waited for, because a
// waiting statement's snapshot would block CREATE INDEX CONCURRENTLY.
func lock(ctx context.Context, pool *pgxpool.Pool, l Layout) (unlock func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait, ErrBusy)
	defer cancel()
	tx, err := pool.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrations: lock: %w", err)
	}
	unlock = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = tx.Rollback(ctx) // the lock goes with the connection at the latest
	}
	if err := acquire(ctx, tx, l); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

func acquire(ctx context.Context, tx pgx.Tx, l Layout) error {
	if _, err := tx.Exec(ctx, "set local idle_in_transaction_session_timeout = 0"); err != nil {
		return fmt.Errorf("migrations: lock: %w", err)
	}
	sum := sha256.Sum256([]byte("xiaoqu-sync migrations\x00" + l.data))
	key := int64(binary.BigEndian.Uint64(sum[:8]))
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for {
		var got bool
		err := tx.QueryRow(ctx, "select pg_catalog.pg_try_advisory_xact_lock($1::bigint)", key).Scan(&got)
		if err == nil && got {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("migrations: lock: %w", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-poll.C:
		}
	}
}
