package vault

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/vault/api"
	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
)

// The ways to log in.
const (
	AuthToken      = "token"      // a token that somebody gave us
	AuthAppRole    = "approle"    // a role id and a secret id
	AuthKubernetes = "kubernetes" // the pod's service account
	AuthTokenFile  = "token_file" // a file that Vault Agent keeps
)

const (
	// requestTimeout bounds one question with the library's own two repetitions.
	requestTimeout = 15 * time.Second
	defaultWait    = time.Minute
)

// Options say where Vault is and who we are there.
type Options struct {
	Address   string // VAULT_ADDR
	Namespace string // VAULT_NAMESPACE, "" for none
	CACert    string // VAULT_CACERT: a PEM file, "" for the system's authorities

	Auth         string             // one of the Auth constants
	Token        credentials.Secret // token
	TokenFile    string             // token_file
	RoleID       string             // approle
	SecretID     credentials.Secret // approle: the secret id, or a wrapping token that holds it
	SecretIDFile string             // approle: the same in a file, read at every login
	Role         string             // kubernetes
	JWTFile      string             // kubernetes: the service account's token; "" for the pod's

	Wait     time.Duration // how long the first answer is waited for; 0 means 60 s
	Logger   *zap.Logger   // nil logs nothing
	OnSecret func(string)  // told every new secret before it is used; nil is fine
}

// Client is logged in to one Vault, as soon as something is asked. It is safe for
// concurrent use.
type Client struct {
	o     Options
	read  *api.Client // repeats what may be repeated
	write *api.Client // never repeats: a login can use up its secret id
	gate  chan struct{}

	unwrapped [2]string // the wrapping token that was opened, and what was in it; guarded by the gate

	mu      sync.Mutex
	session session
	turned  chan struct{} // closed when the session is replaced
	spoke   bool          // Vault answered once
	health  Health
}

// Health is how Vault looked when it was asked last.
type Health struct {
	Up     bool      // it gave what was asked
	Since  time.Time // of the last change; zero before the first question
	Reason string    // why it is not up
}

// New checks the options. Nothing is sent.
func New(o Options) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Wait <= 0 {
		o.Wait = defaultWait
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.OnSecret == nil {
		o.OnSecret = func(string) {}
	}
	c := &Client{o: o, gate: make(chan struct{}, 1), turned: make(chan struct{})}
	var err error
	if c.read, err = o.library(2); err == nil {
		c.write, err = o.library(0)
	}
	if err != nil {
		return nil, wrong("the client can't be made: %v", credentials.Scrub(err))
	}
	if strings.HasPrefix(o.Address, "http://") && !loopback(o.Address) {
		o.Logger.Warn("VAULT_ADDR is http: secrets cross the network unencrypted")
	}
	return c, nil
}

func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func (o Options) check() error {
	u, err := url.Parse(o.Address)
	switch {
	case o.Address == "":
		return wrong("VAULT_ADDR is not set: set it to Vault's address, such as https://vault.example.com:8200")
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil:
		return wrong("VAULT_ADDR is not an address like https://vault.example.com:8200")
	}
	given := map[string]struct {
		ok   bool
		what string
	}{
		AuthToken:      {!o.Token.IsZero(), "VAULT_TOKEN"},
		AuthAppRole:    {o.RoleID != "" && o.SecretID.IsZero() != (o.SecretIDFile == ""), "XIAOQU_VAULT_ROLE_ID and one of XIAOQU_VAULT_SECRET_ID and XIAOQU_VAULT_SECRET_ID_FILE"},
		AuthKubernetes: {o.Role != "", "XIAOQU_VAULT_ROLE"},
		AuthTokenFile:  {o.TokenFile != "", "XIAOQU_VAULT_TOKEN_FILE"},
	}
	if need, known := given[o.Auth]; !known {
		return wrong("%q is no way to log in: token, approle, kubernetes or token_file", o.Auth)
	} else if !need.ok {
		return wrong("logging in by %s needs %s", o.Auth, need.what)
	}
	return nil
}

