package mirror_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

func TestLeaseIsOneHoldersOnly(t *testing.T) {
	f := setUp(t)
	first := mirror.Holder{Host: "host-a", PID: 41, Since: timeAt(t, "2026-09-15T01:02:03Z")}
	lease, err := f.Lease(t.Context(), "users", first)
	if err != nil {
		t.Fatal(err)
	}
	other := open(t, f.url)
	_, err = other.Lease(t.Context(), "users", mirror.Holder{Host: "host-b", PID: 42})
	var held *mirror.HeldError
	if !errors.As(err, &held) || held.Resource != "users" {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, held.Holder); diff != "" {
		t.Error(diff)
	}
	another, err := other.Lease(t.Context(), "contracts", first)
	if err != nil {
		t.Fatalf("another resource's lease: %v", err)
	}
	another.Release(t.Context())
	lease.Release(t.Context())
	select {
	case <-lease.Lost():
		t.Error("released is not lost")
	default:
	}
	second, err := other.Lease(t.Context(), "users", mirror.Holder{Host: "host-b", PID: 42})
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	second.Release(t.Context())
}

func TestLeaseIsPerSchema(t *testing.T) {
	f := setUp(t)
	lease, err := f.Lease(t.Context(), "users", mirror.Holder{Host: "a", PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release(t.Context())
	m, err := mirror.Open(t.Context(), mirror.Options{URL: f.url, Schema: "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.Migrate(t.Context(), nil, false); err != nil {
		t.Fatal(err)
	}
	second, err := m.Lease(t.Context(), "users", mirror.Holder{Host: "a", PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	second.Release(t.Context())
}

func TestLeaseEndsWithItsConnection(t *testing.T) {
	f := setUp(t)
	lease, err := f.Lease(t.Context(), "users", mirror.Holder{Host: "a", PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	value[bool](t, f, "select pg_terminate_backend(backend_pid, 5000) from xiaoqu_sync.leases")
	select {
	case <-lease.Lost():
	case <-time.After(10 * time.Second):
		t.Fatal("nobody noticed")
	}
	// What the dead holder left behind names nobody.
	status, err := f.Status(t.Context(), []string{"users"})
	if err != nil || status.Resources[0].Lease != nil {
		t.Errorf("%+v, %v", status, err)
	}
	next, err := f.Lease(t.Context(), "users", mirror.Holder{Host: "b", PID: 2})
	if err != nil {
		t.Fatal(err)
	}
	lease.Release(t.Context()) // late, and not of the next holder's
	_, err = open(t, f.url).Lease(t.Context(), "users", mirror.Holder{})
	var held *mirror.HeldError
	if !errors.As(err, &held) || held.Holder.Host != "b" {
		t.Error(err)
	}
	next.Release(t.Context())
}

func TestLeaseHoldsNoSnapshotAndNoTimeout(t *testing.T) {
	f := setUp(t)
	if _, err := f.sql.Exec(t.Context(), "alter role postgres set idle_in_transaction_session_timeout = '50ms'"); err != nil {
		t.Skip("needs a superuser named postgres")
	}
	defer f.sql.Exec(t.Context(), "alter role postgres reset idle_in_transaction_session_timeout")
	lease, err := f.Lease(t.Context(), "users", mirror.Holder{Host: "a", PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release(t.Context())
	if !value[bool](t, f, "select backend_xmin is null and backend_xid is null from pg_stat_activity a join xiaoqu_sync.leases l on l.backend_pid = a.pid") {
		t.Error("the lease would hold back vacuum")
	}
	select {
	case <-lease.Lost():
		t.Error("the server's idle timeout took the lease")
	case <-time.After(300 * time.Millisecond):
	}
}
