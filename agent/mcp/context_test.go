package mcp_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent/mcp"
)

// tasks counts what was begun.
func (s *scene) tasks(t testing.TB) (n int) {
	t.Helper()
	if err := s.sql.QueryRow(t.Context(), "select count(*) from xiaoqu_sync.agent_tasks").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Whatever is wrong with a call's context, nothing runs.
func TestACallIsRefusedUnlessItsContextIsRight(t *testing.T) {
	s := open(t)
	p := newPlatform(s).shake(t)
	body := p.request("tools/call", `{"name":"sync_run","arguments":{}}`)
	for name, c := range map[string]struct {
		change func(p *platform, headers map[string]string)
		body   string
		status int
		code   string
	}{
		"no context":          {func(_ *platform, h map[string]string) { clear(h) }, "", 401, "context_missing"},
		"no signature":        {func(_ *platform, h map[string]string) { delete(h, "X-Xiaoya-Signature") }, "", 401, "context_missing"},
		"no invocation":       {func(_ *platform, h map[string]string) { delete(h, "X-Xiaoya-Invocation-Id") }, "", 401, "context_missing"},
		"no hex":              {func(_ *platform, h map[string]string) { h["X-Xiaoya-Signature"] = "zz" }, "", 401, "context_signature"},
		"cut signature":       {func(_ *platform, h map[string]string) { h["X-Xiaoya-Signature"] = h["X-Xiaoya-Signature"][:62] }, "", 401, "context_signature"},
		"other key":           {func(p *platform, h map[string]string) { p.key = "another-key-of-some-length"; resign(p, h, body) }, "", 401, "context_signature"},
		"other body":          {func(*platform, map[string]string) {}, strings.Replace(body, "sync_run", "verify_run", 1), 401, "context_signature"},
		"other invocation":    {func(_ *platform, h map[string]string) { h["X-Xiaoya-Invocation-Id"] = "i-2" }, "", 401, "context_signature"},
		"other time":          {func(_ *platform, h map[string]string) { h["X-Xiaoya-Timestamp"] += "0" }, "", 401, "context_signature"},
		"old":                 {func(p *platform, h map[string]string) { p.now = ago(301 * time.Second); resign(p, h, body) }, "", 401, "context_stale"},
		"of the future":       {func(p *platform, h map[string]string) { p.now = ago(-302 * time.Second); resign(p, h, body) }, "", 401, "context_stale"},
		"another agent":       {func(p *platform, h map[string]string) { p.agent = "somebody-else"; resign(p, h, body) }, "", 403, "context_agent"},
		"a path for an id":    {func(p *platform, h map[string]string) { resignAs(p, h, "../../charge", body) }, "", 401, "context_invalid"},
		"an id with a space":  {func(p *platform, h map[string]string) { resignAs(p, h, "a b", body) }, "", 401, "context_invalid"},
		"a very long id":      {func(p *platform, h map[string]string) { resignAs(p, h, strings.Repeat("a", 129), body) }, "", 401, "context_invalid"},
		"a callback outside":  {func(_ *platform, h map[string]string) { h["X-Xiaoya-Callback-Url"] = "https://evil.example.com/i-1" }, "", 403, "context_callback"},
		"callback of another": {func(_ *platform, h map[string]string) { h["X-Xiaoya-Callback-Url"] = s.platform.url + "/i-2" }, "", 403, "context_callback"},
	} {
		t.Run(name, func(t *testing.T) {
			p := *p
			headers := p.context("i-1", body)
			c.change(&p, headers)
			sent := body
			if c.body != "" {
				sent = c.body
			}
			r := p.send(t, http.MethodPost, sent, headers)
			code, why := r.fault(t)
			if r.status != c.status || code != -32600 || why != c.code {
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
	if n := s.tasks(t); n != 0 {
		t.Errorf("%d tasks were begun", n)
	}
	headers := p.context("i-1", body)
	headers["X-Xiaoya-Callback-Url"] = s.platform.url + "/i-1"
	p.send(t, http.MethodPost, body, headers).outcome(t)
	if n := s.tasks(t); n != 1 {
		t.Errorf("%d tasks", n)
	}
}

func ago(d time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(-d) }
}

func resign(p *platform, h map[string]string, body string) { resignAs(p, h, "i-1", body) }

func resignAs(p *platform, h map[string]string, invocation, body string) {
	for k, v := range p.context(invocation, body) {
		h[k] = v
	}
}

func TestTwoKeysAreGoodWhileOneTakesTheOthersPlace(t *testing.T) {
	s := open(t, func(st *stage) { st.door.Context.Keys = append(st.door.Context.Keys, []byte("the-next-signing-key")) })
	for _, key := range []string{signingKey, "the-next-signing-key"} {
		p := newPlatform(s).shake(t)
		p.key = key
		p.call(t, "i-"+key[:3], "mirror_status", `{}`).outcome(t)
	}
}

// questioned is the platform's introspection endpoint.
func questioned(t testing.TB, answer func(asked map[string]string) (int, string)) (url string, asked chan map[string]string) {
	t.Helper()
	asked = make(chan map[string]string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q map[string]string
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &q); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s %s: %v", r.Method, text, err)
		}
		q["authorization"] = r.Header.Get("Authorization")
		asked <- q
		status, say := answer(q)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		fmt.Fprint(w, say)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/api/v1/open-agent-tools/call-context/introspect", asked
}

func TestThePlatformIsAskedAboutACall(t *testing.T) {
	var status int
	var say string
	url, asked := questioned(t, func(map[string]string) (int, string) { return status, say })
	s := open(t, func(st *stage) {
		st.door.Context = mcp.Context{IntrospectURL: url, Credential: "canary-introspection"}
	})
	p := newPlatform(s).shake(t)
	soon, past := time.Now().Add(time.Minute), time.Now().Add(-time.Second)
	good := `{"active":true,"agent_id":"` + agentID + `","invocation_id":"i-1","subject":"u_1","expires_at":%s}`
	for name, c := range map[string]struct {
		status int
		say    string
		want   int
		code   string
	}{
		"active":               {200, fmt.Sprintf(good, `"`+soon.Format(time.RFC3339)+`"`), 200, ""},
		"active, in seconds":   {200, fmt.Sprintf(good, fmt.Sprint(soon.Unix())), 200, ""},
		"expired":              {200, fmt.Sprintf(good, `"`+past.Format(time.RFC3339)+`"`), 401, "context_inactive"},
		"no end":               {200, strings.Replace(good, `,"expires_at":%s`, "", 1), 401, "context_inactive"},
		"inactive":             {200, `{"active":false}`, 401, "context_inactive"},
		"for another agent":    {200, fmt.Sprintf(strings.Replace(good, agentID, "x", 1), fmt.Sprint(soon.Unix())), 403, "context_agent"},
		"another invocation":   {200, fmt.Sprintf(strings.Replace(good, "i-1", "i-2", 1), fmt.Sprint(soon.Unix())), 403, "context_invocation"},
		"callback elsewhere":   {200, fmt.Sprintf(strings.Replace(good, "{", `{"callback_url":"https://evil.example.com/i-1",`, 1), fmt.Sprint(soon.Unix())), 403, "context_callback"},
		"does not know us":     {401, `{}`, 503, "context_unavailable"},
		"broken":               {500, `oops`, 503, "context_unavailable"},
		"no JSON":              {200, `<html>`, 503, "context_unavailable"},
		"leads somewhere else": {307, ``, 503, "context_unavailable"},
		"endless":              {200, `{"x":"` + strings.Repeat("x", 1<<20), 503, "context_unavailable"},
	} {
		status, say = c.status, c.say
		r := p.call(t, "i-1", "mirror_status", `{}`)
		q := wait(t, asked)
		if q["authorization"] != "Bearer canary-introspection" || q["agent_id"] != agentID || q["invocation_id"] != "i-1" || len(q["body_sha256"]) != 64 || len(asked) > 0 {
			t.Errorf("%s: asked %v", name, q)
		}
		if r.status != c.want {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		} else if c.want == 200 {
			r.outcome(t)
		} else if _, why := r.fault(t); why != c.code {
			t.Errorf("%s: %s", name, r.body)
		}
	}
	var caller string
	if err := s.sql.QueryRow(t.Context(), "select caller from xiaoqu_sync.agent_tasks").Scan(&caller); err != nil || caller != "u_1" {
		t.Errorf("caller %q, %v", caller, err)
	}
}

func TestUnsignedCallsAreForThisMachineOnly(t *testing.T) {
	s := open(t, func(st *stage) { st.door.Context.AllowUnsigned = true })
	p := newPlatform(s).shake(t)
	if o := p.ask(t, "tools/call", `{"name":"mirror_status"}`).outcome(t); o.Body.Status != "completed" {
		t.Errorf("%+v", o)
	}
	// A context that is there is checked all the same.
	body := p.request("tools/call", `{"name":"mirror_status"}`)
	headers := p.context("i-1", body)
	delete(headers, "X-Xiaoya-Signature")
	if r := p.send(t, http.MethodPost, body, headers); r.status != 401 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := p.send(t, http.MethodPost, body, map[string]string{"X-Forwarded-For": "203.0.113.9"}); r.status != 401 {
		t.Errorf("through a proxy: %d %s", r.status, r.body)
	}
	_, err := mcp.New(mcp.Options{Service: s.service, Application: mcp.Application{ID: "x"}, PublicURL: "https://mirror.example.com", Context: mcp.Context{AllowUnsigned: true}})
	if err == nil {
		t.Error("unsigned calls from everywhere")
	}
}

func TestADoorRefusesWhatItCannotKeep(t *testing.T) {
	_, err := mcp.New(mcp.Options{PublicURL: "http://mirror.example.com", Context: mcp.Context{Keys: [][]byte{[]byte("short")}, IntrospectURL: "http://x.example.com"}})
	for _, want := range []string{"no service", "no id", "16 bytes", "public URL must be https", "introspection URL must be https"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if _, err := mcp.New(mcp.Options{PublicURL: "https://mirror.example.com"}); err == nil || !strings.Contains(err.Error(), "could not be checked") {
		t.Errorf("a door without a check: %v", err)
	}
}

// What protects a call goes nowhere: not into tables, logs, answers or callbacks.
func TestTheCallsContextLeavesNoTrace(t *testing.T) {
	s := open(t)
	s.run(t)
	p := newPlatform(s).shake(t)
	body := p.request("tools/call", `{"name":"rebuild_plan","arguments":{"resources":["users"]}}`)
	headers := p.context("i-1", body)
	headers["Authorization"], headers["Cookie"] = "Bearer canary-platform-jwt", "canary-cookie=1"
	secrets := []string{headers["X-Xiaoya-Signature"], signingKey, credential, "canary-"}
	seen := []string{string(p.send(t, http.MethodPost, body, headers).body)}
	headers["X-Xiaoya-Signature"] = strings.Repeat("ab", 32)
	secrets = append(secrets, headers["X-Xiaoya-Signature"])
	seen = append(seen, string(p.send(t, http.MethodPost, body, headers).body))
	s.work(t, nil)
	told := wait(t, s.platform.told)
	if told.header.Get("X-Xiaoya-Signature") != "" {
		t.Error("the callback carries the call's signature")
	}
	seen = append(seen, string(told.body), string(p.ask(t, "tools/list", "").body))
	for _, entry := range s.logs.All() {
		seen = append(seen, fmt.Sprint(entry.Message, entry.ContextMap()))
	}
	var reply []byte // the others' bytes are the input and the answer
	if err := s.sql.QueryRow(t.Context(), "select reply_to from xiaoqu_sync.agent_tasks").Scan(&reply); err != nil || string(reply) != `{"invocation":"i-1"}` {
		t.Errorf("kept %s, %v", reply, err)
	}
	for _, table := range []string{"agent_tasks", "agent_events", "agent_documents"} {
		var text string
		if err := s.sql.QueryRow(t.Context(), "select coalesce(string_agg(t::text, ' '), '') from xiaoqu_sync."+table+" t").Scan(&text); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, text)
	}
	for _, text := range seen {
		for _, secret := range secrets {
			if strings.Contains(text, secret) || strings.Contains(text, hex.EncodeToString([]byte(secret))) { // as PostgreSQL shows bytes
				t.Errorf("%q is in %.300s", secret, text)
			}
		}
	}
	if len(s.logs.FilterMessage("a call was refused").All()) != 1 {
		t.Errorf("logs: %v", s.logs.All())
	}
}

func TestTheSDKSeesNoProtectedHeader(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "https://mirror.example.com/mcp", nil)
	for _, name := range []string{"Authorization", "Cookie", "X-Xiaoya-Signature", "X-Xiaoya-Invocation-Id", "X-Verified-Call", "X-Of-Another-Name", "Mcp-Session-Id"} {
		r.Header.Set(name, "x")
	}
	got := mcp.Reduced(r).Header
	if want := (http.Header{"Mcp-Session-Id": {"x"}, "Accept": {"application/json, text/event-stream"}}); cmp.Diff(want, got) != "" {
		t.Error(cmp.Diff(want, got))
	}
}
