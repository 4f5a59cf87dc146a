package mirror_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

// twoLogins gives an address without a login, and two roles that may do all that
// the owner may.
func twoLogins(t *testing.T) (address string, users []string) {
	t.Helper()
	owner := localpg.Database(t)
	u, err := url.Parse(owner)
	if err != nil {
		t.Fatal(err)
	}
	sql := connect(t, owner)
	for _, suffix := range []string{"_a", "_b"} {
		name := u.Path[1:] + suffix
		if _, err := sql.Exec(t.Context(), "create role "+name+" superuser login password 'pw-"+name+"'"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_, _ = sql.Exec(context.Background(), "reassign owned by "+name+" to "+u.User.Username())
			_, _ = sql.Exec(context.Background(), "drop role "+name)
		})
		users = append(users, name)
	}
	u.User = url.User("nobody-there")
	return u.String(), users
}

func TestNewConnectionsTakeTheLoginOfTheMoment(t *testing.T) {
	address, users := twoLogins(t)
	var at atomic.Int64
	m, err := mirror.Open(t.Context(), mirror.Options{URL: address, Application: "login-test", Login: func(context.Context) (string, string, error) {
		user := users[at.Load()]
		return user, "pw-" + user, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	if _, err := m.Migrate(t.Context(), []string{"users"}, false); err != nil {
		t.Fatal(err)
	}
	who := func() []string {
		t.Helper()
		u, _ := url.Parse(address)
		u.User = url.UserPassword(users[1], "pw-"+users[1])
		_, rows, err := localpg.Query(t.Context(), u.String(),
			"select distinct usename from pg_stat_activity where application_name = 'login-test' and datname = current_database() order by 1")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, row := range rows {
			names = append(names, row[0])
		}
		return names
	}
	if got := who(); !slices.Equal(got, users[:1]) {
		t.Errorf("connected are %v", got)
	}
	at.Store(1)
	m.Reconnect()
	lease, err := m.Lease(t.Context(), "users", mirror.Holder{Host: "h", PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release(context.Background())
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); !slices.Equal(who(), users[1:]); <-tick.C { // they are closed behind our back
		if time.Now().After(end) {
			t.Fatalf("connected are still %v", who())
		}
	}
}

func TestLoginThatCannotBeHadIsSaid(t *testing.T) {
	sealed := errors.New("the safe is sealed")
	m, err := mirror.Open(t.Context(), mirror.Options{URL: "postgres://127.0.0.1:1/x", Login: func(context.Context) (string, string, error) {
		return "", "", sealed
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_, leaseErr := m.Lease(t.Context(), "users", mirror.Holder{})
	_, statusErr := m.Status(t.Context(), []string{"users"})
	for _, err := range []error{leaseErr, statusErr} {
		var e *mirror.Error
		if !errors.As(err, &e) || e.Kind != mirror.KindUnreachable || !errors.Is(err, sealed) {
			t.Errorf("got %v", err)
		}
	}
}
