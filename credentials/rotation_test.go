package credentials_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
)

// shelf is a store that a test writes to.
type shelf struct {
	mu      sync.Mutex
	key     string
	version string
	err     error
}

func (s *shelf) put(key, version string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.version, s.err = key, version, err
}

func (s *shelf) Current(context.Context) (credentials.Secret, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return credentials.NewSecret(s.key), s.version, s.err
}

func (s *shelf) Key(ctx context.Context) (credentials.Secret, error) {
	key, _, err := s.Current(ctx)
	return key, err
}

func (s *shelf) Place() string { return "the shelf" }

// onlyKey takes one key and refuses the others.
func onlyKey(key string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Open-Key") != key {
			reply(401, `{"code":"UNAUTHENTICATED"}`)(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"token":"xqak-for-`+strings.TrimPrefix(key, "xqok-")+`"}`)
	}
}

// rotating runs body on a fake clock with a service whose first key, version 1,
// works and has brought a token.
func rotating(t *testing.T, body func(*testing.T, *pipes, *shelf, *credentials.Service)) {
	t.Helper()
	bubble(t, func(t *testing.T, server *pipes) {
		store := &shelf{key: "xqok-c4n4ry-old", version: "1"}
		server.handle(onlyKey("xqok-c4n4ry-old"))
		s := service(t, credentials.Options{BaseURL: server.url, HTTP: server.transport, Keys: store, Grace: credentials.DefaultGrace})
		if _, _, err := s.Token(t.Context()); err != nil {
			t.Fatal(err)
		}
		body(t, server, store, s)
	})
}

func TestRotationThatIsCompletedInTimeIsOutlasted(t *testing.T) {
	rotating(t, func(t *testing.T, server *pipes, store *shelf, s *credentials.Service) {
		server.handle(onlyKey("xqok-new"))
		time.AfterFunc(90*time.Second, func() { store.put("xqok-new", "2", nil) })
		began := time.Now()
		if err := s.Renew(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < 90*time.Second || waited > 110*time.Second {
			t.Errorf("noticed after %s", waited)
		}
		token, generation, err := s.Token(t.Context())
		if token != "xqak-for-new" || generation != 2 || err != nil || s.KeyVersion() != "2" {
			t.Errorf("token %q, generation %d, version %q, %v", token, generation, s.KeyVersion(), err)
		}
		// The first, the one that was refused, the one that brought the new token.
		if got := server.calls.Load(); got != 3 {
			t.Errorf("%d exchanges", got)
		}
	})
}

func TestRotationLeftHalfDoneSaysWhichStepIsMissing(t *testing.T) {
	down := &credentials.Error{Kind: credentials.StoreDown, Op: "vault", Message: "Vault is sealed"}
	for name, test := range map[string]struct {
		after func(*shelf)
		kind  credentials.Kind
		want  string
	}{
		"the store was not updated": {
			func(*shelf) {}, credentials.Refused,
			"was rotated or revoked in Xiaoqu's admin console, but the shelf still holds the old one (version 1): write the new key there",
		},
		"the store was given a wrong key": {
			func(s *shelf) { s.put("xqok-c4n4ry-typo", "2", nil) }, credentials.Refused,
			"the shelf was given a new service key (version 2), but the remote refuses it: rotate the key in Xiaoqu's admin console",
		},
		"the store can't be asked": {
			func(s *shelf) { s.put("", "", down) }, credentials.StoreDown,
			"the remote refuses the service key in memory (version 1), and the shelf can't be asked for a new one: credentials: vault: Vault is sealed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			rotating(t, func(t *testing.T, server *pipes, store *shelf, s *credentials.Service) {
				server.handle(onlyKey("xqok-nobody-has-it"))
				test.after(store)
				began := time.Now()
				err := s.Renew(t.Context(), 1)
				var failure *credentials.Error
				if !errors.As(err, &failure) || failure.Kind != test.kind || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("got %v\nwant %s", err, test.want)
				}
				assertClean(t, err.Error())
				if waited := time.Since(began); waited != credentials.DefaultGrace {
					t.Errorf("halted after %s", waited)
				}
				if got := server.calls.Load(); got > 4 {
					t.Errorf("%d exchanges", got)
				}
				if token, _, err := s.Token(t.Context()); token != "xqak-for-c4n4ry-old" || err != nil {
					t.Errorf("the old token is gone: %q, %v", token, err)
				}
				// The same key has had its grace.
				again := time.Now()
				if err := s.Renew(t.Context(), 1); err == nil || time.Since(again) != 0 {
					t.Errorf("the second time %v after %s", err, time.Since(again))
				}
				store.put("xqok-good", "3", nil)
				server.handle(onlyKey("xqok-good"))
				if err := s.Renew(t.Context(), 1); err != nil || s.KeyVersion() != "3" {
					t.Errorf("after it was mended: %v, version %s", err, s.KeyVersion())
				}
			})
		})
	}
}

func TestKeyOfTheEnvironmentGetsNoGrace(t *testing.T) {
	bubble(t, func(t *testing.T, server *pipes) {
		server.handle(reply(401, ""))
		s := service(t, credentials.Options{BaseURL: server.url, HTTP: server.transport, Grace: time.Hour})
		began := time.Now()
		_, _, err := s.Token(t.Context())
		if err == nil || time.Since(began) != 0 || !strings.Contains(err.Error(), "was it rotated or revoked") {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
	})
}

func TestRequestThatIsRefusedIsNoRotation(t *testing.T) {
	rotating(t, func(t *testing.T, server *pipes, _ *shelf, s *credentials.Service) {
		server.handle(reply(400, `{"code":"INVALID_ARGUMENT"}`))
		began := time.Now()
		if err := s.Renew(t.Context(), 1); err == nil || time.Since(began) != 0 || !strings.Contains(err.Error(), "service_name") {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
	})
}

func TestStoreThatCannotBeAskedLeavesTheKeyInService(t *testing.T) {
	rotating(t, func(t *testing.T, server *pipes, store *shelf, s *credentials.Service) {
		store.put("", "", errors.New("sealed"))
		if err := s.Renew(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if _, generation, _ := s.Token(t.Context()); generation != 2 || s.KeyVersion() != "1" {
			t.Errorf("generation %d, version %s", generation, s.KeyVersion())
		}
	})
}

func TestKeyThatWasReadAtTheStartServesTheFirstExchange(t *testing.T) {
	bubble(t, func(t *testing.T, server *pipes) {
		server.handle(onlyKey("xqok-1"))
		store := &shelf{key: "xqok-1", version: "1"}
		s := service(t, credentials.Options{BaseURL: server.url, HTTP: server.transport, Keys: store})
		if err := s.Ready(t.Context()); err != nil || s.KeyVersion() != "1" || server.calls.Load() != 0 {
			t.Fatalf("%v, version %s, %d exchanges", err, s.KeyVersion(), server.calls.Load())
		}
		store.put("", "", errors.New("sealed"))
		if _, _, err := s.Token(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestKeyChangedRenewsOnlyATokenThatIsThere(t *testing.T) {
	bubble(t, func(t *testing.T, server *pipes) {
		server.handle(onlyKey("xqok-1"))
		store := &shelf{key: "xqok-1", version: "1"}
		s := service(t, credentials.Options{BaseURL: server.url, HTTP: server.transport, Keys: store})
		if err := s.KeyChanged(t.Context()); err != nil || server.calls.Load() != 0 {
			t.Fatalf("%v after %d exchanges", err, server.calls.Load())
		}
		if _, _, err := s.Token(t.Context()); err != nil {
			t.Fatal(err)
		}
		store.put("xqok-2", "2", nil)
		server.handle(onlyKey("xqok-2"))
		if err := s.KeyChanged(t.Context()); err != nil || s.KeyVersion() != "2" {
			t.Errorf("%v, version %s", err, s.KeyVersion())
		}
	})
}

func TestWaitForARotationEndsWithTheProcess(t *testing.T) {
	rotating(t, func(t *testing.T, server *pipes, _ *shelf, s *credentials.Service) {
		server.handle(reply(401, ""))
		wanted := errors.New("stopped")
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Second, func() { stop(wanted) })
		if err := s.Renew(ctx, 1); !errors.Is(err, wanted) {
			t.Errorf("got %v", err)
		}
		<-time.After(credentials.DefaultGrace) // the flight outlives its caller, and must end within the bubble
	})
}
