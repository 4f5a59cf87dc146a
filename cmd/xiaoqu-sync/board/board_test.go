package board_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync/board"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

// says fails unless the page holds every one of the texts.
func says(t *testing.T, page string, texts ...string) {
	t.Helper()
	seen := text(parse(t, page))
	for _, want := range texts {
		if !strings.Contains(seen, want) {
			t.Errorf("the page does not say %q:\n%s", want, seen)
		}
	}
}

func TestThePageSaysHowTheMirrorStands(t *testing.T) {
	for _, tt := range states() {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			if _, err := w.Checkpoint(t.Context(), "users"); err != nil {
				t.Fatal(err)
			}
			tt.bring(t, w)
			url := serve(t, open(t, w.url)) // a standby: not the process that did the work
			for accept, want := range map[string][]string{"en-GB,zh;q=0.5": tt.en, "zh-TW": tt.zh} {
				resp, page := get(t, url, accept)
				if resp.StatusCode != http.StatusOK {
					t.Fatalf("HTTP %d: %s", resp.StatusCode, page)
				}
				says(t, page, want...)
			}
		})
	}
}

func TestThePageHoldsNoSecretAndNoRecord(t *testing.T) {
	url := serve(t, troubled(t).Mirror, func(o *board.Options) {
		o.Redact = func(s string) string { return strings.ReplaceAll(s, "u-0061", "[redacted]") }
	})
	_, page := get(t, url, "zh")
	for _, secret := range []string{canary, "13912345678", "内容-", "u-0061", "token-1", "token-2"} {
		if strings.Contains(page, secret) {
			t.Errorf("the page holds %q", secret)
		}
	}
	says(t, page, "u-0062", "[redacted]")
	_, page = get(t, serve(t, nobody(t)), "en")
	if strings.Contains(page, canary) {
		t.Error("the password is on the page")
	}
}

func TestTheLanguageIsTheReadersOrTheOneAskedFor(t *testing.T) {
	url := serve(t, newWorld(t).Mirror)
	for _, c := range []struct{ accept, query, want string }{
		{"", "", "en"},
		{"fr", "", "en"},
		{"zh-CN,zh;q=0.9,en;q=0.8", "", "zh-CN"},
		{"zh-Hant-HK", "", "zh-CN"},
		{"en;q=0.1,zh;q=0.9", "", "zh-CN"},
		{"en", "?lang=zh", "zh-CN"},
		{"zh", "?lang=en&refresh=on", "en"},
		{",;;q=x", "?lang=%00", "en"},
	} {
		resp, page := get(t, url+"/"+c.query, c.accept)
		got := attr(elements(parse(t, page), "html")[0], "lang")
		if got != c.want || resp.Header.Get("Content-Language") != c.want {
			t.Errorf("%q %q: %q, want %q", c.accept, c.query, got, c.want)
		}
		if refreshes := strings.Contains(page, `http-equiv="refresh"`); refreshes != strings.Contains(c.query, "refresh=on") {
			t.Errorf("%q: refreshes %v", c.query, refreshes)
		}
	}
}

func TestADatabaseThatGoesAway(t *testing.T) {
	server, err := localpg.Start(t.Context(), localpg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	m := open(t, server.URL("postgres"))
	if _, err := m.Migrate(t.Context(), resources(), false); err != nil {
		t.Fatal(err)
	}
	url := serve(t, m)
	expect := func(path string, code int, texts ...string) {
		t.Helper()
		resp, body := get(t, url+path, "en")
		if resp.StatusCode != code {
			t.Errorf("%s: HTTP %d, want %d: %s", path, resp.StatusCode, code, body)
		}
		for _, text := range texts {
			if !strings.Contains(body, text) {
				t.Errorf("%s does not say %q: %s", path, text, body)
			}
		}
	}
	expect("/readyz", http.StatusOK, "ready")
	expect("/metrics", http.StatusOK, "xiaoqu_sync_database_up 1")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	expect("/healthz", http.StatusOK, "ok")
	expect("/readyz", http.StatusServiceUnavailable, "not ready: mirror: ")
	expect("/metrics", http.StatusOK, "xiaoqu_sync_database_up 0", `xiaoqu_sync_last_success_timestamp_seconds{resource="users"} 0`)
	expect("/", http.StatusServiceUnavailable, "The mirror cannot be read", "PostgreSQL is not reachable")
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("/readyz", http.StatusOK, "ready")
	expect("/", http.StatusOK, "Worth a look")
}

func TestASchemaThatIsNotThereIsNamed(t *testing.T) {
	url := serve(t, open(t, localpg.Database(t)))
	for _, path := range []string{"/", "/readyz"} {
		resp, body := get(t, url+path, "en")
		if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "schema version 0") {
			t.Errorf("%s: HTTP %d: %s", path, resp.StatusCode, body)
		}
	}
}

