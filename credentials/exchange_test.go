package credentials_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
)

// echo writes what it was sent, as a careless remote does in its errors.
func echo(status int, format string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, format, r.Header.Get("X-Open-Key")+" "+canaryToken+" "+strings.ReplaceAll(string(body), `"`, `\"`))
	}
}

// hijack answers with raw bytes and hangs up.
func hijack(answer func(*http.Request) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, answer(r))
		_ = conn.Close()
	}
}

// silent never answers. It reads the request first: before that, the server
// does not notice that the client left.
func silent(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// endless writes until the client leaves.
func endless(w http.ResponseWriter, _ *http.Request) {
	chunk := strings.Repeat("x", 1<<10)
	for _, err := io.WriteString(w, `{"token":"`); err == nil; _, err = io.WriteString(w, chunk) {
		continue
	}
}

type failureCase struct {
	name   string
	answer http.HandlerFunc
	kind   credentials.Kind
	want   string
	code   string
	calls  int64
}

func failureCases() []failureCase {
	cut := hijack(func(*http.Request) string { return "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"token\":" })
	junk := hijack(func(r *http.Request) string { return r.Header.Get("X-Open-Key") + " " + canaryToken + "\r\n\r\n" })
	elsewhere := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.localhost/"+r.Header.Get("X-Open-Key"), http.StatusTemporaryRedirect)
	}
	return []failureCase{
		{"401", echo(401, `{"message":"%s"}`), credentials.Refused, "was refused: HTTP 401", "", 1},
		{"403 with a code", echo(403, `{"code":"PERMISSION_DENIED","message":"%s"}`), credentials.Refused, "HTTP 403 PERMISSION_DENIED", "PERMISSION_DENIED", 1},
		{"code in error, 200", echo(200, `{"error":{"code":"UNAUTHENTICATED","message":"%s"}}`), credentials.Refused, "HTTP 200 UNAUTHENTICATED", "UNAUTHENTICATED", 1},
		{"number as code, 200", echo(200, `{"code":401,"msg":"%s"}`), credentials.Refused, "HTTP 401", "", 1},
		{"400", echo(400, `{"code":"INVALID_ARGUMENT","message":"%s"}`), credentials.Refused, "HTTP 400 INVALID_ARGUMENT", "INVALID_ARGUMENT", 1},
		{"404", echo(404, "<html>%s"), credentials.Malformed, "HTTP 404: is base_url right?", "", 1},
		{"418", echo(418, "%s"), credentials.Malformed, "HTTP 418", "", 1},
		{"code that is no code", echo(409, `{"code":"%s"}`), credentials.Malformed, "HTTP 409", "", 1},
		{"307", elsewhere, credentials.Malformed, "the remote redirects (HTTP 307)", "", 1},
		{"429", echo(429, "%s"), credentials.Limited, "HTTP 429 (5 attempts)", "", 5},
		{"limited, 200", echo(200, `{"code":"RATE_LIMITED","m":"%s"}`), credentials.Limited, "RATE_LIMITED (5 attempts)", "RATE_LIMITED", 5},
		{"500", echo(500, `{"message":"%s"}`), credentials.Unreachable, "the remote failed: HTTP 500 (5 attempts)", "", 5},
		{"502 with a page", echo(502, "<html>%s</html>"), credentials.Unreachable, "HTTP 502", "", 5},
		{"cut short", cut, credentials.Unreachable, "no whole answer from localhost", "", 5},
		{"not HTTP", junk, credentials.Unreachable, "malformed HTTP", "", 5},
		{"no answer", silent, credentials.Unreachable, "within 10s (5 attempts)", "", 5},
		{"a page", echo(200, "<html>%s"), credentials.Malformed, "the answer is not JSON (HTTP 200)", "", 1},
		{"204", reply(204, ""), credentials.Malformed, "the answer is not JSON (HTTP 204)", "", 1},
		{"an array", echo(200, `["%s"]`), credentials.Malformed, "not JSON", "", 1},
		{"no token", echo(200, `{"msg":"%s"}`), credentials.Malformed, "holds no token", "", 1},
		{"token null", echo(200, `{"token":null,"m":"%s"}`), credentials.Malformed, "holds no token", "", 1},
		{"token empty", echo(200, `{"token":"","m":"%s"}`), credentials.Malformed, "is empty", "", 1},
		{"token a number", echo(200, `{"token":7,"m":"%s"}`), credentials.Malformed, "is not a string", "", 1},
		{"token an object", echo(200, `{"token":{"v":"%s"}}`), credentials.Malformed, "is not a string", "", 1},
		{"token with a space", echo(200, `{"token":"xqak-%s"}`), credentials.Malformed, "holds a space", "", 1},
		{"token with a newline", reply(200, `{"token":"xqak-CANARY\n"}`), credentials.Malformed, "holds a control character (U+000A)", "", 1},
		{"key as token", echo(200, `{"token":"%s"}`), credentials.Malformed, "a service key (xqok-) where a token is wanted", "", 1},
		{"other prefix", reply(200, `{"token":"CANARY"}`), credentials.Malformed, "does not begin with xqak-", "", 1},
		{"prefix alone", reply(200, `{"token":"xqak-"}`), credentials.Malformed, "does not begin with xqak-", "", 1},
		{"token too long", reply(200, `{"token":"xqak-`+strings.Repeat("CANARY", 1000)+`"}`), credentials.Malformed, "too long", "", 1},
		{"endless", endless, credentials.Malformed, "longer than 64 KiB", "", 1},
	}
}

