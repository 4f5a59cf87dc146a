package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/bench/figures"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

const (
	pageSize = 200 // contract §4.3
	fat      = "contracts"
)

func resources(n int) []string { return []string{fat, "users", "properties"}[:n] }

// bench is one run: a database, and what was measured so far.
type bench struct {
	options
	progress io.Writer
	began    time.Time
	report   figures.Report

	server *localpg.Cluster // nil when the database is somebody's
	url    string
	sql    *pgx.Conn // for looking and for emptying
	mirror *mirror.Mirror
	watch  func(sync.Progress) // of the engines, nil for none
}

func (b *bench) open(ctx context.Context) error {
	b.say("starting PostgreSQL")
	b.url = os.Getenv("XIAOQU_TEST_DATABASE_URL")
	if b.url == "" {
		var err error
		b.server, err = localpg.Start(ctx, localpg.Options{Durable: true, Settings: map[string]string{"max_wal_size": "8GB"}})
		if err != nil {
			return err
		}
		b.url = b.server.URL("postgres")
	}
	var err error
	if b.sql, err = pgx.Connect(ctx, b.url); err != nil {
		return err
	}
	if b.mirror, err = mirror.Open(ctx, mirror.Options{URL: b.url}); err != nil {
		return err
	}
	if err := b.anew(ctx); err != nil {
		return err
	}
	b.report.Machine, err = describe(ctx, b.sql)
	return err
}

func (b *bench) close() {
	if b.mirror != nil {
		b.mirror.Close()
	}
	if b.sql != nil {
		_ = b.sql.Close(context.Background())
	}
	if b.server != nil {
		if err := b.server.Stop(); err != nil {
			b.say("%v", err)
		}
	}
}

// say tells of progress, with the time since the beginning.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.0fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// anew makes the mirror as if nothing had ever been synchronized.
func (b *bench) anew(ctx context.Context) error {
	if _, err := b.sql.Exec(ctx, "drop schema if exists xiaoqu, xiaoqu_sync cascade"); err != nil {
		return err
	}
	_, err := b.mirror.Migrate(ctx, resources(3), false)
	return err
}

// empty is anew without the cost of making tables.
func (b *bench) empty(ctx context.Context) error {
	_, err := b.sql.Exec(ctx, "truncate xiaoqu.users, xiaoqu.properties, xiaoqu.contracts, xiaoqu_sync.state, xiaoqu_sync.passes, xiaoqu_sync.staging_contracts")
	return err
}

// engine is one of a new process's, at work on source.
func (b *bench) engine(source sync.Source) *sync.Engine {
	return sync.NewEngine(source, b.mirror, sync.Options{
		TimeZone: time.UTC, Limit: pageSize, MaxDeleteRatio: 1, Logger: zap.NewNop(),
		Clean: func(s string) string { return s }, Holder: mirror.Holder{Host: "bench", PID: os.Getpid()}, Watch: b.watch,
	})
}

// bring syncs the resources and wants it to end well.
func (b *bench) bring(ctx context.Context, source sync.Source, names []string) error {
	var errs error
	for _, o := range b.engine(source).Sync(ctx, names) {
		if o.Result != sync.Synced {
			errs = errors.Join(errs, fmt.Errorf("sync %s: %s: %w", o.Resource, o.Result, cmp.Or(o.Err, errors.New("no error"))))
		}
	}
	return errs
}

// client is the worker's own client of the simulator.
func client(s *simulator) (*remote.Client, error) {
	tokens, err := credentials.New(credentials.Options{
		BaseURL: s.url, ServiceName: "bench", Logger: zap.NewNop(),
		Keys: credentials.FromEnv(func(string) (string, bool) { return s.key, true }, "KEY"),
	})
	if err != nil {
		return nil, err
	}
	return remote.New(remote.Options{BaseURL: s.url, Tokens: tokens, Logger: zap.NewNop(), Version: "bench"})
}