func TestReadyIsAskedWithinBounds(t *testing.T) {
	url := serve(t, newWorld(t).Mirror, func(o *board.Options) {
		o.Ready = func(ctx context.Context) error {
			if _, bounded := ctx.Deadline(); !bounded {
				return errors.New("no deadline")
			}
			return errors.New("the last run was fatal:\r\nUNAUTHENTICATED " + canary)
		}
		o.Redact = func(s string) string { return strings.ReplaceAll(s, canary, "[redacted]") }
	})
	resp, body := get(t, url+"/readyz", "en")
	if resp.StatusCode != http.StatusServiceUnavailable || body != "not ready: the last run was fatal: UNAUTHENTICATED [redacted]\n" {
		t.Errorf("HTTP %d: %q", resp.StatusCode, body)
	}
}

func TestOnlyReadingIsAnswered(t *testing.T) {
	url := serve(t, newWorld(t).Mirror)
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{http.MethodPost, "/", 405},
		{http.MethodDelete, "/metrics", 405},
		{http.MethodPut, "/healthz", 405},
		{http.MethodHead, "/", 200},
		{http.MethodHead, "/readyz", 200},
		{http.MethodGet, "/nothing", 404},
		{http.MethodGet, "/%2e%2e/etc/passwd", 404},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, url+c.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.want || c.method == http.MethodHead && len(body) > 0 {
			t.Errorf("%s %s: HTTP %d, want %d; %d bytes", c.method, c.path, resp.StatusCode, c.want, len(body))
		}
		for _, header := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy", "X-Frame-Options"} {
			if resp.Header.Get(header) == "" {
				t.Errorf("%s %s: no %s", c.method, c.path, header)
			}
		}
	}
}

func TestANameThatIsNotOursIsRefusedOnLoopback(t *testing.T) {
	url := serve(t, newWorld(t).Mirror, func(o *board.Options) { o.Hosts = []string{"sync.example.test"} })
	for host, want := range map[string]int{
		"127.0.0.1:9464": 200, "localhost": 200, "LOCALHOST:1": 200, "[::1]:9464": 200, "sync.example.test": 200,
		"evil.example.test": 421, "evil.example.test:9464": 421, "10.0.0.1": 421, "localhost.evil.test": 421,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("Host %s: HTTP %d, want %d", host, resp.StatusCode, want)
		}
	}
}

func TestAPanicIsAnAnswerAndNotTheEnd(t *testing.T) {
	url := serve(t, newWorld(t).Mirror, func(o *board.Options) {
		o.Timetable = func(string) board.Tick { panic("timetable") }
	})
	resp, body := get(t, url, "en")
	if resp.StatusCode != http.StatusInternalServerError || strings.Contains(body, "goroutine") {
		t.Errorf("HTTP %d: %s", resp.StatusCode, body)
	}
	if resp, _ := get(t, url+"/healthz", "en"); resp.StatusCode != http.StatusOK {
		t.Errorf("afterwards: HTTP %d", resp.StatusCode)
	}
}

// silent is a mirror that hangs, whatever it is told.
type silent struct{ *mirror.Mirror }

func (silent) Status(context.Context, []string) (mirror.Status, error) {
	<-time.After(time.Minute)
	return mirror.Status{}, context.DeadlineExceeded
}

func TestASilentMirrorHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := board.New(board.Options{Resources: resources(), Mirror: silent{}, Metrics: http.NotFoundHandler()})
		took := make(chan time.Duration)
		began := time.Now()
		for range 3 { // of which two wait for the first
			go func() {
				answer := httptest.NewRecorder()
				h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
				if answer.Code != http.StatusServiceUnavailable {
					t.Errorf("HTTP %d", answer.Code)
				}
				took <- time.Since(began)
			}()
		}
		for range 2 {
			if d := <-took; d > 10*time.Second {
				t.Errorf("answered after %v", d)
			}
		}
		<-took
	})
}
