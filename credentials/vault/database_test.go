package vault_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials/vault/vaulttest"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

func TestPasswordOfAKVEngineIsReadForEveryConnection(t *testing.T) {
	vaulttest.Each(t, func(t *testing.T, s *vaulttest.Server) {
		c, _, said := approle(t, s, time.Hour, time.Hour)
		s.Put(t, "xiaoqu/db", map[string]any{"username": "app", "password": "c4n4ry-1"})
		db := c.Database("secret/data/xiaoqu/db", "password")
		want := func(user, password string) {
			t.Helper()
			if u, p, err := db.Login(t.Context()); u != user || p != password || err != nil {
				t.Errorf("got %q %q, %v; want %q %q", u, p, err, user, password)
			}
		}
		want("app", "c4n4ry-1")
		s.Put(t, "xiaoqu/db", map[string]any{"password": "c4n4ry-2"})
		want("", "c4n4ry-2")
		s.Seal(t)
		want("", "c4n4ry-2") // what is in memory serves
		s.Unseal(t)
		for path, field := range map[string]string{"secret/xiaoqu/db": "password", "secret/data/xiaoqu/none": "password", "secret/data/xiaoqu/db": "other"} {
			_, _, err := c.Database(path, field).Login(t.Context())
			wantError(t, err, credentials.StoreRefused, path)
		}
		said.clean(t)
	})
}

// lent gives a database with the role member, whose logins Vault lends.
func lent(t *testing.T, s *vaulttest.Server, ttl, most time.Duration) *url.URL {
	t.Helper()
	address := localpg.Database(t)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	member := "m_" + u.Path[1:]
	query(t, address, `create role `+member)
	t.Cleanup(func() {
		_, _, _ = localpg.Query(context.Background(), address, `drop role `+member) // no test looks at it again
	})
	s.Lend(t, address, member, ttl, most)
	return u
}

func query(t *testing.T, address, sql string) string {
	t.Helper()
	_, rows, err := localpg.Query(t.Context(), address, sql)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 {
		return ""
	}
	return rows[0][0]
}

// as is the database's address with another login.
func as(u *url.URL, user, password string) string {
	other := *u
	other.User = url.UserPassword(user, password)
	return other.String()
}

func TestLentLoginIsRenewedAndReplacedBeforeItEnds(t *testing.T) {
	t.Parallel()
	s := vaulttest.Real(t)
	u := lent(t, s, 3*time.Second, 7*time.Second)
	c, _, _ := approle(t, s, time.Hour, time.Hour)
	db := c.Database("database/creds/xiaoqu", "password")
	first, password, err := db.Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if user := query(t, as(u, first, password), "select session_user"); user != first {
		t.Errorf("logged in as %s", user)
	}
	if again, _, err := db.Login(t.Context()); again != first || err != nil {
		t.Errorf("the login changed from %s to %s, %v", first, again, err)
	}
	renewed := make(chan struct{}, 10)
	during(t, func(ctx context.Context) { db.Keep(ctx, func() { renewed <- struct{}{} }) })
	select {
	case <-renewed:
	case <-time.After(20 * time.Second):
		t.Fatal("no new login")
	}
	if n := s.Count("PUT sys/leases/renew"); n < 2 {
		t.Errorf("renewed %d times", n)
	}
	second, password, err := db.Login(t.Context())
	if err != nil || second == first {
		t.Fatalf("the login is still %s, %v", second, err)
	}
	if user := query(t, as(u, second, password), "select session_user"); user != second {
		t.Errorf("logged in as %s", user)
	}
}

func TestLentLoginIsReplacedWithTheLoginThatBroughtIt(t *testing.T) {
	t.Parallel()
	s := vaulttest.Real(t)
	lent(t, s, time.Hour, time.Hour)
	c, _, _ := approle(t, s, 2*time.Second, 4*time.Second)
	db := c.Database("database/creds/xiaoqu", "password")
	first, _, err := db.Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	during(t, c.Keep)
	during(t, func(ctx context.Context) { db.Keep(ctx, func() {}) })
	eventually(t, "another login", func() bool {
		second, _, err := db.Login(t.Context())
		return err == nil && second != first
	})
}

func TestLoginsGivenBackAreGone(t *testing.T) {
	t.Parallel()
	s := vaulttest.Real(t)
	u := lent(t, s, time.Hour, time.Hour)
	c, _, _ := approle(t, s, time.Hour, time.Hour)
	user, _, err := c.Database("database/creds/xiaoqu", "password").Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Close(context.Background())
	eventually(t, "the role is gone", func() bool {
		return query(t, u.String(), "select count(*) from pg_roles where rolname = '"+user+"'") == "0"
	})
}
