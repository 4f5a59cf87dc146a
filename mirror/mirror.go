package mirror

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
)

const (
	defaultSchema   = "xiaoqu"
	defaultMaxConns = 6
	connectTimeout  = 10 * time.Second
	// opTimeout bounds one call, so that a silent network cannot hold a run for ever.
	opTimeout = 3 * time.Minute
	// closeTimeout bounds the goodbye of the pool.
	closeTimeout = time.Second
)

// Options say which database and how to read the remote's times.
type Options struct {
	URL         string // postgres://user:password@host:5432/database, or key=value pairs
	Schema      string // of the readers' tables; "" is "xiaoqu"
	MaxConns    int32  // of the pool, 0 is 6, at least 2; every lease has one more of its own
	Application string // application_name, unless the URL has one
	// Login gives user and password for every new connection, in place of the
	// URL's; an empty user leaves the URL's. nil: the URL has both. Its error is
	// part of the error's chain and text.
	Login func(ctx context.Context) (user, password string, err error)
}

// Mirror is the door to one database. It is safe for use by several goroutines.
type Mirror struct {
	pool   *pgxpool.Pool
	layout migrations.Layout
}

// MigrationReport says what Migrate did, or in a dry run would do.
type MigrationReport = migrations.Report

// Open checks the options. It does not connect: the first call does. Close the
// mirror when done.
func Open(ctx context.Context, o Options) (*Mirror, error) {
	if o.Schema == "" {
		o.Schema = defaultSchema
	}
	layout, err := migrations.NewLayout(o.Schema)
	if err != nil {
		return nil, &Error{Kind: KindConfig, Op: "open", Message: err.Error(), Err: err}
	}
	config, err := poolConfig(o)
	if err != nil {
		return nil, err
	}
	config.BeforeConnect = signIn(o.Login)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fail("open", err)
	}
	return &Mirror{pool: pool, layout: layout}, nil
}

// signIn puts the login that is good now into a new connection's options.
func signIn(login func(context.Context) (user, password string, err error)) func(context.Context, *pgx.ConnConfig) error {
	return func(ctx context.Context, config *pgx.ConnConfig) error {
		if login == nil {
			return nil
		}
		user, password, err := login(ctx)
		if err != nil {
			return &loginError{err}
		}
		if user != "" {
			config.User = user
		}
		config.Password = password
		return nil
	}
}

// Reconnect lets the pool's connections go, those in use when they come back, and
// new ones take the login that is good then. Leases keep their own connection: an
// ended login does not end it.
func (m *Mirror) Reconnect() { m.pool.Reset() }

// poolConfig drops pgx's own error, which quotes the URL.
func poolConfig(o Options) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil || strings.TrimSpace(o.URL) == "" {
		return nil, &Error{
			Kind: KindConfig, Op: "open", Message: "the database URL cannot be read",
			Hint: "write postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full, with special characters of the password percent-encoded",
		}
	}
	conn := config.ConnConfig
	// No named statements: they do not survive a pooler in transaction mode.
	conn.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn.StatementCacheCapacity, conn.DescriptionCacheCapacity = 0, 0
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = connectTimeout
	}
	// What a database may have set otherwise, and our texts depend on. A pooler
	// in transaction mode knows these four and keeps them apart.
	conn.RuntimeParams["datestyle"] = "ISO, MDY"
	conn.RuntimeParams["standard_conforming_strings"] = "on"
	conn.RuntimeParams["client_encoding"] = "UTF8"
	conn.RuntimeParams["timezone"] = "UTC"
	if o.Application != "" && conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = o.Application
	}
	config.MaxConns = defaultMaxConns
	if o.MaxConns > 0 {
		config.MaxConns = max(o.MaxConns, 2) // Migrate works on one and holds its lock on another
	}
	return config, nil
}

// channel is where readers are told of changes: xiaoqu_changes for the schema xiaoqu.
func (m *Mirror) channel() string { return m.layout.Schema() + "_changes" }

// Close ends all connections but those of leases. A server that has gone silent
// is not waited for: the process's end closes what is left.
func (m *Mirror) Close() {
	closed := make(chan struct{})
	go func() {
		m.pool.Close()
		close(closed)
	}()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
}

// Migrate brings the bookkeeping to this binary's version and makes the table and
// view of each resource that has none. With nothing to do it only reads, so the
// right to create is not needed then. Processes that migrate at once take turns.
// A dry run says what would be done. A database that is ahead is KindSchema.
func (m *Mirror) Migrate(ctx context.Context, resources []string, dryRun bool) (MigrationReport, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if err := checkResources("migrate", resources); err != nil {
		return MigrationReport{}, err
	}
	report, err := migrations.Apply(ctx, m.pool, m.layout, resources, dryRun)
	return report, fail("migrate", err)
}

// Ready reports whether the database fits this binary and holds every resource's
// table. When it does not, the error is KindSchema and says what is missing.
func (m *Mirror) Ready(ctx context.Context, resources []string) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if err := checkResources("ready", resources); err != nil {
		return err
	}
	state, err := migrations.Inspect(ctx, m.pool, m.layout, resources)
	if err != nil {
		return fail("ready", err)
	}
	if text := pending(state); text != "" {
		return &Error{Kind: KindSchema, Op: "ready", Message: text, Hint: "run `xiaoqu-sync migrate`"}
	}
	return nil
}

// pending says what is missing, "" when nothing is.
func pending(s migrations.State) string {
	switch {
	case s.Version < s.Latest || len(s.Schemas) > 0:
		return fmt.Sprintf("the database is at schema version %d, this binary needs %d", s.Version, s.Latest)
	case len(s.Resources) > 0:
		return "tables or views are missing, or are of an earlier release, for " + strings.Join(s.Resources, ", ")
	}
	return ""
}

func checkResources(op string, resources []string) error {
	for _, r := range resources {
		if err := migrations.CheckResource(r); err != nil {
			return &Error{Kind: KindConfig, Op: op, Message: err.Error(), Err: err}
		}
	}
	return nil
}
