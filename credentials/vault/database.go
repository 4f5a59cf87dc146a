package vault

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/vault/api"
	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
)

// Database is the login of the database in Vault, whatever engine is at its path:
// KV (secret/data/NAME in version 2, secret/NAME in version 1), static roles of the
// database engine (database/static-creds/ROLE), or dynamic ones
// (database/creds/ROLE), which are leased.
type Database struct {
	client *Client
	path   string
	field  string

	gate chan struct{} // held by the one that reads

	mu    sync.Mutex
	lease lease
}

// lease is a login of the database as Vault gave it.
type lease struct {
	user     string // "" when the place names none
	password credentials.Secret
	id       string // "" when it is not leased
	granted  time.Duration
	expires  time.Time
	session  int // the login to Vault that it ends with
}

// Database gives the source of the login at path, with the password in field; the
// user is in username, if there is one.
func (c *Client) Database(path, field string) *Database {
	return &Database{client: c, path: strings.Trim(path, "/"), field: field, gate: make(chan struct{}, 1)}
}

// Login gives user and password for a new connection; user is "" when Vault names
// none. A leased login is given as long as it lasts, and what is not leased is read
// anew, since somebody may have changed it. When Vault can't be asked the login
// that is in memory serves.
func (d *Database) Login(ctx context.Context) (user, password string, err error) {
	l := d.held()
	if l.id == "" || time.Until(l.expires) < soon {
		fresh, err := d.fetch(ctx)
		switch {
		case err == nil:
			l = fresh
		case ctx.Err() != nil || l.password.IsZero():
			return "", "", err
		}
	}
	return l.user, l.password.Reveal(), nil
}

func (d *Database) held() lease {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lease
}

// fetch reads the login, once for all who want it at that moment.
func (d *Database) fetch(ctx context.Context) (lease, error) {
	before := d.held()
	select {
	case d.gate <- struct{}{}:
		defer func() { <-d.gate }()
	case <-ctx.Done():
		return lease{}, context.Cause(ctx)
	}
	if now := d.held(); now.id != before.id {
		return now, nil
	}
	var secret *api.Secret
	err := d.client.ask(ctx, d.path, func(ctx context.Context, client *api.Client) (err error) {
		secret, err = client.Logical().ReadWithContext(ctx, d.path)
		if err == nil && secret == nil {
			err = api.ErrSecretNotFound
		}
		return err
	})
	if err != nil {
		return lease{}, err
	}
	l, err := d.open(secret)
	if err != nil {
		return lease{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lease = l
	return l, nil
}

func (d *Database) open(secret *api.Secret) (lease, error) {
	data := secret.Data
	if inner, ok := data["data"].(map[string]any); ok && data["metadata"] != nil {
		data = inner // KV version 2
	}
	user, _ := data["username"].(string)
	password, _ := data[d.field].(string)
	if password == "" {
		return lease{}, refusal("%s in Vault at %s has no text in its field %s (with KV version 2 the path goes through data: secret/data/NAME)", d.path, d.client.o.Address, d.field)
	}
	d.client.o.OnSecret(password)
	s, _ := d.client.current()
	l := lease{user: user, password: credentials.NewSecret(password), id: secret.LeaseID, session: s.generation}
	if l.id != "" {
		l.granted = time.Duration(secret.LeaseDuration) * time.Second
		l.expires = time.Now().Add(l.granted)
		d.client.o.Logger.Info("Vault lent a login of the database", zap.String("user", user), zap.Duration("ttl", l.granted))
	}
	return l, nil
}

// Keep keeps a leased login alive until ctx ends, and calls renewed when there is
// another one: the connections of the old one must go before its lease does. It
// ends with the login to Vault that brought it, so a new login there brings a new
// one here.
func (d *Database) Keep(ctx context.Context, renewed func()) {
	failed := 0
	for {
		s, turned := d.client.current()
		l := d.held()
		next := time.Duration(-1)
		switch {
		case l.id == "":
			turned = nil // not leased: Login reads it when it is wanted
		case l.session != s.generation:
			next = 0
		default:
			next = share(l.expires, failed)
		}
		if failed > 0 && next == 0 {
			next = share(l.expires, failed)
		}
		if !wait(ctx, next, turned) {
			if ctx.Err() != nil {
				return
			}
			continue
		}
		replaced, err := d.extend(ctx, l)
		if err != nil {
			failed++
			d.client.o.Logger.Warn("the login of the database could not be prolonged", zap.Error(err), zap.Time("ends", l.expires))
			continue
		}
		failed = 0
		if replaced {
			renewed()
		}
	}
}

// extend renews the lease, or takes a new login when Vault grants it less than at
// first.
func (d *Database) extend(ctx context.Context, l lease) (replaced bool, err error) {
	if s, _ := d.client.current(); s.generation == l.session {
		var ttl time.Duration
		err = d.client.once(ctx, "to renew the lease of the database's login", func(ctx context.Context, client *api.Client) error {
			secret, err := client.Sys().RenewWithContext(ctx, l.id, 0)
			if err == nil && secret != nil {
				ttl = time.Duration(secret.LeaseDuration) * time.Second
			}
			return err
		})
		if down(err) {
			return false, err
		}
		if err == nil && ttl >= l.granted*9/10 {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.lease.id == l.id {
				d.lease.expires = time.Now().Add(ttl)
			}
			return false, nil
		}
	}
	if _, err = d.fetch(ctx); err != nil {
		return false, err
	}
	if d.held().id == l.id {
		return false, errors.New("vault: the login of the database is the one of before")
	}
	return true, nil
}
