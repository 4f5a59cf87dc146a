package vault_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials/vault"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials/vault/vaulttest"
)

func TestKeyIsReadWithItsVersion(t *testing.T) {
	vaulttest.Each(t, func(t *testing.T, s *vaulttest.Server) {
		_, key, _ := approle(t, s, time.Hour, time.Hour)
		wantKey(t, key, "xqok-c4n4ry-1", "1")
		s.Put(t, "xiaoqu/prod", map[string]any{"open_key": "\ufeffxqok-c4n4ry-2\n"})
		wantKey(t, key, "xqok-c4n4ry-2", "2")
		if note := key.Note(); !strings.Contains(note, "a byte order mark and a newline around the key was trimmed") {
			t.Errorf("note %q", note)
		}
		if place := key.Place(); place != "the field open_key of secret/xiaoqu/prod in Vault at "+s.URL {
			t.Errorf("place %q", place)
		}
	})
}

func TestKeyOfTheOldEngineHasNoVersion(t *testing.T) {
	vaulttest.Each(t, func(t *testing.T, s *vaulttest.Server) {
		s.Call(t, http.MethodPost, "sys/mounts/old", map[string]any{"type": "kv", "options": map[string]any{"version": "1"}})
		s.Call(t, http.MethodPost, "old/xiaoqu/prod", map[string]any{"open_key": "xqok-c4n4ry-old"})
		c, _, _ := approle(t, s, time.Hour, time.Hour)
		wantKey(t, c.Key("old/", "/xiaoqu/prod", "open_key"), "xqok-c4n4ry-old", "")
	})
}

func TestKeyThatIsNotThereIsRefusedByItsPlace(t *testing.T) {
	vaulttest.Each(t, func(t *testing.T, s *vaulttest.Server) {
		c, _, _ := approle(t, s, time.Hour, time.Hour)
		s.Put(t, "xiaoqu/odd", map[string]any{"n": 1, "token": "xqak-c4n4ry", "bad": "xqok-c4n\t4ry"})
		s.Put(t, "xiaoqu/gone", map[string]any{"open_key": "xqok-c4n4ry"})
		s.Call(t, http.MethodDelete, "secret/data/xiaoqu/gone", nil)
		s.Put(t, "others/key", map[string]any{"open_key": "xqok-c4n4ry"})
		for name, test := range map[string]struct {
			path, field string
			kind        credentials.Kind
			want        string
		}{
			"no secret":         {"xiaoqu/none", "open_key", credentials.StoreRefused, "there is nothing at secret/xiaoqu/none in Vault at " + s.URL},
			"deleted":           {"xiaoqu/gone", "open_key", credentials.StoreRefused, "`vault kv undelete -mount=secret -versions=1 xiaoqu/gone` brings it back"},
			"no right":          {"others/key", "open_key", credentials.StoreRefused, "refuses secret/others/key (HTTP 403"},
			"no field":          {"xiaoqu/odd", "open_key", credentials.StoreRefused, "there is no field of that name: the field open_key"},
			"no text":           {"xiaoqu/odd", "n", credentials.StoreRefused, "is not a text"},
			"a token":           {"xiaoqu/odd", "token", credentials.BadKey, "holds an access token"},
			"control character": {"xiaoqu/odd", "bad", credentials.BadKey, "holds a control character (U+0009)"},
		} {
			_, _, err := c.Key("secret", test.path, test.field).Current(t.Context())
			t.Log(name)
			wantError(t, err, test.kind, test.want)
		}
	})
}

