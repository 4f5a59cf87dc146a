package remote_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

func TestRetryAfterInEveryFormIsReadAndBounded(t *testing.T) {
	date := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		value    string
		from, to time.Duration
	}{
		"seconds":           {"7", 7 * time.Second, 7 * time.Second},
		"a date":            {date(time.Hour), 59 * time.Minute, time.Hour},
		"a past date":       {date(-time.Hour), 0, 0},
		"negative":          {"-3", 0, 0},
		"garbage":           {"soon", 0, 0},
		"the year 9999":     {"Fri, 31 Dec 9999 23:59:59 GMT", day, day},
		"100000":            {"100000", day, day},
		"more than an int":  {"99999999999999999999", day, day},
		"not there":         {"", 0, 0},
		"bytes of no sense": {"\xff\xfe", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(s *server) { s.answer = status(429, "text/plain", "slow", "Retry-After", c.value) })
			_, err := client(t, s.URL, nil).Changes(t.Context(), users())
			var e *remote.Error
			if !errors.As(err, &e) || e.Code != remote.RateLimited || e.RetryAfter < c.from || e.RetryAfter > c.to {
				t.Errorf("got %v, %+v", err, e)
			}
		})
	}
}

// A redirect asks for the POST to be sent again elsewhere, with its token: to another port, another name of the same
// machine, the same place without TLS, or another path.
func TestNoRedirectIsFollowedWherever(t *testing.T) {
	var followed atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
	t.Cleanup(elsewhere.Close)
	port := elsewhere.Listener.Addr().String()
	for name, target := range map[string]string{
		"another port": elsewhere.URL + "/mcp",
		"another host": strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1) + "/mcp",
		"without TLS":  "http://" + port + "/mcp",
		"another path": "/elsewhere",
		"no place":     "http://",
		"not a URL":    "http://%zz",
		"another kind": "ftp://" + port,
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{answer: status(http.StatusTemporaryRedirect, "", "", "Location", target)}
			s.Server = httptest.NewTLSServer(http.HandlerFunc(s.handle))
			t.Cleanup(s.Close)
			pool := s.Client().Transport
			c := client(t, s.URL, func(o *remote.Options) { o.HTTP = pool })
			_, err := c.Changes(t.Context(), users())
			var e *remote.Error
			if !errors.As(err, &e) || e.Code != remote.Malformed || e.CutShort || e.Status != http.StatusTemporaryRedirect {
				t.Errorf("got %v", err)
			}
			if u, err := url.Parse(target); err == nil && u.Host != "" && !strings.Contains(e.Message, u.Host) {
				t.Errorf("the message does not name the place: %q", e.Message)
			}
			if followed.Load() != 0 || strings.Count(s.seen(), "tools/call") != 1 {
				t.Errorf("followed: %s", s.seen())
			}
		})
	}
}

// Between two runs, an hour apart, the server forgets the session, and idle connections are closed.
func TestSessionReapedBetweenRunsCostsOneHandshake(t *testing.T) {
	for name, gone := range map[string]handler{
		"404": status(http.StatusNotFound, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`),
		"400": status(http.StatusBadRequest, "application/json", `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			var reaped atomic.Bool
			s := serve(t, func(s *server) {
				s.answer = func(w http.ResponseWriter, r *http.Request, m message) {
					if reaped.Load() && r.Header.Get("Mcp-Session-Id") == "canary-session-1" {
						gone(w, r, m)
						return
					}
					result(w, m, okPage)
				}
			})
			pool := &http.Transport{}
			c := client(t, s.URL, func(o *remote.Options) { o.HTTP = pool })
			if _, err := c.Changes(t.Context(), users()); err != nil {
				t.Fatal(err)
			}
			reaped.Store(true)
			pool.CloseIdleConnections()
			_, err := c.Changes(t.Context(), users())
			var e *remote.Error
			if !errors.As(err, &e) || e.Code != remote.SessionLost {
				t.Fatalf("got %v", err)
			}
			if _, err := c.Changes(t.Context(), users()); err != nil || s.handshakes() != 2 {
				t.Errorf("%v, %d handshakes", err, s.handshakes())
			}
			if strings.Contains(s.seen(), "DELETE") {
				t.Error("a forgotten session was deleted")
			}
		})
	}
}

// A server that sends just enough not to look dead holds nobody up: the call's own deadline ends it.
func TestWhatNeverEndsIsBoundedByTheDeadlineOrTheByteLimit(t *testing.T) {
	const deadline = 300 * time.Millisecond
	for name, h := range endlessFaults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var spoilt atomic.Bool
			s := serve(t, func(s *server) {
				s.answer = func(w http.ResponseWriter, r *http.Request, m message) {
					if spoilt.Swap(true) {
						result(w, m, okPage)
						return
					}
					h(w, r, m)
				}
			})
			c := client(t, s.URL, func(o *remote.Options) { o.Timeout, o.MaxBytes = deadline, 1<<20 })
			began := time.Now()
			_, err := c.Changes(t.Context(), users())
			took := time.Since(began)
			var e *remote.Error
			if !errors.As(err, &e) || !e.TooLarge && (e.Code != remote.Unreachable || !strings.Contains(e.Message, "no answer within 300ms")) {
				t.Errorf("got %v", err)
			}
			if took > deadline+2*time.Second { // the rest is for a busy machine
				t.Errorf("took %s", took)
			}
			if _, err := c.Changes(t.Context(), users()); err != nil || s.handshakes() != 1 {
				t.Errorf("after: %v, %d handshakes", err, s.handshakes())
			}
		})
	}
}
