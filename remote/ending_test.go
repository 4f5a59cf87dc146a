package remote_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestDeadlinePerCallKeepsTheSession(t *testing.T) {
	var n atomic.Int32
	hang := map[string]handler{
		"before the headers": func(_ http.ResponseWriter, r *http.Request, _ message) { <-r.Context().Done() },
		"in the stream": func(w http.ResponseWriter, r *http.Request, _ message) {
			stream(": hi\n\n")(w, r, message{})
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"in the resumption": stream("id: 7\nretry: 1\ndata: \n\n"),
	}
	for name, h := range hang {
		t.Run(name, func(t *testing.T) {
			n.Store(0)
			s := serve(t, func(s *server) {
				s.resume = hang["before the headers"]
				s.answer = func(w http.ResponseWriter, r *http.Request, m message) {
					if n.Add(1) == 1 {
						h(w, r, m)
						return
					}
					result(w, m, okPage)
				}
			})
			c := client(t, s.URL, func(o *remote.Options) { o.Timeout = 250 * time.Millisecond })
			_, err := c.Changes(t.Context(), users())
			var e *remote.Error
			if !errors.As(err, &e) || e.Code != remote.Unreachable || !strings.Contains(err.Error(), "no answer within 250ms") {
				t.Fatalf("got %v", err)
			}
			if _, err := c.Changes(t.Context(), users()); err != nil || s.handshakes() != 1 {
				t.Errorf("after: %v, %d handshakes", err, s.handshakes())
			}
		})
	}
}

func TestCallersCancellationIsTheCallersError(t *testing.T) {
	arrived := make(chan struct{}, 1)
	s := serve(t, func(s *server) {
		s.answer = func(_ http.ResponseWriter, r *http.Request, _ message) {
			arrived <- struct{}{}
			<-r.Context().Done()
		}
	})
	c := client(t, s.URL, nil)
	wanted := errors.New("told to stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-arrived
		cancel(wanted)
	}()
	_, err := c.Changes(ctx, users())
	var e *remote.Error
	if !errors.Is(err, context.Canceled) || !errors.Is(err, wanted) || errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Changes(ctx, users()); !errors.Is(err, context.Canceled) {
		t.Errorf("with a dead context: %v", err)
	}
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	if _, err := c.Tools(late); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &e) {
		t.Errorf("past the caller's deadline: %v", err)
	}
}

func TestCloseEndsWhatIsInFlightInBoundedTime(t *testing.T) {
	arrived := make(chan struct{}, 1)
	hang := func(_ http.ResponseWriter, r *http.Request, _ message) { <-r.Context().Done() }
	s := serve(t, func(s *server) {
		s.answer = func(w http.ResponseWriter, r *http.Request, m message) {
			arrived <- struct{}{}
			hang(w, r, m)
		}
		s.end = hang // nor does the server answer DELETE
	})
	c := client(t, s.URL, func(o *remote.Options) { o.Timeout = time.Hour })
	failed := make(chan error, 1)
	go func() {
		_, err := c.Changes(t.Context(), users())
		failed <- err
	}()
	<-arrived
	began := time.Now()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	if err := <-failed; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "closed") {
		t.Errorf("in flight: %v", err)
	}
	if _, err := c.Tools(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("after Close: %v", err)
	}
}

func TestNetworkThatIsNotThereIsUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog, _ = zap.NewStdLogAt(zap.NewNop(), zap.ErrorLevel)
	tls.StartTLS()
	t.Cleanup(tls.Close)
	for base, text := range map[string]string{
		"http://" + address: "refused",
		tls.URL:             "certificate was not accepted",
		strings.Replace(tls.URL, "https", "http", 1):     "HTTP 400",
		"https://" + strings.TrimPrefix(address, "http"): "refused",
	} {
		_, err := client(t, base, nil).Tools(t.Context())
		var e *remote.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v", base, err)
			continue
		}
		if text != "HTTP 400" && e.Code != remote.Unreachable {
			t.Errorf("%s: got %v", base, err)
		}
	}
}