func TestSealedVaultIsDownAndComesBack(t *testing.T) {
	vaulttest.Each(t, func(t *testing.T, s *vaulttest.Server) {
		c, key, said := approle(t, s, time.Hour, time.Hour)
		if h := c.Health(); h.Up || !h.Since.IsZero() {
			t.Errorf("health before the first question: %+v", h)
		}
		wantKey(t, key, "xqok-c4n4ry-1", "1")
		s.Seal(t)
		_, _, err := key.Current(t.Context())
		wantError(t, err, credentials.StoreDown, s.URL, "HTTP 503", "Vault is sealed")
		if h := c.Health(); h.Up || h.Since.IsZero() || !strings.Contains(h.Reason, "sealed") {
			t.Errorf("health %+v", h)
		}
		s.Unseal(t)
		eventually(t, "the key after the unsealing", func() bool {
			_, _, err := key.Current(t.Context())
			return err == nil
		})
		if h := c.Health(); !h.Up || h.Reason != "" {
			t.Errorf("health %+v", h)
		}
		for message, want := range map[string]int{"what is in memory goes on serving": 1, "Vault answers again": 1} {
			n := 0
			for _, entry := range said.log.All() {
				if strings.Contains(entry.Message, message) {
					n++
				}
			}
			if n != want {
				t.Errorf("%q is said %d times", message, n)
			}
		}
	})
}

func TestStartWaitsForVaultUpToItsBound(t *testing.T) {
	vaulttest.Each(t, func(t *testing.T, s *vaulttest.Server) {
		_, key, _ := approle(t, s, time.Hour, time.Hour)
		s.Seal(t)
		began := time.Now()
		_, _, err := key.Current(t.Context())
		wantError(t, err, credentials.StoreDown, s.URL, "sealed", "after waiting")
		if waited := time.Since(began); waited > 15*time.Second {
			t.Errorf("waited %s for a bound of 3 s", waited)
		}
		s.Unseal(t)
		wantKey(t, key, "xqok-c4n4ry-1", "1")
	})
}

func TestVaultThatIsNotThereIsNamed(t *testing.T) {
	c, err := vault.New(vault.Options{Address: "http://127.0.0.1:1", Auth: vault.AuthToken, Token: credentials.NewSecret("hvs.c4n4ry"), Wait: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Key("secret", "x", "y").Key(t.Context())
	wantError(t, err, credentials.StoreDown, "Vault at http://127.0.0.1:1 is not reachable", "connection refused")
}

func TestTroubleOnTheWireIsNamed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault    func(http.ResponseWriter, *http.Request) bool
		want     string
		attempts int
	}{
		"500":            {vaulttest.Answer("secret/", 500, `{"errors":["internal error: hvs.c4n4ry0123"]}`), "not ready (HTTP 500: internal error: [redacted])", 3},
		"502 with HTML":  {vaulttest.Answer("secret/", 502, "<html>c4n4ry</html>"), "not ready (HTTP 502)", 3},
		"429":            {vaulttest.Answer("secret/", 429, `{"errors":["rate limit"]}`), "not ready (HTTP 429: rate limit)", 3},
		"412 of a copy":  {vaulttest.Answer("secret/", 412, `{"errors":["required index state not present"]}`), "not ready (HTTP 412: required index", 3},
		"not JSON":       {vaulttest.Answer("secret/", 200, "c4n4ry"), "is not reachable", 1},
		"answer is lost": {hangUp, "is not reachable: EOF", 0}, // net/http repeats by itself too
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := vaulttest.StandIn(t)
			_, key, _ := approle(t, s, time.Hour, time.Hour)
			wantKey(t, key, "xqok-c4n4ry-1", "1")
			before := s.Count("GET secret/")
			s.Fault(test.fault)
			_, _, err := key.Current(t.Context())
			wantError(t, err, credentials.StoreDown, s.URL, test.want)
			if got := s.Count("GET secret/") - before; test.attempts > 0 && got != test.attempts {
				t.Errorf("%d attempts, want %d", got, test.attempts)
			}
			s.Fault(nil)
			wantKey(t, key, "xqok-c4n4ry-1", "1")
		})
	}
}

func hangUp(w http.ResponseWriter, _ *http.Request) bool {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
	return true
}

