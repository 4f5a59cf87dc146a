package remote_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

func TestUnifiedHeadersAreOnEveryRequest(t *testing.T) {
	s := serve(t, nil)
	c := client(t, s.URL, nil)
	if _, err := c.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Changes(t.Context(), users()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	const order = "initialize notifications/initialized tools/list tools/call DELETE"
	if s.seen() != order {
		t.Fatalf("saw %s, want %s", s.seen(), order)
	}
	for i, r := range s.requests {
		want := map[string]string{
			"Authorization":        "Bearer " + canaryToken + "-1",
			"Content-Type":         "application/json",
			"Accept":               "application/json, text/event-stream",
			"MCP-Protocol-Version": "2025-06-18",
			"X-Mcp-Schema-Version": "2",
			"Mcp-Session-Id":       "canary-session-1",
		}
		if i == 0 {
			want["Mcp-Session-Id"] = ""
		}
		for name, value := range want {
			if got := r.Header.Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", s.methods[i], name, got, value)
			}
		}
		if r.URL.Path != "/mcp" {
			t.Errorf("%s went to %s", s.methods[i], r.URL.Path)
		}
	}
}

func TestInitializeOffersNothingAndAsksForThePinnedProtocol(t *testing.T) {
	var sent string
	s := serve(t, func(s *server) {
		s.greet = func(w http.ResponseWriter, _ *http.Request, m message) {
			sent = string(m.raw)
			result(w, m, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		}
	})
	unversioned := func(o *remote.Options) { o.Version = "" } // which the protocol does not allow
	if _, err := client(t, s.URL+"/", unversioned).Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(sent, `"protocolVersion":"2025-06-18"`) || !strings.Contains(sent, `"capabilities":{}`) ||
		!strings.Contains(sent, `"version":"devel"`) {
		t.Errorf("sent %s", sent)
	}
}

func TestHandshakeThatFailsIsNamedAndTriedAgainByTheNextCall(t *testing.T) {
	greeting := func(version string) handler {
		return func(w http.ResponseWriter, _ *http.Request, m message) {
			w.Header().Set("Mcp-Session-Id", "canary-session-x")
			result(w, m, `{"protocolVersion":"`+version+`","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		}
	}
	for name, c := range map[string]struct {
		greet handler
		code  remote.Code
		text  string
	}{
		"an older protocol":        {greeting("2025-03-26"), remote.Malformed, `speaks protocol "2025-03-26"`},
		"a newer protocol":         {greeting("2026-07-28"), remote.Malformed, `speaks protocol "2026-07-28"`},
		"an unknown protocol":      {greeting("2099-01-01"), remote.Malformed, `speaks protocol "2099-01-01"`},
		"401":                      {status(401, "", ""), remote.Unauthenticated, ""},
		"404 is no lost session":   {status(404, "text/plain", "no"), remote.Malformed, "HTTP 404"},
		"400 with session":         {status(400, "text/plain", "session?"), remote.Malformed, "HTTP 400"},
		"503":                      {status(503, "", ""), remote.Unreachable, ""},
		"empty":                    {stream(""), remote.Unreachable, ""},
		"a result of another form": {tool(`{"protocolVersion":"2025-06-18","capabilities":7}`), remote.Malformed, "not of the form"},
		"a tool's refusal":         {tool(`{"isError":true,"content":[],"structuredContent":{"error":{"code":"UNAUTHENTICATED"}}}`), remote.Unauthenticated, ""},
		"an rpc error":             {rpc(`{"code":-32602,"message":"no"}`), remote.InvalidArgument, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int32
			s := serve(t, func(s *server) {
				s.greet = func(w http.ResponseWriter, r *http.Request, m message) {
					if n.Add(1) == 1 {
						c.greet(w, r, m)
						return
					}
					greeting("2025-06-18")(w, r, m)
				}
			})
			cl := client(t, s.URL, nil)
			_, err := cl.Identity(t.Context())
			var e *remote.Error
			if !errors.As(err, &e) || e.Code != c.code || e.Tool != "initialize" || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("a secret in %q", err)
			}
			if _, err := cl.Identity(t.Context()); err != nil {
				t.Errorf("after: %v", err)
			}
		})
	}
}

func TestRefusedInitializedNotificationIsTheHandshakesError(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 4096)
		n, _ := r.Body.Read(body)
		switch {
		case strings.Contains(string(body[:n]), "notifications/initialized"):
			w.WriteHeader(http.StatusForbidden)
		default:
			event(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`)
		}
	})
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	_, err := client(t, s.URL, nil).Tools(t.Context())
	var e *remote.Error
	if !errors.As(err, &e) || e.Code != remote.PermissionDenied || e.Tool != "initialize" {
		t.Errorf("got %v", err)
	}
}

