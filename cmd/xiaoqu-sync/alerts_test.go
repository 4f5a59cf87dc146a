package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync/alert"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// hookToken stands where the robots' keys stand.
const hookToken = "canary-hook-0123456789"

// receiver takes what alerts send and answers with a status.
func receiver(t testing.TB, status int) (url string, got chan alert.Event) {
	t.Helper()
	got = make(chan alert.Event, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e alert.Event
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &e); err != nil || r.Header.Get(alert.SignatureHeader) == "" {
			t.Errorf("%s: %v", body, err)
		}
		got <- e
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/hook/" + hookToken + "?key=" + hookToken, got
}

// told are the events so far, in short.
func told(got chan alert.Event) string {
	var texts []string
	for {
		select {
		case e := <-got:
			text := string(e.Class) + " " + e.Code
			for _, r := range e.Resources {
				text += " " + r.Resource
			}
			texts = append(texts, text)
		default:
			return strings.Join(texts, ", ")
		}
	}
}

// receivers writes a configuration with these targets and returns its flags.
func receivers(t testing.TB, targets ...string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "xiaoqu-sync.yaml")
	text := "alerts:\n  name: crm\n  targets:\n    - " + strings.Join(targets, "\n    - ") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--config", path}
}

// Not of old data: the simulator's clock is not ours.
const signedTarget = "{kind: json, url_env: ALERT_URL, secret_env: ALERT_SECRET, events: [halt, credentials, held, drift, recovered]}"

func TestRunsThatEndTellWhatHappened(t *testing.T) {
	c := newCLI(t)
	url, got := receiver(t, http.StatusNoContent)
	c.set("ALERT_URL", url)
	c.set("ALERT_SECRET", "canary-secret-0123456789\n")
	flags := receivers(t, signedTarget)
	c.xiaoqu.Seed(3, 3, 3)
	c.xiaoqu.Inject(remotetest.Fault{
		Match: remotetest.OnTool("users.changes.list", 0), Times: 2, Do: remotetest.Fail(remotetest.Failure{Code: remotetest.PermissionDenied}),
	})
	key := c.xiaoqu.Key()
	var seen strings.Builder
	for i, step := range []struct {
		key, verb string
		exit      int
		want      string
	}{
		{key, "sync", exitRefused, "halt PERMISSION_DENIED users"},
		{key, "sync users", exitRefused, ""},
		{"", "sync contracts", exitUsage, "credentials KEY_INVALID contracts"},
		{"xqok-another-one-0123456789", "sync contracts users", exitCredentials, "credentials CREDENTIALS_REFUSED users"},
		{key, "verify nothing", exitUsage, ""},
		{key, "sync", 0, "recovered  contracts users users"},
		{key, "rebuild users --abort", exitUsage, ""},
		{key, "verify", 0, ""},
		{key, "rebuild users", 0, ""},
	} {
		c.set("XIAOQU_OPEN_KEY", step.key)
		r := c.run(t, append(append(strings.Fields(step.verb), "--log-level", "debug"), flags...)...)
		seen.WriteString(r.out + r.err)
		if text := told(got); r.exit != step.exit || text != step.want {
			t.Errorf("step %d, %s: exit %d, told %q, want %d, %q\n%s", i, step.verb, r.exit, text, step.exit, step.want, r.err)
		}
	}
	for _, row := range c.read(t, "select a::text from xiaoqu_sync.alerts a") {
		seen.WriteString(row[0])
	}
	for _, canary := range []string{hookToken, "canary-secret"} {
		if strings.Contains(seen.String(), canary) {
			t.Errorf("%s got out", canary)
		}
	}
}

func TestADriftIsTold(t *testing.T) {
	c := newCLI(t)
	url, got := receiver(t, http.StatusOK)
	c.set("ALERT_URL", url)
	c.set("ALERT_SECRET", "canary-secret-0123456789")
	flags := receivers(t, signedTarget)
	c.xiaoqu.Seed(3, 3, 3)
	c.must(t, append([]string{"sync"}, flags...)...)
	c.read(t, "delete from xiaoqu.users where id = '"+c.xiaoqu.IDs("users")[0]+"'")
	if r := c.run(t, append([]string{"verify"}, flags...)...); r.exit != exitContract {
		t.Errorf("verify: exit %d\n%s", r.exit, r.err)
	}
	c.must(t, append([]string{"rebuild", "users"}, flags...)...)
	if text := told(got); text != "drift DRIFT users, recovered  users" {
		t.Errorf("told %q", text)
	}
}