// library makes a client of the library that knows nothing but the options:
// DefaultConfig and NewClient read VAULT_*, and VAULT_AGENT_ADDR would win over
// the address.
func (o Options) library(retries int) (*api.Client, error) {
	config := api.DefaultConfig() // never a literal: that has no deadline
	config.Address, config.AgentAddress = o.Address, ""
	config.MaxRetries, config.Timeout, config.Limiter, config.SRVLookup = retries, requestTimeout, nil, false
	transport := config.HttpClient.Transport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	transport.MaxResponseHeaderBytes = 64 << 10
	config.HttpClient = &http.Client{Transport: transport, CheckRedirect: config.HttpClient.CheckRedirect}
	if err := config.ConfigureTLS(&api.TLSConfig{CACert: o.CACert}); err != nil {
		return nil, err
	}
	client, err := api.NewClient(config)
	if err != nil {
		return nil, err
	}
	client.SetHeaders(http.Header{api.RequestHeaderName: {"true"}})
	client.ClearToken()
	client.ClearNamespace()
	if o.Namespace != "" {
		client.SetNamespace(o.Namespace)
	}
	return client, nil
}

// Health tells how Vault looked when it was asked last; it asks nothing.
func (c *Client) Health() Health {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.health
}

// note keeps the health, and says aloud when it turns.
func (c *Client) note(err error) {
	up, reason := err == nil, ""
	if err != nil {
		reason = err.Error()
	}
	c.mu.Lock()
	turned := c.health.Since.IsZero() && !up || !c.health.Since.IsZero() && c.health.Up != up
	if c.health.Up != up || c.health.Since.IsZero() {
		c.health.Since = time.Now()
	}
	c.health.Up, c.health.Reason = up, reason
	c.spoke = c.spoke || up
	c.mu.Unlock()
	switch {
	case turned && up:
		c.o.Logger.Info("Vault answers again", zap.String("address", c.o.Address))
	case turned:
		c.o.Logger.Warn("Vault does not give what is asked; what is in memory goes on serving", zap.Error(err))
	}
}

// ask runs f with a valid login. A refusal may mean that the login ended (expired,
// revoked): then f runs once more with a new one. The error is *credentials.Error
// or the context's.
func (c *Client) ask(ctx context.Context, what string, f func(ctx context.Context, client *api.Client) error) error {
	err := c.patiently(ctx, func(ctx context.Context) error {
		held, err := c.login(ctx, 0)
		if err != nil {
			return err
		}
		if err = c.once(ctx, what, f); refused(err) && c.ended(ctx) {
			if _, err = c.login(ctx, held.generation); err == nil {
				err = c.once(ctx, what, f)
			}
		}
		return err
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.note(err)
	return err
}

func (c *Client) once(ctx context.Context, what string, f func(ctx context.Context, client *api.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.fail(what, f(ctx, c.read))
}

// ended tells that Vault no longer knows our token, rather than that the token
// lacks a right.
func (c *Client) ended(ctx context.Context) bool {
	return refused(c.once(ctx, "the token", func(ctx context.Context, client *api.Client) error {
		_, err := client.Auth().Token().LookupSelfWithContext(ctx)
		return err
	}))
}

// patiently repeats f while Vault is down, for as long as a start may wait. After
// the first answer it is impatient: the caller has something to go on with.
func (c *Client) patiently(ctx context.Context, f func(context.Context) error) error {
	c.mu.Lock()
	spoke := c.spoke
	c.mu.Unlock()
	if spoke {
		return f(ctx)
	}
	began := time.Now()
	growing := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(500*time.Millisecond), backoff.WithMultiplier(2),
		backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(c.o.Wait),
	)
	bounded, cancel := context.WithTimeout(ctx, c.o.Wait)
	defer cancel()
	// What is said in the end when the time runs out in the middle of an attempt.
	last := error(&credentials.Error{Kind: credentials.StoreDown, Op: op, Message: fmt.Sprintf("Vault at %s gives no answer", c.o.Address)})
	err := backoff.RetryNotify(func() error {
		err := f(bounded)
		if err != nil && bounded.Err() == nil {
			last = err
		}
		if err != nil && !down(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(growing, bounded), func(err error, wait time.Duration) {
		c.o.Logger.Warn("waiting for Vault", zap.Error(err), zap.Duration("wait", wait), zap.Duration("at_most", c.o.Wait))
	})
	if err != nil {
		return waited(last, time.Since(began))
	}
	return nil
}
