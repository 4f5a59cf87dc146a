package vault_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials/vault"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials/vault/vaulttest"
)

func secretFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	write(t, path, content)
	return path
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTokenIsRenewedUntilItsMaximumAndThenReplaced(t *testing.T) {
	vaulttest.Each(t, func(t *testing.T, s *vaulttest.Server) {
		c, key, _ := approle(t, s, 5*time.Second, 12*time.Second)
		wantKey(t, key, "xqok-c4n4ry-1", "1")
		during(t, c.Keep)
		eventually(t, "a second login", func() bool {
			wantKey(t, key, "xqok-c4n4ry-1", "1")
			return s.Count("PUT auth/approle/login") >= 2
		})
		if n := s.Count("PUT auth/token/renew-self"); n < 2 {
			t.Errorf("renewed %d times", n)
		}
		if n := s.Count("GET auth/token/lookup-self"); n > 0 {
			t.Errorf("the token was found dead %d times: the new login came too late", n)
		}
	})
}

func TestTokenThatWasRevokedIsReplaced(t *testing.T) {
	vaulttest.Each(t, func(t *testing.T, s *vaulttest.Server) {
		_, key, said := approle(t, s, time.Hour, time.Hour)
		wantKey(t, key, "xqok-c4n4ry-1", "1")
		for _, secret := range said.secrets {
			if strings.HasPrefix(secret, "hvs.") {
				revoke(t, s, secret)
			}
		}
		wantKey(t, key, "xqok-c4n4ry-1", "1")
		if n := s.Count("PUT auth/approle/login"); n != 2 {
			t.Errorf("%d logins", n)
		}
	})
}

func TestLostRightIsNoReasonToLogInAgain(t *testing.T) {
	vaulttest.Each(t, func(t *testing.T, s *vaulttest.Server) {
		c, _, _ := approle(t, s, time.Hour, time.Hour)
		for range 3 {
			_, err := c.Key("secret", "others/key", "open_key").Key(t.Context())
			wantError(t, err, credentials.StoreRefused, "HTTP 403")
		}
		if n := s.Count("PUT auth/approle/login"); n != 1 {
			t.Errorf("%d logins", n)
		}
	})
}

func TestWrappedSecretIDIsOpenedOnceAndKept(t *testing.T) {
	vaulttest.Each(t, func(t *testing.T, s *vaulttest.Server) {
		s.Put(t, "xiaoqu/prod", map[string]any{"open_key": "xqok-c4n4ry-1"})
		by := vault.Options{Auth: vault.AuthAppRole, RoleID: s.AppRole(t, time.Hour, time.Hour), SecretIDFile: secretFile(t, s.WrappedSecretID(t)+"\n")}
		c, said := open(t, s, by)
		key := c.Key("secret", "xiaoqu/prod", "open_key")
		wantKey(t, key, "xqok-c4n4ry-1", "1")
		revoke(t, s, said.secrets[len(said.secrets)-2]) // the token: the last but the key
		wantKey(t, key, "xqok-c4n4ry-1", "1")
		if n := s.Count("PUT auth/approle/login"); n != 2 {
			t.Errorf("%d logins", n)
		}
		second, _ := open(t, s, by)
		_, err := second.Key("secret", "xiaoqu/prod", "open_key").Key(t.Context())
		wantError(t, err, credentials.StoreRefused, "unwrap the secret id", "somebody else has the secret id")
	})
}

func TestLoginThatIsRefusedSaysSoAtOnce(t *testing.T) {
	vaulttest.Each(t, func(t *testing.T, s *vaulttest.Server) {
		role := s.AppRole(t, time.Hour, time.Hour)
		for name, test := range map[string]struct {
			by   vault.Options
			want string
		}{
			"secret id": {vault.Options{Auth: vault.AuthAppRole, RoleID: role, SecretID: credentials.NewSecret("c4n4ry-c4n4ry")}, "refuses the login at auth/approle/login (HTTP 400"},
			"token":     {vault.Options{Auth: vault.AuthToken, Token: credentials.NewSecret("hvs.c4n4ryc4n4ry")}, "refuses the token of VAULT_TOKEN (HTTP 403"},
			"no file":   {vault.Options{Auth: vault.AuthAppRole, RoleID: role, SecretIDFile: "/none/x"}, "/none/x can't be read"},
			"odd file":  {vault.Options{Auth: vault.AuthAppRole, RoleID: role, SecretIDFile: secretFile(t, "c4n4ry c4n4ry")}, "holds a character that no secret has"},
		} {
			t.Log(name)
			test.by.Wait = time.Minute
			c, _ := open(t, s, test.by)
			began := time.Now()
			_, err := c.Key("secret", "xiaoqu/prod", "open_key").Key(t.Context())
			wantError(t, err, credentials.StoreRefused, test.want)
			if waited := time.Since(began); waited > 20*time.Second {
				t.Errorf("waited %s", waited)
			}
		}
	})
}

