package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
)

const (
	defaultSchema   = "xiaoqu"
	defaultMaxConns = 8
	// spareConns are never taken by those who ask the mirror, however slow that is:
	// tasks need them to keep their claims.
	spareConns     = 2
	application    = "xiaoqu-sync agent"
	connectTimeout = 10 * time.Second
	closeTimeout   = time.Second
)

// Options say which database, and what of it may be read.
type Options struct {
	URL    string // postgres://user:password@host:5432/database, or key=value pairs
	Schema string // of the readers' tables; "" is "xiaoqu"
	// Login gives user and password for every new connection, in place of the
	// URL's; an empty user leaves the URL's. nil: the URL has both. Its error is
	// part of the error's chain and text.
	Login func(ctx context.Context) (user, password string, err error)
	// ReaderRole is what records are read as; the login must be a member of it. "":
	// as the login itself.
	ReaderRole string
	Masked     bool // read the masked views
	Resources  []agent.Resource
	MaxConns   int32 // of the pool; 0 is 8
}

// Store is the door to one database. It is safe for use by several goroutines.
type Store struct {
	pool     *pgxpool.Pool
	layout   migrations.Layout
	role     string
	readings map[string]reading // by resource
	looks    chan struct{}      // reads at the same time
}

var (
	_ agent.Tasks  = (*Store)(nil)
	_ agent.Outbox = (*Store)(nil)
)

// Open checks the options. It does not connect: the first call does. Close the
// store when done.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Schema == "" {
		o.Schema = defaultSchema
	}
	layout, err := migrations.NewLayout(o.Schema)
	if err != nil {
		return nil, fmt.Errorf("agent/store: open: %w", err)
	}
	s := &Store{layout: layout, role: o.ReaderRole, readings: map[string]reading{}}
	for _, r := range o.Resources {
		if err := migrations.CheckResource(r.Name); err != nil {
			return nil, fmt.Errorf("agent/store: open: %w", err)
		}
		s.readings[r.Name] = newReading(layout, r, o.Masked)
	}
	config, err := poolConfig(o)
	if err != nil {
		return nil, err
	}
	s.looks = make(chan struct{}, max(1, config.MaxConns-spareConns))
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fail(ctx, "open", err)
	}
	return s, nil
}

// poolConfig drops pgx's own error, which quotes the URL.
func poolConfig(o Options) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil || strings.TrimSpace(o.URL) == "" {
		return nil, errors.New("agent/store: open: the database URL cannot be read; write postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full")
	}
	conn := config.ConnConfig
	// No named statements: they do not survive a pooler in transaction mode.
	conn.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn.StatementCacheCapacity, conn.DescriptionCacheCapacity = 0, 0
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = connectTimeout
	}
	// What a database may have set otherwise, and our texts depend on.
	conn.RuntimeParams["datestyle"] = "ISO, MDY"
	conn.RuntimeParams["standard_conforming_strings"] = "on"
	conn.RuntimeParams["client_encoding"] = "UTF8"
	conn.RuntimeParams["timezone"] = "UTC"
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = application
	}
	config.MaxConns = defaultMaxConns
	if o.MaxConns > 0 {
		config.MaxConns = o.MaxConns
	}
	config.BeforeConnect = signIn(o.Login)
	return config, nil
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
// new ones take the login that is good then.
func (s *Store) Reconnect() { s.pool.Reset() }

// Close ends all connections. A server that has gone silent is not waited for.
func (s *Store) Close() {
	closed := make(chan struct{})
	go func() {
		s.pool.Close()
		close(closed)
	}()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
}