func TestAReceiverThatFailsDoesNotChangeHowARunEnds(t *testing.T) {
	c := newCLI(t)
	url, got := receiver(t, http.StatusBadGateway)
	c.set("ALERT_URL", url)
	c.set("ALERT_SECRET", "canary-secret-0123456789")
	c.xiaoqu.Seed(3, 3, 3)
	c.xiaoqu.Inject(remotetest.Fault{
		Match: remotetest.OnTool("users.changes.list", 1), Do: remotetest.Fail(remotetest.Failure{Code: remotetest.PermissionDenied}),
	})
	r := c.run(t, append([]string{"sync"}, receivers(t, signedTarget)...)...)
	if r.exit != exitRefused || !strings.Contains(r.err, "alert not delivered") || told(got) == "" {
		t.Errorf("exit %d\n%s", r.exit, r.err)
	}
	if strings.Contains(r.err, hookToken) {
		t.Errorf("the address is in the log: %s", r.err)
	}
}

func TestAlertTest(t *testing.T) {
	c := newCLI(t)
	c.set("XIAOQU_BASE_URL", "") // the remote is not asked
	yes, got := receiver(t, http.StatusOK)
	no, _ := receiver(t, http.StatusForbidden)
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte(no+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.set("ALERT_URL", yes)
	c.set("ALERT_SECRET", "canary-secret-0123456789")
	c.set("GONE_URL", "http://127.0.0.1:1/"+hookToken)
	refusing := fmt.Sprintf("{kind: json, url_file: %s, secret_env: ALERT_SECRET}", file)
	const gone = "{kind: wecom, url_env: GONE_URL}"
	for _, tt := range []struct {
		targets []string
		exit    int
		code    string
	}{
		{[]string{signedTarget}, 0, ""},
		{[]string{signedTarget, gone}, exitRemote, "RECEIVER_UNREACHABLE"},
		{[]string{gone, refusing, signedTarget}, exitUsage, "RECEIVER_REFUSES"},
	} {
		flags := receivers(t, tt.targets...)
		r := c.run(t, append([]string{"alert", "test"}, flags...)...)
		if r.exit != tt.exit || !strings.Contains(r.out, "json env ALERT_URL") || strings.Contains(r.out+r.err, hookToken) {
			t.Errorf("%v: exit %d\n%s%s", tt.targets, r.exit, r.out, r.err)
		}
		w := c.run(t, append([]string{"alert", "test", "-o", "json"}, flags...)...).envelope(t)
		if w.OK != (tt.exit == 0) || w.Error.Code != tt.code || strings.Count(string(w.Data)+string(w.Error.Details), `"target"`) != len(tt.targets) {
			t.Errorf("%v: %+v", tt.targets, w)
		}
	}
	if text := told(got); strings.Count(text, "test ") != 6 {
		t.Errorf("told %q", text)
	}
	if r := c.run(t, "alert", "test"); r.exit != exitUsage || !strings.Contains(r.err, "alerts.targets") {
		t.Errorf("without a receiver: exit %d\n%s", r.exit, r.err)
	}
}

func TestAReceiverWithoutItsAddressIsAMistakeBeforeTheRun(t *testing.T) {
	c := newCLI(t)
	c.set("ALERT_URL", "http://alerts.example.com/"+hookToken)
	for target, want := range map[string]string{
		"{kind: json, url_env: NOT_SET}":                         "alerts.targets.0.url: the variable NOT_SET is not set",
		"{kind: json, url_file: /no/such/file}":                  "alerts.targets.0.url: /no/such/file cannot be read: no such file",
		"{kind: json, url_env: ALERT_URL, secret_env: NOT_SET}":  "alerts.targets.0.secret: the variable NOT_SET is not set",
		"{kind: json, url_env: ALERT_URL, events: [held, halt]}": "json env ALERT_URL: its address must begin with https://",
	} {
		flags := receivers(t, target)
		for _, verb := range []string{"sync", "rebuild users", "rebuild users --abort", "verify", "alert test"} {
			r := c.run(t, append(strings.Fields(verb), flags...)...)
			if r.exit != exitUsage || !strings.Contains(r.err, want) || strings.Contains(r.err, hookToken) {
				t.Errorf("%s with %s: exit %d\n%s", verb, target, r.exit, r.err)
			}
		}
	}
	r := c.must(t, append([]string{"config", "validate"}, receivers(t, "{kind: json, url_env: NOT_SET}")...)...)
	if !strings.Contains(r.err, "warning: ") || !strings.Contains(r.err, "NOT_SET") {
		t.Errorf("validate: %s", r.err)
	}
}