func TestLoginIsNotRepeatedBehindOurBack(t *testing.T) {
	t.Parallel()
	s := vaulttest.StandIn(t)
	role := s.AppRole(t, time.Hour, time.Hour)
	c, _ := open(t, s, vault.Options{Auth: vault.AuthAppRole, RoleID: role, SecretID: credentials.NewSecret(s.SecretID(t)), Wait: 200 * time.Millisecond}) // less than our own first pause, 250 ms at least
	s.Fault(vaulttest.Answer("auth/approle/login", 500, `{"errors":[]}`))
	_, err := c.Key("secret", "x", "y").Key(t.Context())
	wantError(t, err, credentials.StoreDown, "HTTP 500")
	if n := s.Count("PUT auth/approle/login"); n != 1 {
		t.Errorf("%d logins: each may use up the secret id", n)
	}
}

func TestTokenFileIsReadAgain(t *testing.T) {
	vaulttest.Each(t, func(t *testing.T, s *vaulttest.Server) {
		s.Put(t, "xiaoqu/prod", map[string]any{"open_key": "xqok-c4n4ry-1"})
		path := filepath.Join(t.TempDir(), "token")
		c, _ := open(t, s, vault.Options{Auth: vault.AuthTokenFile, TokenFile: path})
		key := c.Key("secret", "xiaoqu/prod", "open_key")
		time.AfterFunc(200*time.Millisecond, func() { write(t, path, s.Root()+"\n") }) // Vault Agent comes later
		wantKey(t, key, "xqok-c4n4ry-1", "1")
		write(t, path, "hvs.c4n4rydead")
		_, err := key.Key(t.Context())
		wantError(t, err, credentials.StoreRefused, "HTTP 403")
		write(t, path, s.Root())
		wantKey(t, key, "xqok-c4n4ry-1", "1")
	})
}

func TestGivenTokenIsRenewedAndItsEndIsSaid(t *testing.T) {
	t.Parallel()
	s := vaulttest.Real(t)
	s.Put(t, "xiaoqu/prod", map[string]any{"open_key": "xqok-c4n4ry-1"})
	auth, _ := s.Call(t, http.MethodPost, "auth/token/create", map[string]any{"ttl": "3s", "explicit_max_ttl": "7s", "policies": []string{"root"}})["auth"].(map[string]any)
	token, _ := auth["client_token"].(string)
	c, said := open(t, s, vault.Options{Auth: vault.AuthToken, Token: credentials.NewSecret(token)})
	key := c.Key("secret", "xiaoqu/prod", "open_key")
	wantKey(t, key, "xqok-c4n4ry-1", "1")
	during(t, c.Keep)
	// On a machine that is busy it may come after the end, as a failure.
	eventually(t, "the warning", func() bool {
		return said.log.FilterMessageSnippet("comes to its end").Len()+said.log.FilterMessageSnippet("could not be prolonged").Len() > 0
	})
	if n := s.Count("PUT auth/token/renew-self"); n < 2 {
		t.Errorf("renewed %d times", n)
	}
	eventually(t, "the end", func() bool {
		_, err := key.Key(t.Context())
		return err != nil
	})
	_, err := key.Key(t.Context())
	wantError(t, err, credentials.StoreRefused, "HTTP 403")
}

func TestCloseGivesBackOnlyOurOwnLogin(t *testing.T) {
	vaulttest.Each(t, func(t *testing.T, s *vaulttest.Server) {
		c, key, said := approle(t, s, time.Hour, time.Hour)
		wantKey(t, key, "xqok-c4n4ry-1", "1")
		token := said.secrets[len(said.secrets)-2]
		c.Close(context.Background())
		given, _ := open(t, s, vault.Options{Auth: vault.AuthToken, Token: credentials.NewSecret(token)})
		_, err := given.Key("secret", "xiaoqu/prod", "open_key").Key(t.Context())
		wantError(t, err, credentials.StoreRefused, "HTTP 403")

		root, _ := open(t, s, vault.Options{Auth: vault.AuthToken, Token: credentials.NewSecret(s.Root())})
		mine := root.Key("secret", "xiaoqu/prod", "open_key")
		wantKey(t, mine, "xqok-c4n4ry-1", "1")
		root.Close(context.Background())
		wantKey(t, mine, "xqok-c4n4ry-1", "1")
	})
}

func TestKubernetesAccountIsReadAtEveryLogin(t *testing.T) {
	t.Parallel()
	s := vaulttest.Real(t)
	account, other := s.Kubernetes(t)
	s.Put(t, "xiaoqu/prod", map[string]any{"open_key": "xqok-c4n4ry-1"})
	path := secretFile(t, other)
	c, said := open(t, s, vault.Options{Auth: vault.AuthKubernetes, Role: "sync", JWTFile: path})
	key := c.Key("secret", "xiaoqu/prod", "open_key")
	_, err := key.Key(t.Context())
	wantError(t, err, credentials.StoreRefused, "refuses the login at auth/kubernetes/login (HTTP 403")
	write(t, path, account) // Kubernetes rotates the file
	wantKey(t, key, "xqok-c4n4ry-1", "1")
	revoke(t, s, said.secrets[len(said.secrets)-2])
	wantKey(t, key, "xqok-c4n4ry-1", "1")
	if n := s.Count("PUT auth/kubernetes/login"); n != 3 {
		t.Errorf("%d logins", n)
	}
}
