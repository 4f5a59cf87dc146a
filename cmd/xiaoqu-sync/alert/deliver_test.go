package alert_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync/alert"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestAnswersThatAreNoYes(t *testing.T) {
	elsewhere := newReceiver(t)
	w := newWorld(t)
	for name, tt := range map[string]struct {
		kind   alert.Kind
		answer http.HandlerFunc
		want   string // "" when it is a yes
	}{
		"2xx of a plain target":      {alert.JSON, answering(202, ""), ""},
		"a robot's yes":              {alert.WeCom, answering(200, `{"errcode":0,"errmsg":"ok"}`), ""},
		"Feishu's yes":               {alert.Feishu, answering(200, `{"code":0,"msg":"success","data":{}}`), ""},
		"5xx":                        {alert.JSON, failed, "HTTP 502"},
		"WeCom's no with HTTP 200":   {alert.WeCom, answering(200, `{"errcode":93000,"errmsg":"invalid webhook url"}`), "code 93000: invalid webhook url"},
		"DingTalk's no":              {alert.DingTalk, answering(200, `{"errcode":310000,"errmsg":"sign not match"}`), "code 310000: sign not match"},
		"Feishu's no":                {alert.Feishu, answering(200, `{"code":19021,"msg":"sign match fail"}`), "code 19021: sign match fail"},
		"Feishu's yes from WeCom":    {alert.WeCom, answering(200, `{"code":0}`), "not the answer of a robot"},
		"a page of somebody else":    {alert.DingTalk, answering(200, `<html>`), "not the answer of a robot"},
		"a redirect":                 {alert.JSON, http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect).ServeHTTP, "redirects are not followed"},
		"an answer that never stops": {alert.JSON, answering(200, strings.Repeat("x", 100_000)), "more than 64 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			w.receiver.answers(tt.answer)
			got := w.alerter(t, w.receiver.target(tt.kind)).Test(t.Context())
			if len(got) != 1 || got[0].OK != (tt.want == "") || !strings.Contains(got[0].Answer, tt.want) {
				t.Errorf("%+v", got)
			}
			if (tt.want != "") != errors.Is(got[0].Err, alert.ErrRefused) {
				t.Errorf("error %v", got[0].Err)
			}
		})
	}
	if n := len(elsewhere.drain()); n != 0 {
		t.Errorf("%d messages went where a redirect pointed", n)
	}
}

func TestATargetThatFailsIsTriedAgainAndTheOthersAreNot(t *testing.T) {
	w := newWorld(t)
	broken := newReceiver(t)
	broken.answers(failed)
	second := broken.target(alert.Feishu)
	a := w.alerter(t, w.receiver.target(alert.JSON), second)
	if got := w.after(t, a, fails("users", "MALFORMED")); got != "halt users" || len(broken.drain()) != 1 {
		t.Fatalf("told %q", got)
	}
	if w.after(t, a); len(broken.drain()) != 0 {
		t.Error("it was tried again at once")
	}
	w.later(t, "7 seconds")
	broken.answers(took)
	if got := w.after(t, a); got != "" || len(broken.drain()) != 1 {
		t.Errorf("told %q", got)
	}
	w.later(t, "1 hour")
	if got := w.after(t, a); got != "" || len(broken.drain()) != 0 {
		t.Errorf("told %q again", got)
	}
}

func TestAfterTheLastAttemptOnlyTheReminderTriesAgain(t *testing.T) {
	w := newWorld(t)
	a := w.alerter(t)
	w.receiver.answers(failed)
	giveUp := func() {
		t.Helper()
		for i := range 12 {
			w.later(t, "20 minutes") // longer than any pause between attempts
			if w.after(t, a); t.Failed() {
				return
			}
			if log := w.log.String(); strings.Contains(log, "given up") != (i == 11) {
				t.Fatalf("attempt %d: %s", i+1, log)
			}
		}
	}
	a.Observe(t.Context(), []sync.Outcome{fails("users", "MALFORMED")})
	giveUp()
	w.later(t, "3 hours 59 minutes")
	if got := w.after(t, a); got != "" {
		t.Errorf("tried again: %q", got)
	}
	w.receiver.answers(took)
	w.later(t, "2 minutes")
	if got := w.after(t, a); got != "halt users" {
		t.Errorf("told %q", got)
	}
	w.receiver.answers(failed)
	a.Observe(t.Context(), []sync.Outcome{ends("users", sync.Synced, "incremental")})
	giveUp()
	if rows := w.rows(t); rows != "" {
		t.Errorf("an end that cannot be told is kept: %s", rows)
	}
}

