package localpg_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

// childVariable turns this binary into a process that owns a server.
const childVariable = "LOCALPG_TEST_CHILD"

// child starts a server, tells where it is, and waits to be killed.
func child() int {
	c, err := localpg.Start(context.Background(), localpg.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.Stdout, c.URL("postgres"), filepath.Dir(c.Dir()))
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(child())
	}
	os.Exit(localpg.Main(m))
}

func start(t *testing.T, o localpg.Options) *localpg.Cluster {
	t.Helper()
	c, err := localpg.Start(limited(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(limited(t), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func run(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(limited(t), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func text(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	var s string
	if err := conn.QueryRow(limited(t), sql).Scan(&s); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return s
}

func TestBothAddressesLeadToTheServer(t *testing.T) {
	c := start(t, localpg.Options{})
	for name, url := range map[string]string{"loopback": c.URL("postgres"), "socket": c.SocketURL("postgres")} {
		conn := connect(t, url)
		if got := text(t, conn, "SHOW data_directory"); got != c.Dir() {
			t.Errorf("%s: data directory %s, want %s", name, got, c.Dir())
		}
	}
}

func TestLoopbackAsksForThePassword(t *testing.T) {
	c := start(t, localpg.Options{})
	cfg, err := pgx.ParseConfig(c.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Password += "x"
	if conn, err := pgx.ConnectConfig(limited(t), cfg); err == nil {
		_ = conn.Close(t.Context())
		t.Fatal("a wrong password was let in")
	}
}

func TestSettingsWinOverOurOwn(t *testing.T) {
	c := start(t, localpg.Options{Settings: map[string]string{"max_connections": "17", "work_mem": "3MB"}})
	conn := connect(t, c.URL("postgres"))
	for name, want := range map[string]string{"max_connections": "17", "work_mem": "3MB", "fsync": "off", "listen_addresses": "127.0.0.1"} {
		if got := text(t, conn, "SHOW "+name); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
}

func TestStopRemovesEverythingAndMayBeRepeated(t *testing.T) {
	c := start(t, localpg.Options{})
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(c.Dir())); !os.IsNotExist(err) {
		t.Errorf("the directory is still there (%v)", err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("second stop: %v", err)
	}
}

func TestCommittedRowsSurviveACrash(t *testing.T) {
	for name, o := range map[string]localpg.Options{"durable": {Durable: true}, "not durable": {}} {
		t.Run(name, func(t *testing.T) {
			c := start(t, o)
			url := c.URL("postgres")
			conn := connect(t, url)
			run(t, conn, "CREATE TABLE kept AS SELECT i FROM generate_series(1, 1000) i")
			open := connect(t, url)
			run(t, open, "BEGIN")
			run(t, open, "DELETE FROM kept")
			if err := c.Kill(); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Exec(limited(t), "SELECT 1"); err == nil {
				t.Error("a connection survived the crash")
			}
			if err := c.Restart(limited(t)); err != nil {
				t.Fatal(err)
			}
			if got := text(t, connect(t, url), "SELECT count(*)::text FROM kept"); got != "1000" {
				t.Errorf("%s rows after the crash, want 1000", got)
			}
		})
	}
}

func TestARestartOfARunningServerKeepsItsAddress(t *testing.T) {
	c := start(t, localpg.Options{})
	before := c.URL("postgres")
	if err := c.Restart(limited(t)); err != nil {
		t.Fatal(err)
	}
	if c.URL("postgres") != before {
		t.Error("the address changed")
	}
	connect(t, before)
}

func TestAKeptDirectoryIsReused(t *testing.T) {
	dir := t.TempDir()
	first := start(t, localpg.Options{Dir: dir, Durable: true})
	run(t, connect(t, first.URL("postgres")), "CREATE TABLE here ()")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	second := start(t, localpg.Options{Dir: dir})
	run(t, connect(t, second.URL("postgres")), "SELECT FROM here")
	if first.URL("postgres") == second.URL("postgres") {
		t.Error("the second server has the password of the first")
	}
}

func TestATakenPortIsAClearError(t *testing.T) {
	c := start(t, localpg.Options{})
	_, err := localpg.Start(limited(t), localpg.Options{Port: c.Port()})
	if err == nil {
		t.Fatal("two servers on one port")
	}
	if want := "Address already in use"; !strings.Contains(err.Error(), want) {
		t.Errorf("error %q does not say %q", err, want)
	}
}

func TestACancelledStartLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := localpg.Start(ctx, localpg.Options{Durable: true}); err == nil {
		t.Fatal("started with a dead context")
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDatabasesDoNotSeeEachOther(t *testing.T) {
	one, two := connect(t, localpg.Database(t)), connect(t, localpg.Database(t))
	run(t, one, "CREATE TABLE mine ()")
	if got := text(t, two, "SELECT coalesce(to_regclass('mine')::text, 'none')"); got != "none" {
		t.Errorf("the other database sees %s", got)
	}
}

func TestADatabaseGoesAwayWithItsTest(t *testing.T) {
	var url, name string
	t.Run("user", func(t *testing.T) {
		url = localpg.Database(t)
		name = text(t, connect(t, url), "SELECT current_database()")
		hold, err := pgx.Connect(context.WithoutCancel(t.Context()), url)
		if err != nil {
			t.Fatal(err)
		}
		_ = hold // still connected when the test ends
	})
	conn := connect(t, os.Getenv("XIAOQU_TEST_DATABASE_URL"))
	if got := text(t, conn, "SELECT count(*)::text FROM pg_database WHERE datname = '"+name+"'"); got != "0" {
		t.Error("the database is still there")
	}
}

func TestManyDatabasesAtOnce(t *testing.T) {
	for range 8 {
		t.Run("one", func(t *testing.T) {
			t.Parallel()
			run(t, connect(t, localpg.Database(t)), "CREATE TABLE mine ()")
		})
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		c, err := localpg.Start(b.Context(), localpg.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Stop(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDatabase(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		t := &cleaner{B: b}
		b.StartTimer()
		localpg.Database(t)
		for _, f := range t.later {
			f()
		}
	}
}

// cleaner runs its cleanups when asked, not at the end.
type cleaner struct {
	*testing.B
	later []func()
}

func (c *cleaner) Cleanup(f func()) { c.later = append(c.later, f) }
