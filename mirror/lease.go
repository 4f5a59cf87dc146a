package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	leasePing        = 5 * time.Second  // between two looks at a lease's connection
	leasePingTimeout = 10 * time.Second // for one answer
)

// Holder names the run that holds a lease.
type Holder struct {
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"` // set by Lease when zero
}

// Lease keeps other runs away from a resource until it is released, lost, or its
// process is gone. It is a courtesy: what makes two writers safe is the epoch.
type Lease struct {
	mirror   *Mirror
	resource string
	conn     *pgx.Conn
	backend  int32
	lost     chan struct{}
	stop     context.CancelFunc // ends watch
	done     chan struct{}      // closed when watch has ended
}

// The settings of the server's that would end a lease do not hold for it; and a
// host that is gone without a word is noticed in a minute, not in two hours, so that
// nobody steps aside for a dead holder.
const takeLease = `
select pg_catalog.pg_try_advisory_xact_lock($1::bigint), pg_catalog.pg_backend_pid(),
       (select count(pg_catalog.set_config(s.name, w.value, true)) from pg_catalog.pg_settings s join (values
            ('idle_in_transaction_session_timeout', '0'), ('transaction_timeout', '0'),
            ('tcp_keepalives_idle', '30'), ('tcp_keepalives_interval', '10'), ('tcp_keepalives_count', '3')
        ) w (name, value) on w.name = s.name)`

const nameHolder = `
insert into {sync}.leases as l (resource, host, pid, since, backend_pid)
values ($1::text, $2::text, $3::integer, $4::timestamptz, $5::integer)
on conflict (resource) do update
set host = excluded.host, pid = excluded.pid, since = excluded.since, backend_pid = excluded.backend_pid`

// Lease takes the resource's lease for h, or returns *HeldError at once. The lock
// lives in a transaction that stays open on a connection of its own (READ
// COMMITTED, nothing read, so it holds back no vacuum), which also works behind a
// pooler in transaction mode. The caller releases it.
func (m *Mirror) Lease(ctx context.Context, resource string, h Holder) (*Lease, error) {
	op := "lease " + resource
	if err := checkResources(op, []string{resource}); err != nil {
		return nil, err
	}
	if h.Since.IsZero() {
		h.Since = time.Now()
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	config := m.pool.Config() // a copy
	if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
		return nil, fail(op, err)
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return nil, fail(op, err)
	}
	l := &Lease{mirror: m, resource: resource, conn: conn, lost: make(chan struct{}), done: make(chan struct{})}
	if err := l.take(ctx, h); err != nil {
		l.hangUp(ctx)
		return nil, fail(op, err)
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go l.watch(watching)
	return l, nil
}

func (l *Lease) take(ctx context.Context, h Holder) error {
	if _, err := l.conn.Exec(ctx, "begin isolation level read committed"); err != nil {
		return err
	}
	var got bool
	key := l.mirror.leaseKey(l.resource)
	// The simple protocol, because the extended one leaves a portal behind, and with it a snapshot.
	if err := l.conn.QueryRow(ctx, takeLease, pgx.QueryExecModeSimpleProtocol, key).Scan(&got, &l.backend, nil); err != nil {
		return err
	}
	if !got {
		holder, err := l.mirror.holder(ctx, l.resource)
		if err != nil {
			return err
		}
		return &HeldError{Resource: l.resource, Holder: holder}
	}
	_, err := l.mirror.pool.Exec(ctx, l.mirror.layout.Render(nameHolder), l.resource, h.Host, h.PID, h.Since, l.backend)
	return err
}

func (m *Mirror) leaseKey(resource string) int64 {
	sum := sha256.Sum256([]byte("xiaoqu-sync lease\x00" + m.layout.Schema() + "\x00" + resource))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// A holder's row counts only while the lock is held by the server process that
// the row names: a killed run leaves its row behind.
const readHolder = `
select l.host, l.pid, l.since
from {sync}.leases l
where l.resource = $1::text and exists (
    select from pg_catalog.pg_locks k
    where k.locktype = 'advisory' and k.granted and k.pid = l.backend_pid and k.objsubid = 1
      and k.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
      and k.classid::bigint = ($2::bigint >> 32) & 4294967295 and k.objid::bigint = $2::bigint & 4294967295)`

// holder returns who holds the resource's lease; zero when nobody does, or when
// the holder has not written its name yet.
func (m *Mirror) holder(ctx context.Context, resource string) (Holder, error) {
	var h Holder
	err := m.pool.QueryRow(ctx, m.layout.Render(readHolder), resource, m.leaseKey(resource)).Scan(&h.Host, &h.PID, &h.Since)
	if errors.Is(err, pgx.ErrNoRows) {
		return Holder{}, nil
	}
	h.Since = h.Since.UTC()
	return h, err
}

// Lost is closed when the lease's connection broke: somebody else may hold the
// lease now. It stays open when the lease is released.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// watch listens on the connection, where the end of the server process shows at
// once, and asks from time to time, because a dead network says nothing.
func (l *Lease) watch(ctx context.Context) {
	defer close(l.done)
	for {
		listen, cancel := context.WithTimeout(ctx, leasePing)
		err := l.conn.PgConn().WaitForNotification(listen)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil && !l.conn.IsClosed() && errors.Is(err, context.DeadlineExceeded) {
			err = l.ping(ctx)
		}
		if err != nil && ctx.Err() == nil {
			close(l.lost)
			return
		}
	}
}

func (l *Lease) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leasePingTimeout)
	defer cancel()
	_, err := l.conn.Exec(ctx, "select 1")
	return err
}

const forgetHolder = `delete from {sync}.leases where resource = $1::text and backend_pid = $2::integer`

// Release gives the lease back within ctx. It is for one call; a failure only
// delays the others until the server notices the closed connection.
func (l *Lease) Release(ctx context.Context) {
	l.stop()
	<-l.done
	_, _ = l.mirror.pool.Exec(ctx, l.mirror.layout.Render(forgetHolder), l.resource, l.backend)
	l.hangUp(ctx)
}

func (l *Lease) hangUp(ctx context.Context) {
	if !l.conn.IsClosed() {
		_, _ = l.conn.Exec(ctx, "rollback") // the lock goes with the connection at the latest
	}
	_ = l.conn.Close(ctx)
}
