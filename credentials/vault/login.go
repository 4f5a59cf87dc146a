package vault

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/hashicorp/vault/api"
	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
)

// podToken is where Kubernetes keeps the service account's token, and rotates it.
const podToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// session is one login.
type session struct {
	generation int // grows with every login; 0: none yet
	token      string
	granted    time.Duration // what the token was first good for; 0: for ever
	expires    time.Time     // zero: never
	renewable  bool
}

// again tells whether we can log in by ourselves once more.
func (o Options) again() bool { return o.Auth == AuthAppRole || o.Auth == AuthKubernetes }

func (c *Client) current() (session, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.turned
}

// login gives a session newer than the given generation. One login runs at a time,
// and those who waited for it share it.
func (c *Client) login(ctx context.Context, than int) (session, error) {
	if s, _ := c.current(); s.generation > than && c.o.Auth != AuthTokenFile {
		return s, nil
	}
	select {
	case c.gate <- struct{}{}:
		defer func() { <-c.gate }()
	case <-ctx.Done():
		return session{}, context.Cause(ctx)
	}
	held, _ := c.current()
	if held.generation > than && c.o.Auth != AuthTokenFile {
		return held, nil
	}
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s, err := c.enter(bounded)
	if err != nil {
		return session{}, err
	}
	if s.token == held.token {
		return held, nil // the one that we were given has not changed
	}
	return c.install(s), nil
}

func (c *Client) install(s session) session {
	c.o.OnSecret(s.token)
	c.read.SetToken(s.token)
	c.write.SetToken(s.token)
	c.mu.Lock()
	defer c.mu.Unlock()
	s.generation = c.session.generation + 1
	c.session = s
	close(c.turned)
	c.turned = make(chan struct{})
	c.o.Logger.Info("logged in to Vault", zap.String("auth", c.o.Auth), zap.Duration("ttl", s.granted), zap.Bool("renewable", s.renewable))
	return s
}

// enter logs in. Its errors are *credentials.Error.
func (c *Client) enter(ctx context.Context) (session, error) {
	switch c.o.Auth {
	case AuthAppRole:
		id, err := c.secretID(ctx)
		if err != nil {
			return session{}, err
		}
		return c.post(ctx, "auth/approle/login", map[string]any{"role_id": c.o.RoleID, "secret_id": id})
	case AuthKubernetes:
		path := c.o.JWTFile
		if path == "" {
			path = podToken
		}
		jwt, err := c.secretFile(path)
		if err != nil {
			return session{}, err
		}
		return c.post(ctx, "auth/kubernetes/login", map[string]any{"role": c.o.Role, "jwt": jwt})
	case AuthTokenFile:
		token, err := c.secretFile(c.o.TokenFile)
		if err != nil {
			// Vault Agent may start later than we do.
			return session{}, &credentials.Error{Kind: credentials.StoreDown, Op: op, Message: "no token of Vault Agent yet", Err: err}
		}
		return session{token: token}, nil
	default:
		return c.adopt(ctx)
	}
}

func (c *Client) post(ctx context.Context, path string, body map[string]any) (session, error) {
	secret, err := c.write.Logical().WriteWithContext(ctx, path, body)
	if err != nil {
		return session{}, c.fail("the login at "+path, err)
	}
	if secret == nil || secret.Auth == nil || secret.Auth.ClientToken == "" {
		return session{}, refusal("Vault at %s answers the login at %s without a token", c.o.Address, path)
	}
	return entered(secret.Auth.ClientToken, time.Duration(secret.Auth.LeaseDuration)*time.Second, secret.Auth.Renewable), nil
}

func entered(token string, ttl time.Duration, renewable bool) session {
	s := session{token: token, granted: ttl, renewable: renewable}
	if ttl > 0 {
		s.expires = time.Now().Add(ttl)
	}
	return s
}

// adopt takes the token that we were given, and asks Vault how long it lasts.
func (c *Client) adopt(ctx context.Context) (session, error) {
	token := c.o.Token.Reveal()
	c.o.OnSecret(token)
	c.write.SetToken(token)
	secret, err := c.write.Auth().Token().LookupSelfWithContext(ctx)
	if err != nil {
		return session{}, c.fail("the token of VAULT_TOKEN", err)
	}
	ttl, err := secret.TokenTTL()
	if err != nil {
		return session{}, c.fail("the token of VAULT_TOKEN", err)
	}
	renewable, err := secret.TokenIsRenewable()
	if err != nil {
		return session{}, c.fail("the token of VAULT_TOKEN", err)
	}
	return entered(token, ttl, renewable), nil
}

// secretID gives the secret id, out of its wrapping if it has one. Secret ids are
// UUIDs; Vault's tokens, wrapping tokens too, begin with hvs. or, of old, s.
func (c *Client) secretID(ctx context.Context) (string, error) {
	id := c.o.SecretID.Reveal()
	if c.o.SecretIDFile != "" {
		var err error
		if id, err = c.secretFile(c.o.SecretIDFile); err != nil {
			return "", err
		}
	}
	c.o.OnSecret(id)
	if !strings.HasPrefix(id, "hvs.") && !strings.HasPrefix(id, "s.") {
		return id, nil
	}
	if c.unwrapped[0] == id {
		return c.unwrapped[1], nil
	}
	secret, err := c.write.Logical().UnwrapWithContext(ctx, id)
	if err != nil {
		err := c.fail("to unwrap the secret id", err)
		if refused(err) {
			return "", fmt.Errorf("%w: its wrapping was opened before, or is too old. If nobody of yours opened it, somebody else has the secret id: destroy it, and issue a new one", err)
		}
		return "", err
	}
	opened := field(secret, "secret_id")
	if opened == "" {
		return "", refusal("what was wrapped is no secret id: write it with -wrap-ttl to auth/approle/role/ROLE/secret-id")
	}
	c.o.OnSecret(opened)
	c.unwrapped = [2]string{id, opened}
	return opened, nil
}

func field(secret *api.Secret, name string) string {
	if secret == nil {
		return ""
	}
	value, _ := secret.Data[name].(string)
	return value
}

// secretFile reads a secret of ours for Vault, trimmed.
func (c *Client) secretFile(path string) (string, error) {
	raw, note, err := credentials.ReadSecretFile(path)
	if err != nil {
		return "", refusal("%v", err)
	}
	// Kubernetes and Vault Agent choose their files' modes: no warning to act on.
	if note != "" && c.o.Auth == AuthAppRole {
		c.o.Logger.Warn("a secret's file", zap.String("note", note))
	}
	value := strings.TrimFunc(raw, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' })
	if value == "" || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", refusal("%s is empty or holds a character that no secret has", path)
	}
	c.o.OnSecret(value)
	return value, nil
}
