package alert_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync/alert"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// The flag belongs to the test binary alone.
var update = flag.Bool("update", false, "rewrite the golden files")

// decode checks a plain event's signature, as a receiver would, and reads it.
func decode(t testing.TB, d delivery) alert.Event {
	t.Helper()
	at, v1, ok := strings.Cut(strings.TrimPrefix(d.header.Get(alert.SignatureHeader), "t="), ",v1=")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		t.Fatalf("signature %q", d.header.Get(alert.SignatureHeader))
	}
	if want := hex.EncodeToString(mac(secret, at+"."+string(d.body))); v1 != want {
		t.Fatalf("signature %s, want %s", v1, want)
	}
	var e alert.Event
	if err := json.Unmarshal(d.body, &e); err != nil {
		t.Fatalf("%v: %s", err, d.body)
	}
	return e
}

func mac(key, text string) []byte {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	return h.Sum(nil)
}

// one is the only message for a trouble, on a target of that kind.
func (w *world) one(t testing.TB, kind alert.Kind) delivery {
	t.Helper()
	a := w.alerter(t, w.receiver.target(kind))
	a.Observe(t.Context(), []sync.Outcome{fails("users", "PERMISSION_DENIED"), fails("contracts", "PERMISSION_DENIED")})
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := w.receiver.drain()
	if len(got) != 1 || got[0].header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Fatalf("%d messages: %+v\n%s", len(got), got, w.log)
	}
	return got[0]
}

// settled takes out what is different every time.
func settled(text string) string {
	for what, with := range map[string]string{
		`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`: "2026-01-01T00:00:00Z",
		`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+08:00`:  "2026-01-01 08:00:00 +08:00",
		`\b[0-9a-f]{24}\b|test-\d{13}`:            "0123456789abcdef01234567",
		`"timestamp": "\d{10}"`:                   `"timestamp": "1760000000"`,
		`"sign": "[A-Za-z0-9+/]{43}="`:            `"sign": "base64"`,
	} {
		text = regexp.MustCompile(what).ReplaceAllString(text, with)
	}
	return text
}

func sameAsGolden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", path, diff)
	}
}

func indented(t testing.TB, body []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return settled(b.String())
}

func TestThePlainEvent(t *testing.T) {
	d := newWorld(t).one(t, alert.JSON)
	decode(t, d)
	sameAsGolden(t, "json.golden", indented(t, d.body))
}

func TestTheDocumentedSchemaHoldsForEveryEvent(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../../docs/alert-event.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	a := w.alerter(t)
	w.exec(t, `insert into xiaoqu_sync.state (resource, last_success_at) values ('contracts', now() - interval '3 hours')`)
	w.after(t, a) // of old data, so that a reminder can follow
	w.later(t, "5 hours")
	a.Observe(t.Context(), []sync.Outcome{held("users"), drifted("contracts"), fails("properties", "UNAUTHENTICATED"), fails("users", "MALFORMED")})
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.Observe(t.Context(), []sync.Outcome{ends("users", sync.Synced, "rebuild")})
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.Test(t.Context())
	got := w.receiver.drain()
	for _, d := range got {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(d.body))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", d.body, err)
		}
	}
	if len(got) != 7 {
		t.Errorf("%d events, want a reminder, four troubles, one end and a test", len(got))
	}
}

func TestTheRobotOfWeCom(t *testing.T) {
	d := newWorld(t).one(t, alert.WeCom)
	if d.query != "key="+token+"&access_token="+token {
		t.Errorf("query %s", d.query)
	}
	sameAsGolden(t, "wecom.golden", indented(t, d.body))
}

func TestTheRobotOfDingTalk(t *testing.T) {
	d := newWorld(t).one(t, alert.DingTalk)
	q, err := url.ParseQuery(d.query)
	if err != nil || q.Get("access_token") != token {
		t.Fatalf("query %s: %v", d.query, err)
	}
	at := q.Get("timestamp")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil || time.Since(time.UnixMilli(ms)).Abs() > time.Minute {
		t.Errorf("timestamp %s", at)
	}
	if want := base64.StdEncoding.EncodeToString(mac(secret, at+"\n"+secret)); q.Get("sign") != want {
		t.Errorf("sign %s, want %s", q.Get("sign"), want)
	}
	sameAsGolden(t, "dingtalk.golden", indented(t, d.body))
}

