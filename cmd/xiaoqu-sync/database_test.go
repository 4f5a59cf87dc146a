package main

import (
	"net/url"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

func TestAFaultOfTheDatabaseHasItsNameItsExitCodeAndAHint(t *testing.T) {
	const column = "alter table xiaoqu.users "
	readOnly := func(value string) string {
		return "do $$begin execute format('alter database %I set default_transaction_read_only = " + value + "', current_database()); end$$"
	}
	for _, c := range []struct {
		name, harm, mend, code string
		exit                   int
		retryable              bool
	}{
		{"a server that only reads", readOnly("on"), readOnly("off"), "DATABASE_UNREACHABLE", exitBackend, true},
		{"a column dropped by hand", column + "drop column snapshot_id cascade", "drop table xiaoqu.users", "SCHEMA_MISMATCH", exitSchema, false},
		{"a column of a reader's that may not be null", column + "add column grade int not null", column + "drop column grade", "DATABASE_INTERNAL", exitInternal, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newCLI(t)
			n.must(t, "migrate")
			n.xiaoqu.Seed(5, 0, 0)
			n.hand(t, c.harm)
			r := n.run(t, "sync", "users", "--output", "json")
			if w := r.envelope(t); r.exit != c.exit || w.Error.Code != c.code || w.Error.Retryable != c.retryable || (len(w.Error.Suggestions) == 0) != w.OK {
				t.Errorf("exit %d: %s", r.exit, r.out)
			}
			n.hand(t, c.mend)
			n.must(t, "sync", "users")
			n.equal(t, "users")
		})
	}
}

// hand does to the database what a person could, whatever its settings are, and
// has everybody connect anew: a pooler would keep the sessions of before.
func (c *cli) hand(t *testing.T, sql string) {
	t.Helper()
	u, err := url.Parse(c.url)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("default_transaction_read_only", "off")
	u.RawQuery = q.Encode()
	for _, s := range []string{sql, "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"} {
		if _, _, err := localpg.Query(t.Context(), u.String(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func TestALoginThatIsRefusedIsAConfigurationError(t *testing.T) {
	c := newCLI(t)
	u, err := url.Parse(c.url)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("nobody-here", "x")
	c.set("XIAOQU_DATABASE_URL", u.String())
	r := c.run(t, "sync", "users", "--output", "json")
	if w := r.envelope(t); r.exit != exitUsage || w.Error.Code != "DATABASE_REFUSED" || len(w.Error.Suggestions) == 0 {
		t.Errorf("exit %d: %s", r.exit, r.out)
	}
}
