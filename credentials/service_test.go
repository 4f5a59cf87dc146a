package credentials_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
)

const canaryToken = "xqak-CANARY7token"

// keyed is a key source that a test can rotate.
type keyed struct{ atomic.Value }

func (k *keyed) Key(context.Context) (credentials.Secret, error) {
	return credentials.NewSecret(k.Load().(string)), nil
}

func goodKey() credentials.KeySource { return credentials.FromEnv(env(canaryKey), "XIAOQU_OPEN_KEY") }

func service(t *testing.T, o credentials.Options) *credentials.Service {
	t.Helper()
	if o.ServiceName == "" {
		o.ServiceName = "crm"
	}
	if o.Keys == nil {
		o.Keys = goodKey()
	}
	s, err := credentials.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serve answers every request with body.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func reply(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestTokenIsFetchedAsTheContractSays(t *testing.T) {
	var calls atomic.Int64
	var seen []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, r.Method+" "+r.URL.Path, r.Header.Get("X-Open-Key"), r.Header.Get("Content-Type"), string(body))
		reply(200, `{"token":"`+canaryToken+`"}`)(w, r)
	})
	var told []string
	s := service(t, credentials.Options{BaseURL: url + "/", OnSecret: func(v string) { told = append(told, v) }})
	if calls.Load() != 0 {
		t.Error("the token was fetched before anybody asked")
	}
	for range 2 {
		token, generation, err := s.Token(t.Context())
		if err != nil || token != canaryToken || generation != 1 {
			t.Fatalf("got %q, %d, %v", token, generation, err)
		}
	}
	want := []string{
		"POST /api/open/token/ensure", canaryKey, "application/json",
		`{"scopeCode":"sync","principalType":"service","serviceName":"crm"}`,
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{canaryKey, canaryToken}, told); diff != "" {
		t.Errorf("secrets told: %s", diff)
	}
}