func TestTheRobotOfFeishu(t *testing.T) {
	d := newWorld(t).one(t, alert.Feishu)
	var signed struct{ Timestamp, Sign string }
	if err := json.Unmarshal(d.body, &signed); err != nil {
		t.Fatal(err)
	}
	s, err := strconv.ParseInt(signed.Timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(s, 0)).Abs() > time.Minute {
		t.Errorf("timestamp %s", signed.Timestamp)
	}
	if want := base64.StdEncoding.EncodeToString(mac(signed.Timestamp+"\n"+secret, "")); signed.Sign != want {
		t.Errorf("sign %s, want %s", signed.Sign, want)
	}
	sameAsGolden(t, "feishu.golden", indented(t, d.body))
}

// TestTheTextsOfEveryClassAndCode keeps them where people can read them.
func TestTheTextsOfEveryClassAndCode(t *testing.T) {
	w := newWorld(t)
	w.exec(t, `insert into xiaoqu_sync.state (resource, last_success_at) values ('contracts', now() - interval '3 hours')`)
	w.exec(t, `insert into xiaoqu_sync.state (resource, last_success_at, complete_cutoff_at) values ('users', now(), now() - interval '3 hours')`)
	w.exec(t, `insert into xiaoqu_sync.runs (resource, mode, started_at) values ('properties', 'first', now() - interval '5 hours')`)
	steps := [][]sync.Outcome{
		{held("users"), drifted("contracts"), fails("properties", "UNAUTHENTICATED"), fails("users", "INTERNAL")},
		{ends("users", sync.Synced, "rebuild"), ends("contracts", sync.Verified, "verify")},
	}
	for _, code := range []string{
		"KEY_INVALID", "PERMISSION_DENIED", "INVALID_ARGUMENT", "MALFORMED", "SYNC_CURSOR_EXPIRED", "NOT_A_SERVICE_TOKEN",
		"NO_SYNC_CAPABILITY", "ANOTHER_TENANT", "MISSING_TOOL", "SCHEMA_MISMATCH", "DATABASE_REFUSED",
	} {
		steps = append(steps, []sync.Outcome{fails("users", code)}, []sync.Outcome{ends("users", sync.Synced, "incremental")})
	}
	for _, language := range []string{"zh", "en"} {
		w.exec(t, "truncate xiaoqu_sync.alerts")
		o := w.options(w.receiver.target(alert.WeCom))
		o.Language = language
		a, err := alert.New(o)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		say := func() {
			for _, d := range w.receiver.drain() {
				all = append(all, settled(content(t, d)))
			}
		}
		for _, s := range steps {
			a.Observe(t.Context(), s)
			if err := a.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			say()
		}
		w.later(t, "5 hours")
		if err := a.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		say()
		a.Test(t.Context())
		say()
		slices.Sort(all)
		sameAsGolden(t, "texts-"+language+".golden", strings.Join(slices.Compact(all), "\n\n")+"\n")
	}
}

// content is the text of a message to WeCom.
func content(t testing.TB, d delivery) string {
	t.Helper()
	var m struct{ Markdown struct{ Content string } }
	if err := json.Unmarshal(d.body, &m); err != nil || m.Markdown.Content == "" {
		t.Fatalf("%v: %s", err, d.body)
	}
	return m.Markdown.Content
}

func TestValuesOfOthersCannotMentionOrMarkUp(t *testing.T) {
	w := newWorld(t)
	o := fails("users", "MALFORMED")
	o.Err = fault{errors.New("x"), alert.Cause{Code: "MALFORMED", RequestID: "<@all> [a](http://b) 13812345678\n**x** " + strings.Repeat("长", 3000)}}
	for _, kind := range []alert.Kind{alert.WeCom, alert.DingTalk, alert.Feishu} {
		w.exec(t, "truncate xiaoqu_sync.alerts")
		a := w.alerter(t, w.receiver.target(kind))
		a.Observe(t.Context(), []sync.Outcome{o})
		if err := a.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		body := string(w.receiver.drain()[0].body)
		for _, bad := range []string{"<@", "](", "13812345678", "**x"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s: %q is in %s", kind, bad, body)
			}
		}
		if kind == alert.WeCom && len(content(t, delivery{body: []byte(body)})) > 4096 {
			t.Errorf("%d bytes", len(body))
		}
	}
}