// Three resources lose their session in mid-round: whoever notices, there is one new handshake.
func TestLostSessionMakesOneNewHandshakeForAll(t *testing.T) {
	var lost sync.WaitGroup
	lost.Add(3)
	s := serve(t, func(s *server) {
		s.answer = func(w http.ResponseWriter, r *http.Request, m message) {
			if r.Header.Get("Mcp-Session-Id") == "canary-session-1" {
				lost.Done()
				lost.Wait() // all three are in flight on the old session
				w.WriteHeader(http.StatusNotFound)
				return
			}
			result(w, m, okPage)
		}
	})
	c := client(t, s.URL, nil)
	var done sync.WaitGroup
	for _, resource := range []string{"users", "properties", "contracts"} {
		done.Go(func() {
			_, err := c.Changes(t.Context(), remote.Query{Resource: resource})
			var e *remote.Error
			if !errors.As(err, &e) || e.Code != remote.SessionLost {
				t.Errorf("%s: got %v", resource, err)
			}
			for range 3 {
				if _, err := c.Changes(t.Context(), remote.Query{Resource: resource}); err != nil {
					t.Errorf("%s, again: %v", resource, err)
				}
			}
		})
	}
	done.Wait()
	if s.handshakes() != 2 {
		t.Errorf("%d handshakes", s.handshakes())
	}
	if strings.Contains(s.seen(), "DELETE") {
		t.Error("a session that the server had forgotten was deleted")
	}
}

// One call's answer ends the SDK's session: the culprit is MALFORMED, the others only lose their session.
func TestVictimsOfAnotherCallsAnswerLoseOnlyTheirSession(t *testing.T) {
	waiting := make(chan struct{})
	s := serve(t, func(s *server) {
		s.answer = func(w http.ResponseWriter, r *http.Request, m message) {
			if m.Params.Name == "users.changes.list" {
				<-waiting
				stream("data: junk\n\n")(w, r, m)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			close(waiting)
			<-r.Context().Done()
		}
	})
	c := client(t, s.URL, nil)
	codes := make(chan remote.Code, 2)
	for _, resource := range []string{"users", "contracts"} {
		go func() {
			_, err := c.Changes(t.Context(), remote.Query{Resource: resource})
			var e *remote.Error
			_ = errors.As(err, &e)
			codes <- remote.Code(resource) + " " + e.Code
		}()
	}
	got := map[remote.Code]bool{<-codes: true, <-codes: true}
	if !got["users MALFORMED"] || !got["contracts SESSION_LOST"] {
		t.Errorf("got %v", got)
	}
}

func TestRedirectAndOtherHostsNeverSeeTheToken(t *testing.T) {
	var leaked atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Store(true) }))
	t.Cleanup(other.Close)
	for _, code := range []int{301, 302, 303, 307, 308} {
		s := serve(t, func(s *server) {
			s.answer = status(code, "", "", "Location", other.URL+"/mcp")
		})
		_, err := client(t, s.URL, nil).Changes(t.Context(), users())
		var e *remote.Error
		if !errors.As(err, &e) || e.Code != remote.Malformed || !strings.Contains(err.Error(), "redirect to "+strings.TrimPrefix(other.URL, "http://")) {
			t.Errorf("%d: got %v", code, err)
		}
	}
	if leaked.Load() {
		t.Error("the redirect was followed")
	}
}

func TestTokensErrorsPassThrough(t *testing.T) {
	want := errors.New("the key is refused")
	s := serve(t, nil)
	source := &tokens{err: want}
	c := client(t, s.URL, func(o *remote.Options) { o.Tokens = source })
	if _, err := c.Changes(t.Context(), users()); !errors.Is(err, want) {
		t.Errorf("changes: %v", err)
	}
	if _, err := c.Identity(t.Context()); !errors.Is(err, want) {
		t.Errorf("identity: %v", err)
	}
	if _, err := c.Tools(t.Context()); !errors.Is(err, want) {
		t.Errorf("tools: %v", err)
	}
	if s.seen() != "" {
		t.Errorf("without a token: %s", s.seen())
	}
}

func TestRenewedTokenGoesOutWithTheNextCall(t *testing.T) {
	s := serve(t, func(s *server) {
		s.answer = func(w http.ResponseWriter, r *http.Request, m message) {
			if strings.HasSuffix(r.Header.Get("Authorization"), "-1") {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			result(w, m, okPage)
		}
	})
	c := client(t, s.URL, nil)
	_, err := c.Changes(t.Context(), users())
	var e *remote.Error
	if !errors.As(err, &e) || e.Code != remote.Unauthenticated {
		t.Fatalf("got %v", err)
	}
	if err := c.Renew(t.Context(), e.Generation); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Changes(t.Context(), users()); err != nil {
		t.Fatal(err)
	}
}