func TestSlowVaultEndsWithItsCaller(t *testing.T) {
	s := vaulttest.StandIn(t)
	_, key, _ := approle(t, s, time.Hour, time.Hour)
	wantKey(t, key, "xqok-c4n4ry-1", "1")
	s.Fault(func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	wanted := fmt.Errorf("the caller leaves")
	ctx, stop := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { stop(wanted) })
	if _, _, err := key.Current(ctx); err != wanted { //nolint:errorlint // the cause itself
		t.Errorf("got %v", err)
	}
}

func TestNewKeyIsNoticed(t *testing.T) {
	vaulttest.Each(t, func(t *testing.T, s *vaulttest.Server) {
		_, key, _ := approle(t, s, time.Hour, time.Hour)
		wantKey(t, key, "xqok-c4n4ry-1", "1")
		noticed := make(chan string, 10)
		during(t, func(ctx context.Context) {
			key.Watch(ctx, 50*time.Millisecond, func(_ context.Context, version string) { noticed <- version })
		})
		s.Put(t, "xiaoqu/prod", map[string]any{"open_key": "xqok-c4n4ry-1", "comment": "the key is the same"})
		s.Put(t, "xiaoqu/prod", map[string]any{"open_key": "xqok-c4n4ry-3"})
		select {
		case version := <-noticed:
			if version != "3" {
				t.Errorf("noticed version %s", version)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("not noticed")
		}
	})
}

func TestOnlyTheOptionsCount(t *testing.T) {
	wrong := vaulttest.StandIn(t)
	right := vaulttest.StandIn(t)
	for name, value := range map[string]string{
		"VAULT_AGENT_ADDR": wrong.URL, "VAULT_ADDR": wrong.URL, "VAULT_TOKEN": "hvs.other", "VAULT_NAMESPACE": "other",
		"VAULT_HEADERS": `{"X-Other":"1"}`, "VAULT_MAX_RETRIES": "50", "VAULT_SKIP_VERIFY": "true",
	} {
		t.Setenv(name, value)
	}
	var spoiled atomic.Int64
	right.Fault(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("X-Other")+r.Header.Get("X-Vault-Namespace") != "team" {
			spoiled.Add(1)
		}
		return false
	})
	right.Put(t, "xiaoqu/prod", map[string]any{"open_key": "xqok-c4n4ry-1"})
	c, _ := open(t, right, vault.Options{Auth: vault.AuthToken, Token: credentials.NewSecret(right.Root()), Namespace: "team"})
	wantKey(t, c.Key("secret", "xiaoqu/prod", "open_key"), "xqok-c4n4ry-1", "1")
	if n := wrong.Count(""); n > 0 || spoiled.Load() > 0 {
		t.Errorf("%d requests went elsewhere, %d had other headers", n, spoiled.Load())
	}
}

