package vault_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials/vault"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials/vault/vaulttest"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

// The client library reads VAULT_* at every turn; whoever runs the tests may have
// some.
func TestMain(m *testing.M) {
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "VAULT_") {
			_ = os.Unsetenv(name)
		}
	}
	os.Exit(localpg.Main(m))
}

// told gathers what a client says: its log, and its secrets.
type told struct {
	log *observer.ObservedLogs

	mu      sync.Mutex
	secrets []string
}

func (s *told) secret(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets = append(s.secrets, value)
}

// clean fails the test when a secret stands in a log line or in one of the texts.
func (s *told) clean(t *testing.T, texts ...string) {
	t.Helper()
	for _, entry := range s.log.All() {
		texts = append(texts, entry.Message)
		for _, field := range entry.Context {
			texts = append(texts, field.String)
			if err, ok := field.Interface.(error); ok {
				texts = append(texts, err.Error())
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range texts {
		for _, secret := range append(s.secrets, "c4n4ry") {
			if len(secret) > 4 && strings.Contains(text, secret) {
				t.Errorf("%q gives %q away", text, secret)
			}
		}
	}
}

// open makes a client of the server; by is how it logs in.
func open(t *testing.T, s *vaulttest.Server, by vault.Options) (*vault.Client, *told) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	said := &told{log: logs}
	by.Address, by.Logger, by.OnSecret = s.URL, zap.New(core), said.secret
	if by.Wait == 0 {
		by.Wait = 3 * time.Second
	}
	c, err := vault.New(by)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { said.clean(t) })
	return c, said
}

// approle gives a client by AppRole and a secret with the key of version 1.
func approle(t *testing.T, s *vaulttest.Server, ttl, most time.Duration) (*vault.Client, *vault.Key, *told) {
	t.Helper()
	s.Put(t, "xiaoqu/prod", map[string]any{"open_key": "xqok-c4n4ry-1"})
	c, said := open(t, s, vault.Options{Auth: vault.AuthAppRole, RoleID: s.AppRole(t, ttl, most), SecretID: credentials.NewSecret(s.SecretID(t))})
	return c, c.Key("secret", "xiaoqu/prod", "open_key"), said
}

// during runs f beside the test and ends it with the test.
func during(t *testing.T, f func(context.Context)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

func wantKey(t *testing.T, k *vault.Key, value, version string) {
	t.Helper()
	key, got, err := k.Current(t.Context())
	if err != nil || key.Reveal() != value || got != version {
		t.Errorf("key %q of version %q, %v; want %q of %q", key.Reveal(), got, err, value, version)
	}
}

// wantError checks an error's kind and text, and that it gives nothing away.
func wantError(t *testing.T, err error, kind credentials.Kind, texts ...string) {
	t.Helper()
	var failure *credentials.Error
	if !errors.As(err, &failure) || failure.Kind != kind {
		t.Fatalf("got %v, want the kind %s", err, kind)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v\ndoes not say %q", err, text)
		}
	}
	if strings.Contains(err.Error(), "c4n4ry") {
		t.Errorf("%v gives a secret away", err)
	}
}

func revoke(t *testing.T, s *vaulttest.Server, token string) {
	t.Helper()
	s.Call(t, http.MethodPost, "auth/token/revoke", map[string]any{"token": token})
}
