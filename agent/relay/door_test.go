package relay_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/relay"
)

const ping = `{"type":"ping","rsp":"1.0","issued_at":1,"challenge":"c_81"}`

func TestOnlyASignedPostIsHeard(t *testing.T) {
	w := open(t, func(o *relay.Options) {
		o.Secrets = func() [][]byte { return [][]byte{[]byte("whsec_next"), []byte(secret)} }
	})
	now := time.Now()
	for name, x := range map[string]struct {
		signature, body string
		want            int
	}{
		"the current secret":   {header("whsec_next", now, ping), ping, http.StatusOK},
		"the previous secret":  {header(secret, now, ping), ping, http.StatusOK},
		"another secret":       {header("whsec_other", now, ping), ping, http.StatusUnauthorized},
		"no signature":         {"", ping, http.StatusUnauthorized},
		"an old signature":     {header(secret, now.Add(-301*time.Second), ping), ping, http.StatusUnauthorized},
		"another body":         {header(secret, now, ping), ping + " ", http.StatusUnauthorized},
		"a body over 1 MB":     {header(secret, now, ping), strings.Repeat(" ", 1<<20+1), http.StatusRequestEntityTooLarge},
		"no JSON, not signed":  {"t=1,v1=00", "{", http.StatusUnauthorized},
		"a signed body of 1MB": {header(secret, now, ping+strings.Repeat(" ", 1<<20-len(ping))), ping + strings.Repeat(" ", 1<<20-len(ping)), http.StatusOK},
	} {
		r := w.relay.post(x.signature, x.body)
		if r.HTTP != x.want {
			t.Errorf("%s: HTTP %d, want %d", name, r.HTTP, x.want)
		}
		if r.HTTP != http.StatusOK && r.Raw != "" {
			t.Errorf("%s: a refusal says %q", name, r.Raw)
		}
	}
}

func TestThereIsOneEndpoint(t *testing.T) {
	w := open(t, nil)
	for _, x := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "", http.StatusMethodNotAllowed},
		{http.MethodPut, "", http.StatusMethodNotAllowed},
		{http.MethodDelete, "", http.StatusMethodNotAllowed},
		{http.MethodPost, "/x", http.StatusNotFound},
	} {
		req, err := http.NewRequestWithContext(t.Context(), x.method, w.relay.endpoint+x.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != x.want {
			t.Errorf("%s /relay%s: HTTP %d, want %d", x.method, x.path, resp.StatusCode, x.want)
		}
	}
}

func TestMoreAtOnceThanWasSaidIsRateLimited(t *testing.T) {
	w := open(t, func(o *relay.Options) { o.MaxConcurrent = 1 })
	w.mirror.block, w.mirror.reading = make(chan struct{}), make(chan struct{}, 1)
	first := make(chan reply, 1)
	body := invocation("ord_slow", "mirror_freshness", `{}`)
	go func() {
		r, err := w.relay.try(header(secret, time.Now(), body), body)
		if err != nil {
			t.Error(err)
		}
		first <- r
	}()
	<-w.mirror.reading
	r := w.relay.say(ping)
	if r.HTTP != http.StatusTooManyRequests || r.Header.Get("Retry-After") == "" {
		t.Errorf("HTTP %d, Retry-After %q", r.HTTP, r.Header.Get("Retry-After"))
	}
	close(w.mirror.block)
	if r := <-first; r.Status != "completed" {
		t.Errorf("the first one: %s", r.Raw)
	}
	if r := w.relay.say(ping); r.Status != "ok" {
		t.Errorf("after it: %s", r.Raw)
	}
}

// Strangers that send a body slowly take no place of Relay's.
func TestSlowStrangersDoNotKeepRelayOut(t *testing.T) {
	w := open(t, func(o *relay.Options) { o.MaxConcurrent = 1 })
	for range 3 {
		var dialer net.Dialer
		conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimSuffix(strings.TrimPrefix(w.relay.endpoint, "http://"), "/relay"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		// The server asks for the body when its handler reads.
		if _, err := conn.Write([]byte("POST /relay HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
			t.Fatal(line, err)
		}
	}
	if r := w.relay.say(ping); r.Status != "ok" {
		t.Errorf("HTTP %d: %s", r.HTTP, r.Raw)
	}
}

type noBindings struct{}

func (noBindings) Redeem(context.Context, string, string) (string, string, bool, error) {
	return "", "", false, nil
}

func TestADoorIsNotMadeOf(t *testing.T) {
	service, err := agent.New(agent.Options{Resources: []agent.Resource{{Name: "users"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*relay.Options){
		"no service":                  func(o *relay.Options) { o.Service = nil },
		"no secret":                   func(o *relay.Options) { o.Secrets = nil },
		"callbacks without TLS":       func(o *relay.Options) { o.CallbackURL = "http://relay.example.com/v1/callbacks" },
		"an endpoint without TLS":     func(o *relay.Options) { o.EndpointURL = "http://mirror.example.com/relay" },
		"a password in an address":    func(o *relay.Options) { o.CallbackURL = "https://u:hunter2@relay.example.com/" },
		"an address with a query":     func(o *relay.Options) { o.CallbackURL = "https://relay.example.com/?key=hunter2" },
		"no address":                  func(o *relay.Options) { o.CallbackURL = "relay.example.com" },
		"a binding nobody redeems":    func(o *relay.Options) { o.Supplier.UserBinding, o.Bindings = "token", nil },
		"a binding that is not taken": func(o *relay.Options) { o.Supplier.UserBinding = "oauth" },
	} {
		o := relay.Options{Service: service, Secrets: func() [][]byte { return nil }, Bindings: noBindings{}, CallbackURL: "http://127.0.0.1:1/v1/callbacks"}
		if _, err := relay.New(o); err != nil {
			t.Fatal(err)
		}
		spoil(&o)
		if _, err := relay.New(o); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