func TestAuthorityOfTheOptionsIsTrusted(t *testing.T) {
	s := vaulttest.StandIn(t)
	s.Put(t, "xiaoqu/prod", map[string]any{"open_key": "xqok-c4n4ry-1"})
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(target))
	defer front.Close()
	front.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	file := filepath.Join(t.TempDir(), "ca.pem")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	if err := os.WriteFile(file, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	for ca, ok := range map[string]bool{file: true, "": false} {
		c, err := vault.New(vault.Options{
			Address: front.URL, CACert: ca, Auth: vault.AuthToken, Token: credentials.NewSecret(s.Root()), Wait: time.Millisecond * 500,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Key("secret", "xiaoqu/prod", "open_key").Key(t.Context()); (err == nil) != ok {
			t.Errorf("with the authority %q: %v", ca, err)
		} else if !ok {
			wantError(t, err, credentials.StoreDown, "certificate")
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte("c4n4ry"), 0o600); err != nil {
		t.Fatal(err)
	}
	token := credentials.NewSecret("hvs.c4n4ry")
	for name, test := range map[string]struct {
		o    vault.Options
		want string
	}{
		"no address":      {vault.Options{Auth: vault.AuthToken, Token: token}, "VAULT_ADDR is not set"},
		"not an address":  {vault.Options{Address: "vault:8200", Auth: vault.AuthToken, Token: token}, "VAULT_ADDR is not an address"},
		"a password":      {vault.Options{Address: "https://u:c4n4ry@vault", Auth: vault.AuthToken, Token: token}, "VAULT_ADDR is not an address"},
		"no way in":       {vault.Options{Address: "https://vault"}, "is no way to log in"},
		"no token":        {vault.Options{Address: "https://vault", Auth: vault.AuthToken}, "needs VAULT_TOKEN"},
		"no secret id":    {vault.Options{Address: "https://vault", Auth: vault.AuthAppRole, RoleID: "r"}, "XIAOQU_VAULT_SECRET_ID"},
		"two secret ids":  {vault.Options{Address: "https://vault", Auth: vault.AuthAppRole, RoleID: "r", SecretID: token, SecretIDFile: "f"}, "one of"},
		"no role":         {vault.Options{Address: "https://vault", Auth: vault.AuthKubernetes}, "XIAOQU_VAULT_ROLE"},
		"no token file":   {vault.Options{Address: "https://vault", Auth: vault.AuthTokenFile}, "XIAOQU_VAULT_TOKEN_FILE"},
		"no such CA file": {vault.Options{Address: "https://vault", Auth: vault.AuthToken, Token: token, CACert: file + "x"}, "no such file"},
		"no CA in it":     {vault.Options{Address: "https://vault", Auth: vault.AuthToken, Token: token, CACert: file}, "the client can't be made"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := vault.New(test.o)
			wantError(t, err, credentials.BadKey, test.want)
		})
	}
}

// TestPolicyOfTheDeploymentSuffices does with the policy that operators install, and
// without Vault's default one, all that the program does.
func TestPolicyOfTheDeploymentSuffices(t *testing.T) {
	t.Parallel()
	s := vaulttest.Real(t)
	role := s.AppRole(t, 2*time.Second, time.Hour)
	policy, err := os.ReadFile("../../deploy/vault/policy.hcl")
	if err != nil {
		t.Fatal(err)
	}
	s.Call(t, http.MethodPut, "sys/policies/acl/sync", map[string]any{"policy": string(policy)})
	s.Call(t, http.MethodPost, "auth/approle/role/sync", map[string]any{"token_no_default_policy": true})
	lent(t, s, 2*time.Second, time.Hour)
	s.Put(t, "xiaoqu/prod", map[string]any{"open_key": "xqok-c4n4ry-1"})
	s.Put(t, "xiaoqu/other", map[string]any{"open_key": "xqok-c4n4ry-2"})

	c, _ := open(t, s, vault.Options{Auth: vault.AuthAppRole, RoleID: role, SecretID: credentials.NewSecret(s.SecretID(t))})
	wantKey(t, c.Key("secret", "xiaoqu/prod", "open_key"), "xqok-c4n4ry-1", "1")
	_, err = c.Key("secret", "xiaoqu/other", "open_key").Key(t.Context())
	wantError(t, err, credentials.StoreRefused, "HTTP 403")
	db := c.Database("database/creds/xiaoqu", "password")
	if _, _, err := db.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	during(t, c.Keep)
	during(t, func(ctx context.Context) { db.Keep(ctx, func() {}) })
	eventually(t, "token and lease are renewed", func() bool {
		return s.Count("PUT auth/token/renew-self") > 0 && s.Count("PUT sys/leases/renew") > 0
	})
	if n := s.Count("PUT auth/approle/login"); n != 1 {
		t.Errorf("%d logins: a right is missing", n)
	}
	c.Close(context.Background())
	if c.Close(context.Background()); s.Count("PUT auth/token/revoke-self") != 2 {
		t.Error("the login was not given back")
	}
}