func TestASlowTargetHoldsUpNobody(t *testing.T) {
	w := newWorld(t)
	slow := newReceiver(t)
	release := make(chan struct{})
	slow.answers(func(rw http.ResponseWriter, r *http.Request) {
		<-release
		took(rw, r)
	})
	a := w.alerter(t, w.receiver.target(alert.JSON), slow.target(alert.WeCom))
	ctx, cancel := context.WithCancel(t.Context())
	flushed := make(chan error)
	a.Observe(ctx, []sync.Outcome{fails("users", "MALFORMED"), held("users")})
	go func() { flushed <- a.Flush(ctx) }()
	<-slow.got
	for range 2 {
		decode(t, <-w.receiver.got)
	}
	a.Observe(ctx, []sync.Outcome{fails("contracts", "MALFORMED")}) // returns while the slow one is waited for
	if got := w.after(t, w.alerter(t)); got != "" {
		t.Errorf("told %q", got)
	}
	cancel()
	if err := <-flushed; err != nil {
		t.Error(err)
	}
	close(release)
	var attempts string
	if err := w.sql.QueryRow(t.Context(), `select string_agg(attempts::text, ' ' order by attempts) from xiaoqu_sync.alerts
		where target like 'wecom%' and resource = 'users' and claimed_until is null`).Scan(&attempts); err != nil || attempts != "0 1" {
		t.Errorf("attempts at what was on the wire and at what was not reached: %q, %v", attempts, err)
	}
}

func TestNoSecretIsLoggedOrStored(t *testing.T) {
	w := newWorld(t)
	plain := httptest.NewServer(http.HandlerFunc(took))
	plain.Close() // nobody listens there
	untrusted := httptest.NewTLSServer(http.HandlerFunc(took))
	defer untrusted.Close()
	cut := newReceiver(t)
	cut.answers(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	redirect := newReceiver(t)
	redirect.answers(http.RedirectHandler("https://"+token+".invalid/?"+token, http.StatusFound).ServeHTTP)
	echo := newReceiver(t)
	echo.answers(answering(200, `{"errcode":1,"errmsg":"no 13812345678 xqok-abcdefgh012345"}`))
	var targets []alert.Target
	for i, base := range []string{plain.URL, untrusted.URL, cut.URL, redirect.URL, echo.URL, "https://nobody.invalid", w.receiver.URL} {
		target := w.receiver.target(alert.DingTalk)
		target.Name = strings.Repeat("x", i+1)
		target.URL = credentials.NewSecret(base + "/" + token + "?access_token=" + token)
		targets = append(targets, target)
	}
	a := w.alerter(t, targets...)
	outcome := fails("users", "MALFORMED")
	outcome.Err = fault{errors.New(token + " 13812345678"), alert.Cause{Code: "MALFORMED", RequestID: "req 13812345678 xqak-abcdefgh012345"}}
	w.after2(t, a, outcome)
	var seen strings.Builder
	for _, answer := range a.Test(t.Context()) {
		seen.WriteString(answer.Answer + "\n")
	}
	for _, r := range []*receiver{w.receiver, cut, echo, redirect} {
		for _, d := range r.drain() {
			seen.Write(d.body)
		}
	}
	seen.WriteString(w.log.String() + w.rows(t))
	for _, canary := range []string{token, secret, "13812345678", "xqak-abc", "xqok-abc"} {
		if strings.Contains(seen.String(), canary) {
			t.Errorf("%s got out:\n%s", canary, seen.String())
		}
	}
	if n := strings.Count(seen.String(), "alert not delivered"); n != len(targets)-1 {
		t.Errorf("%d failures were logged, want %d: the test looks in the wrong place", n, len(targets)-1)
	}
}

func (w *world) after2(t testing.TB, a *alert.Alerter, outcomes ...sync.Outcome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	a.Observe(ctx, outcomes)
	if err := a.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}