// Every failure is named, repeated only where that helps, and gives no secret
// away in its text, in its chain or in the log at debug level.
func TestFailuresAreNamedAndClean(t *testing.T) {
	for _, test := range failureCases() {
		for _, op := range []string{"ensure", "personal token"} {
			t.Run(test.name+" "+op, func(t *testing.T) {
				bubble(t, func(t *testing.T, server *pipes) {
					server.handle(test.answer)
					logged := &bytes.Buffer{}
					s := service(t, credentials.Options{BaseURL: server.url, HTTP: server.transport, Logger: logTo(logged)})
					err := ask(t.Context(), s, op)
					assertClean(t, logged.String())
					assertFailure(t, err, op, test)
					if got := server.calls.Load(); got != test.calls {
						t.Errorf("%d calls, want %d", got, test.calls)
					}
				})
			})
		}
	}
}

// logTo logs without a redactor: this room's texts must be clean by themselves.
func logTo(w io.Writer) *zap.Logger {
	encoder := zapcore.NewJSONEncoder(zap.NewDevelopmentEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.AddSync(w), zap.DebugLevel))
}

func ask(ctx context.Context, s *credentials.Service, op string) error {
	if op == "ensure" {
		_, _, err := s.Token(ctx)
		return err
	}
	_, err := s.Personal(ctx, "13800138000")
	return err
}

func assertFailure(t *testing.T, err error, op string, test failureCase) {
	t.Helper()
	var failure *credentials.Error
	if !errors.As(err, &failure) {
		t.Fatalf("got %v", err)
	}
	if failure.Kind != test.kind || failure.Code != test.code || failure.Op != op {
		t.Errorf("kind %v, code %q, op %q", failure.Kind, failure.Code, failure.Op)
	}
	if want := strings.TrimPrefix(test.want, "was refused: "); !strings.Contains(err.Error(), want) {
		t.Errorf("%q lacks %q", err, want)
	}
	if !strings.HasPrefix(err.Error(), "credentials: "+op+": ") {
		t.Errorf("%q does not say what was attempted", err)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Error("it passes for the end of the caller's context")
	}
	for ; err != nil; err = errors.Unwrap(err) {
		assertClean(t, fmt.Sprintf("%v %+v %#v", err, err, err.Error()))
	}
}

func TestTransportFaultIsRepeatedAndItsCauseKept(t *testing.T) {
	bubble(t, func(t *testing.T, _ *pipes) {
		refused := &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s: %w", canaryKey, net.ErrClosed)}
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, refused }}
		s := service(t, credentials.Options{BaseURL: "http://localhost:1", HTTP: transport})
		_, _, err := s.Token(t.Context())
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("the cause is lost: %v", err)
		}
		assertClean(t, err.Error())
	})
}

// What no shape knows is scrubbed as well, since it is known what was sent.
func TestOddSecretsAreScrubbedFromTransportFaults(t *testing.T) {
	bubble(t, func(t *testing.T, server *pipes) {
		server.handle(hijack(func(r *http.Request) string {
			body, _ := io.ReadAll(r.Body)
			return r.Header.Get("X-Open-Key") + string(body) + "\r\n\r\n"
		}))
		keys := &keyed{}
		keys.Store("xqok-$CANARY$")
		_, err := service(t, credentials.Options{BaseURL: server.url, HTTP: server.transport, Keys: keys}).Personal(t.Context(), "0755-CANARY")
		if err == nil || !strings.Contains(err.Error(), "malformed HTTP") {
			t.Fatalf("got %v", err)
		}
		assertClean(t, err.Error())
	})
}

