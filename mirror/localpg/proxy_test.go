package localpg_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

// behind (no statement is prepared ahead: a pipeline is one round trip) gives a database with a table of numbers, a proxy before it, and a
// connection of each kind.
func behind(t *testing.T) (p *localpg.Proxy, direct, through *pgx.Conn) {
	t.Helper()
	url := localpg.Database(t)
	p = localpg.StartProxy(t, url)
	direct, through = connect(t, url), connect(t, p.URL()+"&default_query_exec_mode=exec")
	run(t, direct, "create table numbers (n integer)")
	return p, direct, through
}

func TestProxyCutsOnEitherSideOfTheServersWork(t *testing.T) {
	insert := func(n string) func(context.Context, *pgx.Conn) error {
		return func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, "insert into numbers values ("+n+")")
			return err
		}
	}
	pipeline := func(ctx context.Context, c *pgx.Conn) error {
		b := &pgx.Batch{}
		b.Queue("insert into numbers values ($1)", 1)
		b.Queue("insert into numbers values ($1)", 2)
		return c.SendBatch(ctx, b).Close()
	}
	copyAndCommit := func(ctx context.Context, c *pgx.Conn) error {
		if _, err := c.Exec(ctx, "begin"); err != nil {
			return err
		}
		_, err := c.PgConn().CopyFrom(ctx, strings.NewReader("1\n2\n"), "copy numbers from stdin; commit")
		return err
	}
	transaction := func(ctx context.Context, c *pgx.Conn) error {
		for _, sql := range []string{"begin", "insert into numbers values (1), (2)", "commit"} {
			if _, err := c.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	}
	for _, c := range []struct {
		name string
		do   func(context.Context, *pgx.Conn) error
		cut  localpg.Event
		n    int
		want string
	}{
		{"a statement does not reach the server", insert("1"), localpg.Statement, 1, "0"},
		{"its answer does not reach the client", insert("1"), localpg.Answer, 1, "1"},
		{"the second statement of a pipeline", pipeline, localpg.Statement, 2, "0"},
		{"the answer to a pipeline", pipeline, localpg.Answer, 1, "2"},
		{"before a COMMIT", transaction, localpg.Commit, 1, "0"},
		{"after a COMMIT", transaction, localpg.Committed, 1, "2"},
		{"before the COMMIT behind a COPY", copyAndCommit, localpg.Commit, 1, "0"},
		{"after the COMMIT behind a COPY", copyAndCommit, localpg.Committed, 1, "2"},
		{"a COPY before its last row", copyAndCommit, localpg.Statement, 3, "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, direct, through := behind(t)
			p.Cut(c.cut, c.n)
			if err := c.do(limited(t), through); err == nil || p.Armed() || !through.IsClosed() {
				t.Errorf("%v, armed %t, closed %t", err, p.Armed(), through.IsClosed())
			}
			if got := text(t, direct, "select count(*)::text from numbers"); got != c.want {
				t.Errorf("%s rows, want %s", got, c.want)
			}
			if err := c.do(limited(t), connect(t, p.URL()+"&default_query_exec_mode=exec")); err != nil {
				t.Errorf("the connection after: %v", err)
			}
		})
	}
}

func TestProxyCountsWhatPasses(t *testing.T) {
	p, _, through := behind(t)
	before := [...]int{p.Count(localpg.Statement), p.Count(localpg.Answer), p.Count(localpg.Commit), p.Count(localpg.Committed)}
	run(t, through, "begin")
	run(t, through, "select 1; select 2")
	run(t, through, "commit")
	after := [...]int{p.Count(localpg.Statement), p.Count(localpg.Answer), p.Count(localpg.Commit), p.Count(localpg.Committed)}
	for i, want := range [...]int{3, 3, 1, 1} {
		if got := after[i] - before[i]; got != want {
			t.Errorf("event %d: %d, want %d", i, got, want)
		}
	}
}

func TestProxyLeadsToAnotherServerAndFallsSilent(t *testing.T) {
	p, _, through := behind(t)
	p.Silence()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := through.Exec(ctx, "select 1"); ctx.Err() == nil {
		t.Fatalf("a silent network answered: %v", err)
	}
	other := start(t, localpg.Options{})
	run(t, connect(t, other.URL("postgres")), "create role postgres2 superuser login password 'x'")
	if err := p.Retarget(other.URL("postgres")); err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.User, config.Password, config.Database = "postgres2", "x", "postgres"
	conn, err := pgx.ConnectConfig(limited(t), config)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, conn, "select current_user::text"); got != "postgres2" {
		t.Error(got)
	}
	p.Drop()
	if _, err := conn.Exec(limited(t), "select 1"); err == nil {
		t.Error("a dropped connection answered")
	}
}
