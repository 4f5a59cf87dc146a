package localpg

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	urlVariable = "XIAOQU_TEST_DATABASE_URL"
	mainTimeout = 5 * time.Minute // a first start may fetch a server
	stepTimeout = time.Minute
)

// TB is what Database needs of a testing.TB.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// Main is the body of a TestMain: it runs the tests with one throw-away server
// under them and returns their exit code. When XIAOQU_TEST_DATABASE_URL is set it
// starts nothing and the tests use that server; otherwise it sets the variable,
// which child processes inherit. When XIAOQU_TEST_PGBOUNCER is set there is a
// pooler before the server as well; see Door.
func Main(m interface{ Run() int }) int {
	if os.Getenv(urlVariable) != "" {
		return mainPooled(m)
	}
	ctx, cancel := context.WithTimeout(context.Background(), mainTimeout)
	defer cancel()
	c, err := Start(ctx, Options{})
	if err == nil {
		err = os.Setenv(urlVariable, c.URL("postgres"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := mainPooled(m)
	if err := c.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// Database makes an empty database for one test on the server of Main and
// returns its URL. The database goes away with the test, whoever is still
// connected.
func Database(t TB) string {
	t.Helper()
	server, err := url.Parse(os.Getenv(urlVariable))
	if err != nil || server.Host == "" {
		t.Fatalf("localpg: %s holds no URL of a server: call localpg.Main in TestMain", urlVariable)
	}
	name := "test_" + randomText()
	// Nobody can be connected to template0, so tests do not get in each other's way.
	if err := statement(server.String(), "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		t.Fatalf("localpg: create database: %v", err)
	}
	t.Cleanup(func() {
		if err := statement(server.String(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Fatalf("localpg: drop database: %v", err)
		}
	})
	database := *server
	database.Path = "/" + name
	return database.String()
}

// statement runs one statement on its own connection: a cleanup comes after the
// test's context is done.
func statement(server, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	return err
}