func TestWaitsGrowAndEndInATokenOnceTheRemoteRecovers(t *testing.T) {
	bubble(t, func(t *testing.T, server *pipes) {
		var at []time.Time
		server.handle(func(w http.ResponseWriter, r *http.Request) {
			at = append(at, time.Now())
			if len(at) < 5 {
				w.WriteHeader(503)
				return
			}
			reply(200, `{"token":"xqak-1"}`)(w, r)
		})
		s := service(t, credentials.Options{BaseURL: server.url, HTTP: server.transport})
		if token, _, err := s.Token(t.Context()); err != nil || token != "xqak-1" {
			t.Fatalf("got %q, %v", token, err)
		}
		for i, base := range []time.Duration{1, 2, 4, 8} {
			wait, want := at[i+1].Sub(at[i]), base*time.Second
			if wait < want*8/10 || wait > want*12/10+time.Millisecond {
				t.Errorf("wait %d is %s, want %s with jitter of a fifth", i+1, wait, want)
			}
		}
	})
}

func TestRetryAfterIsHonouredWithinBounds(t *testing.T) {
	for name, test := range map[string]struct {
		header func() string
		min    time.Duration
		max    time.Duration
	}{
		"seconds":        {func() string { return "30" }, 30 * time.Second, 30 * time.Second},
		"date":           {func() string { return time.Now().Add(30 * time.Second).UTC().Format(http.TimeFormat) }, 29 * time.Second, 30 * time.Second},
		"too many":       {func() string { return "100000" }, time.Minute, time.Minute},
		"absurdly many":  {func() string { return "18446744073709551615" }, time.Minute, time.Minute},
		"year 9999":      {func() string { return "Fri, 31 Dec 9999 23:59:59 GMT" }, time.Minute, time.Minute},
		"past date":      {func() string { return "Thu, 01 Jan 1970 00:00:00 GMT" }, 0, 1200 * time.Millisecond},
		"negative":       {func() string { return "-5" }, 0, 1200 * time.Millisecond},
		"garbage":        {func() string { return "soon" }, 0, 1200 * time.Millisecond},
		"less than ours": {func() string { return "0" }, 800 * time.Millisecond, 1200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *pipes) {
				begun := time.Now()
				server.handle(func(w http.ResponseWriter, r *http.Request) {
					if server.calls.Load() == 2 {
						reply(200, `{"token":"xqak-1"}`)(w, r)
						return
					}
					w.Header().Set("Retry-After", test.header())
					w.WriteHeader(429)
				})
				s := service(t, credentials.Options{BaseURL: server.url, HTTP: server.transport})
				if _, _, err := s.Token(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := time.Since(begun); got < test.min || got > test.max+time.Millisecond {
					t.Errorf("waited %s, want %s to %s", got, test.min, test.max)
				}
				_, err := s.Personal(t.Context(), "13800138000")
				var failure *credentials.Error
				if !errors.As(err, &failure) || failure.RetryAfter > time.Minute || failure.RetryAfter < test.min-time.Second {
					t.Errorf("the error does not carry what was asked: %#v", failure)
				}
			})
		})
	}
}

func TestKeyIsNotTakenToAnotherHost(t *testing.T) {
	var stolen atomic.Int64
	other := serve(t, func(http.ResponseWriter, *http.Request) { stolen.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, status) })
		_, _, err := service(t, credentials.Options{BaseURL: url}).Token(t.Context())
		if err == nil {
			t.Errorf("%d passed", status)
		}
	}
	if stolen.Load() != 0 {
		t.Error("the other host was asked")
	}
}

func TestPersonalEndsWithItsCaller(t *testing.T) {
	bubble(t, func(t *testing.T, server *pipes) {
		server.handle(reply(503, ""))
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err := service(t, credentials.Options{BaseURL: server.url, HTTP: server.transport}).Personal(ctx, "13800138000")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if got := server.calls.Load(); got != 2 {
			t.Errorf("%d calls", got)
		}
	})
}

func TestCallersReasonIsKept(t *testing.T) {
	arrived := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		silent(w, r)
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	wanted := errors.New("the operator stops the program")
	go func() {
		<-arrived
		cancel(wanted)
	}()
	if _, err := service(t, credentials.Options{BaseURL: url}).Personal(ctx, "13800138000"); !errors.Is(err, wanted) {
		t.Errorf("got %v", err)
	}
}

func TestKeySourceFailureIsHandedOn(t *testing.T) {
	url := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") })
	s := service(t, credentials.Options{BaseURL: url, Keys: credentials.FromEnv(env(canaryToken), "XIAOQU_OPEN_KEY")})
	_, _, err := s.Token(t.Context())
	var failure *credentials.Error
	if !errors.As(err, &failure) || failure.Kind != credentials.BadKey {
		t.Errorf("got %v", err)
	}
	keys := &keyed{}
	keys.Store("")
	if _, _, err := service(t, credentials.Options{BaseURL: url, Keys: keys}).Token(t.Context()); !errors.As(err, &failure) {
		t.Errorf("an empty key: %v", err)
	}
}