// The server repeats every secret that it was sent, in every place: none comes out again.
func TestNoSecretInErrorsOrLogs(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	echo := func(r *http.Request) string {
		return r.Header.Get("Authorization") + " " + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + " " +
			r.Header.Get("Mcp-Session-Id") + " xqok-canary-key " + canaryMobile + " +86 " + canaryMobile + "\\u0007"
	}
	answers := []func(r *http.Request) string{
		func(r *http.Request) string { return `"error":{"code":-32000,"message":"` + echo(r) + `"}` },
		func(r *http.Request) string {
			return `"error":{"code":-32000,"message":"m","data":{"code":"` + echo(r) + `","request_id":"` + echo(r) + `"}}`
		},
		func(r *http.Request) string {
			return `"result":{"isError":true,"content":[{"type":"text","text":"` + echo(r) + `"}]}`
		},
		func(r *http.Request) string {
			return `"result":{"structuredContent":{"request_id":"` + echo(r) + `","data":{"` + echo(r) + `":1}}}`
		},
		func(r *http.Request) string {
			return `"result":{"structuredContent":{"request_id":"` + echo(r) + `","data":{"users":[],"has_more":false,"notice":"` + echo(r) + `"}}}`
		},
	}
	n := 0
	s := serve(t, func(s *server) {
		s.answer = func(w http.ResponseWriter, r *http.Request, m message) {
			if n == len(answers) {
				status(400, "text/plain", echo(r))(w, r, m)
				return
			}
			n++
			event(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,`+answers[n-1](r)+`}`)
		}
	})
	c := client(t, s.URL, func(o *remote.Options) { o.Logger = zap.New(core) })
	var said strings.Builder
	for range len(answers) + 1 {
		page, err := c.Changes(t.Context(), users())
		if err != nil {
			said.WriteString(err.Error() + "\n")
		} else {
			said.WriteString(strings.Join(page.Notices, "\n"))
		}
	}
	enc := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	for _, entry := range logs.All() {
		line, err := enc.EncodeEntry(entry.Entry, entry.Context)
		if err != nil {
			t.Fatal(err)
		}
		said.WriteString(line.String())
	}
	for _, secret := range []string{"canary", canaryMobile, "\a"} {
		if strings.Contains(said.String(), secret) {
			t.Errorf("%q in\n%s", secret, said.String())
		}
	}
	if logs.Len() != len(answers)+1 || !strings.Contains(said.String(), "[redacted]") {
		t.Errorf("%d lines:\n%s", logs.Len(), said.String())
	}
}

func TestEveryToolCallIsOneLogLine(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	n := 0
	s := serve(t, func(s *server) {
		s.answer = func(w http.ResponseWriter, r *http.Request, m message) {
			if n++; n == 1 {
				result(w, m, okPage)
				return
			}
			rpc(`{"code":-32000,"message":"x","data":{"code":"RATE_LIMITED","request_id":"r_2"}}`)(w, r, m)
		}
	})
	c := client(t, s.URL, func(o *remote.Options) { o.Logger = zap.New(core) })
	_, _ = c.Changes(t.Context(), users())
	_, _ = c.Changes(t.Context(), users())
	if logs.Len() != 2 {
		t.Fatalf("%d lines", logs.Len())
	}
	first, second := logs.All()[0].ContextMap(), logs.All()[1].ContextMap()
	if first["tool"] != "users.changes.list" || first["request_id"] != "r_1" || first["records"] != int64(1) || first["bytes"].(int64) < 100 {
		t.Errorf("got %v", first)
	}
	if second["code"] != "RATE_LIMITED" || second["request_id"] != "r_2" {
		t.Errorf("got %v", second)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]remote.Options{
		"no URL":          {Tokens: &tokens{}},
		"no scheme":       {Tokens: &tokens{}, BaseURL: "agent.example"},
		"another scheme":  {Tokens: &tokens{}, BaseURL: "ftp://agent.example"},
		"a password":      {Tokens: &tokens{}, BaseURL: "https://u:canary@agent.example"},
		"broken":          {Tokens: &tokens{}, BaseURL: "https://canary\x7f"},
		"a query":         {Tokens: &tokens{}, BaseURL: "https://agent.example?canary=1"},
		"no tokens":       {BaseURL: "https://agent.example"},
		"negative limits": {Tokens: &tokens{}, BaseURL: "https://agent.example", MaxBytes: -1},
	} {
		if _, err := remote.New(o); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrorReadsAsOneLine(t *testing.T) {
	cause := errors.New("c")
	e := &remote.Error{Code: remote.RateLimited, Tool: "users.changes.list", RequestID: "r_12", Message: "text", Err: cause}
	if got := e.Error(); got != "remote: users.changes.list: RATE_LIMITED (request r_12): text" || !errors.Is(e, cause) {
		t.Errorf("got %s", got)
	}
	if got := (&remote.Error{Code: remote.Malformed, Tool: "initialize"}).Error(); got != "remote: initialize: MALFORMED" {
		t.Errorf("got %s", got)
	}
}

// A call that hears late that the old session is lost must not take the new one with it.
func TestLateNewsOfALostSessionLeavesTheNewOneAlone(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	s := serve(t, func(s *server) {
		s.answer = func(w http.ResponseWriter, r *http.Request, m message) {
			if r.Header.Get("Mcp-Session-Id") != "canary-session-1" {
				result(w, m, okPage)
				return
			}
			if m.Params.Name == "contracts.changes.list" {
				close(arrived)
				<-release
			}
			w.WriteHeader(http.StatusNotFound)
		}
	})
	c := client(t, s.URL, nil)
	late := make(chan error, 1)
	go func() {
		_, err := c.Changes(t.Context(), remote.Query{Resource: "contracts"})
		late <- err
	}()
	<-arrived
	_, _ = c.Changes(t.Context(), users())
	if _, err := c.Changes(t.Context(), users()); err != nil {
		t.Error(err)
	}
	close(release)
	var e *remote.Error
	if err := <-late; !errors.As(err, &e) || e.Code != remote.SessionLost {
		t.Errorf("got %v", err)
	}
	if _, err := c.Changes(t.Context(), users()); err != nil || s.handshakes() != 2 {
		t.Errorf("%v, %d handshakes", err, s.handshakes())
	}
}