func TestTokenIsFoundWhereverItStands(t *testing.T) {
	for name, body := range map[string]string{
		"top level":                    `{"token":"xqak-1"}`,
		"in data":                      `{"code":0,"message":"ok","data":{"token":"xqak-1"}}`,
		"success as a number":          `{"code":200,"token":"xqak-1"}`,
		"null beside data":             `{"token":null,"data":{"token":"xqak-1"}}`,
		"success under a foreign name": `{"code":"OK","data":{"token":"xqak-1","expiresAt":null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			token, _, err := service(t, credentials.Options{BaseURL: serve(t, reply(200, body))}).Token(t.Context())
			if err != nil || token != "xqak-1" {
				t.Errorf("got %q, %v", token, err)
			}
		})
	}
}

func TestFiftyCallersMakeOneExchange(t *testing.T) {
	var calls atomic.Int64
	waiting := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) > 1 {
			<-waiting
		}
		reply(200, `{"token":"xqak-1"}`)(w, r)
	})
	s := service(t, credentials.Options{BaseURL: url})
	if _, _, err := s.Token(t.Context()); err != nil {
		t.Fatal(err)
	}
	var ready, done sync.WaitGroup
	for range 50 {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			if err := s.Renew(t.Context(), 1); err != nil {
				t.Error(err)
			}
		})
	}
	ready.Wait()
	close(waiting)
	done.Wait()
	if got := calls.Load(); got != 2 {
		t.Errorf("%d exchanges, want the first and one renewal", got)
	}
	if _, generation, _ := s.Token(t.Context()); generation != 2 {
		t.Errorf("generation %d", generation)
	}
	if err := s.Renew(t.Context(), 1); err != nil || calls.Load() != 2 {
		t.Errorf("an old generation was renewed again: %v", err)
	}
	if err := s.Renew(t.Context(), 2); err != nil || calls.Load() != 3 {
		t.Errorf("the newest generation was not renewed: %v", err)
	}
}

func TestCallerWhoGivesUpDoesNotFailTheOthers(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		reply(200, `{"token":"xqak-1"}`)(w, r)
	})
	s := service(t, credentials.Options{BaseURL: url})
	first, giveUp := context.WithCancelCause(t.Context())
	wanted := errors.New("the caller leaves")
	left, stayed := make(chan error, 1), make(chan error, 1)
	go func() { _, _, err := s.Token(first); left <- err }()
	<-arrived
	go func() { _, _, err := s.Token(t.Context()); stayed <- err }()
	giveUp(wanted)
	if err := <-left; !errors.Is(err, wanted) {
		t.Errorf("the one who left got %v", err)
	}
	close(release)
	if err := <-stayed; err != nil {
		t.Errorf("the one who stayed got %v", err)
	}
}

func TestOldTokenStaysWhenRenewalFails(t *testing.T) {
	for name, failing := range map[string]http.HandlerFunc{
		"500":       reply(500, ""),
		"no answer": silent,
		"refused":   reply(401, ""),
		"malformed": reply(200, "<html>"),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *pipes) {
				server.handle(reply(200, `{"token":"xqak-1"}`))
				s := service(t, credentials.Options{BaseURL: server.url, HTTP: server.transport})
				if _, _, err := s.Token(t.Context()); err != nil {
					t.Fatal(err)
				}
				server.handle(failing)
				if err := s.Renew(t.Context(), 1); err == nil {
					t.Fatal("the renewal passed")
				}
				if token, generation, err := s.Token(t.Context()); token != "xqak-1" || generation != 1 || err != nil {
					t.Errorf("got %q, %d, %v", token, generation, err)
				}
				server.handle(reply(200, `{"token":"xqak-2"}`))
				if err := s.Renew(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				if token, generation, _ := s.Token(t.Context()); token != "xqak-2" || generation != 2 {
					t.Errorf("got %q, %d", token, generation)
				}
			})
		})
	}
}

func TestRotatedKeyIsReadAtTheNextExchange(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		reply(200, `{"token":"xqak-for-`+strings.TrimPrefix(r.Header.Get("X-Open-Key"), "xqok-")+`"}`)(w, r)
	})
	keys := &keyed{}
	keys.Store("xqok-old")
	s := service(t, credentials.Options{BaseURL: url, Keys: keys})
	before, _, _ := s.Token(t.Context())
	keys.Store("xqok-new")
	if err := s.Renew(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	after, _, _ := s.Token(t.Context())
	if before != "xqak-for-old" || after != "xqak-for-new" {
		t.Errorf("got %q, then %q", before, after)
	}
}

func TestPersonalTokenIsFetchedAndNotKept(t *testing.T) {
	var body []byte
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		reply(200, `{"token":"xqak-person"}`)(w, r)
	})
	s := service(t, credentials.Options{BaseURL: url})
	token, err := s.Personal(t.Context(), " 13800138000 ")
	if err != nil || token.Reveal() != "xqak-person" || string(body) != `{"mobile":"13800138000"}` {
		t.Errorf("got %q, %v for %s", token.Reveal(), err, body)
	}
	if _, _, err := s.Token(t.Context()); err != nil || !strings.Contains(string(body), "principalType") {
		t.Errorf("the personal token stands for the service's: %s, %v", body, err)
	}
	for _, bad := range []string{"", " ", strings.Repeat("1", 33), "13800138000\n1", "１３８"} {
		if _, err := s.Personal(t.Context(), bad); err == nil {
			t.Errorf("%q passes for a number", bad)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*credentials.Options)
		want   string
	}{
		"no address":      {func(o *credentials.Options) { o.BaseURL = "" }, "not an address"},
		"not an address":  {func(o *credentials.Options) { o.BaseURL = "https://[c4n4ry" }, "not an address"},
		"password":        {func(o *credentials.Options) { o.BaseURL = "https://u:c4n4ry@x.example" }, "user name or a password"},
		"query":           {func(o *credentials.Options) { o.BaseURL = "https://x.example/?k=c4n4ry" }, "query"},
		"http elsewhere":  {func(o *credentials.Options) { o.BaseURL = "http://x.example" }, "must be https"},
		"no service name": {func(o *credentials.Options) { o.ServiceName = "" }, "service name"},
		"no key source":   {func(o *credentials.Options) { o.Keys = nil }, "key source"},
	} {
		t.Run(name, func(t *testing.T) {
			o := credentials.Options{BaseURL: "https://x.example", ServiceName: "crm", Keys: goodKey(), Timeout: time.Second}
			test.change(&o)
			_, err := credentials.New(o)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v", err)
			}
			assertClean(t, err.Error())
		})
	}
	for _, base := range []string{"http://localhost:1", "http://127.0.0.9", "http://[::1]:8080", "https://x.example/api"} {
		if _, err := credentials.New(credentials.Options{BaseURL: base, ServiceName: "crm", Keys: goodKey()}); err != nil {
			t.Errorf("%s: %v", base, err)
		}
	}
}
