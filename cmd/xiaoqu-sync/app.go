package main

import (
	"context"
	"net/url"
	"os"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync/alert"
	"github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync/metrics"
	"github.com/xiaoqu-sync/xiaoqu-sync/config"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials/vault"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// app is what the verbs work with. It owns the mirror's pool, the clients, and
// what runs beside the verb.
type app struct {
	program *program
	config  *config.Config
	log     *zap.Logger
	level   zap.AtomicLevel // of log
	screen  *screen
	vault   *vault.Client // nil: nothing is read from Vault
	login   *vault.Database
	mirror  *mirror.Mirror
	tokens  *credentials.Service // nil until a verb asks for the remote
	client  *remote.Client       // nil until a verb asks for it
	alerts  *alert.Alerter       // likewise
	metrics *metrics.Recorder
	// countedKey is the version of the service key that the metrics know.
	countedKey string
	began      time.Time

	renewed   renewals // of the database's login
	aside     errgroup.Group
	stopAside []context.CancelFunc
}

// newApp makes what every verb has: its log, through which no secret gets.
func (p *program) newApp(cfg *config.Config) *app {
	a := &app{program: p, config: cfg, screen: newScreen(p.errOut), began: time.Now(), level: zap.NewAtomicLevelAt(p.level(cfg))}
	p.redactor.Add(passwordOf(cfg.Database.URL))
	a.log = p.logger(cfg, a.screen, a.level)
	for _, w := range cfg.Warnings() {
		a.log.Warn("configuration", zap.String("field", w.Field), zap.String("problem", w.Message), zap.String("hint", w.Hint))
	}
	return a
}

func (p *program) open(ctx context.Context, cfg *config.Config) (*app, error) {
	a := p.newApp(cfg)
	options := mirror.Options{
		URL: cfg.Database.URL, Schema: cfg.Database.Schema, Application: "xiaoqu-sync",
		MaxConns: int32(2*len(cfg.Names()) + 2), // a lease and a commit each, the run log, a spare
	}
	err := a.openVault(ctx)
	if err == nil {
		if a.login != nil {
			options.Login = a.login.Login
		}
		a.mirror, err = mirror.Open(ctx, options)
	}
	if err != nil {
		a.close()
		return nil, err
	}
	a.metrics = a.newRecorder()
	if a.login != nil {
		a.renewed.add(a.mirror.Reconnect)
		a.beside(ctx, func(ctx context.Context) { a.login.Keep(ctx, a.renewed.tell) })
	}
	return a, nil
}

// beside runs f beside the verb; close ends it.
func (a *app) beside(ctx context.Context, f func(context.Context)) {
	// Not of the verb's context: what a stop still has to write needs its login.
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.stopAside = append(a.stopAside, stop)
	a.aside.Go(func() error {
		f(ctx)
		return nil
	})
}

// passwordOf finds the password to keep out of logs; "" when there is none or
// the text is not a URL.
func passwordOf(databaseURL string) string {
	u, err := url.Parse(databaseURL)
	if err != nil || u.User == nil {
		return ""
	}
	password, _ := u.User.Password()
	return password
}

// remote makes the client: key, token service, MCP client. Nothing is sent to the
// remote yet, but a key that cannot be one is already an error here. A refused key
// may be replaced in its store for as long as grace.
func (a *app) remote(ctx context.Context, grace time.Duration) (*remote.Client, error) {
	if a.client != nil {
		return a.client, nil
	}
	if err := a.openTokens(ctx, grace); err != nil {
		return nil, err
	}
	var err error
	a.client, err = remote.New(remote.Options{
		BaseURL: a.config.BaseURL, Tokens: a.tokens, Timeout: a.config.RequestTimeout,
		Logger: a.log.Named("remote"), Version: buildVersion().Version, ListKeys: a.listKeys(), Observe: a.metrics.Call,
	})
	return a.client, err
}

// listKeys are the names of the lists that the configuration fixes.
func (a *app) listKeys() map[string]string {
	keys := map[string]string{}
	for name, r := range a.config.Resources {
		if r.ListKey != "" {
			keys[name] = r.ListKey
		}
	}
	return keys
}

// prepare makes sure that the resources' tables are there and fit, and that the
// readers' views are those of the configuration.
func (a *app) prepare(ctx context.Context, resources []string) error {
	err := a.tables(ctx, resources)
	if err == nil {
		a.offerViews(ctx)
	}
	return err
}

// tables is prepare for verbs that leave the readers' views to the worker.
func (a *app) tables(ctx context.Context, resources []string) error {
	if !a.config.Database.AutoMigrate {
		return a.mirror.Ready(ctx, resources)
	}
	_, err := a.mirror.Migrate(ctx, a.config.Names(), false)
	return err
}

// engineOptions are the same for all that works on resources.
func (a *app) engineOptions() sync.Options {
	return sync.Options{
		Limit: a.config.PageLimit, TimeZone: a.config.TimeZone, MaxDeleteRatio: a.config.Rebuild.MaxDeleteRatio,
		Holder: a.holder(), Logger: a.log, Clean: a.program.redactor.String, KeyVersion: a.keyVersion,
		Waiting: a.metrics.Wait,
	}
}

// holding does f with the resource's lease and checkpoint in hand. Somebody else's
// lease is *mirror.HeldError.
func (a *app) holding(ctx context.Context, resource string, f func(at mirror.Checkpoint) error) error {
	lease, err := a.mirror.Lease(ctx, resource, a.holder())
	if err != nil {
		return err
	}
	defer lease.Release(context.WithoutCancel(ctx))
	at, err := a.mirror.Checkpoint(ctx, resource)
	if err != nil {
		return err
	}
	return f(at)
}

// holder is how this process signs its leases and runs.
func (a *app) holder() mirror.Holder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return mirror.Holder{Host: host, PID: os.Getpid(), Since: a.began}
}

// progressLine is a live line on a terminal, and nothing anywhere else.
func (a *app) progressLine(resources []string) *progressLine {
	if a.program.output != outputText || !terminal(a.program.errOut) {
		return newProgressLine(nil, resources)
	}
	return newProgressLine(a.screen, resources)
}

// close gives back what open and remote took.
func (a *app) close() {
	if a.client != nil {
		if err := a.client.Close(); err != nil {
			a.log.Debug("the session was not closed cleanly", zap.Error(err))
		}
	}
	for _, stop := range a.stopAside {
		stop()
	}
	_ = a.aside.Wait() // none returns an error
	if a.mirror != nil {
		a.mirror.Close()
	}
	if a.vault != nil {
		a.vault.Close(context.Background()) // after the database: its login may end with Vault's
	}
	_ = a.log.Sync() // standard error cannot always be synced
}
