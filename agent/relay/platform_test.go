package relay_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// platform is the other side: Relay, written from the protocol's text alone. It
// signs, sends envelopes, and takes callbacks.
type platform struct {
	t        testing.TB
	secret   string
	endpoint string
	server   *httptest.Server
	arrived  chan callback // every callback with a good signature, answered or not

	mu     sync.Mutex
	seen   map[string]bool
	script func(callback) (status int, body string) // 0: as the protocol says
}

type callback struct {
	Order string
	Raw   string
	Body  struct {
		Type       string `json:"type"`
		RSP        string `json:"rsp"`
		OrderID    string `json:"order_id"`
		EventID    string `json:"event_id"`
		OccurredAt int64  `json:"occurred_at"`
		Output     *struct {
			Data  json.RawMessage  `json:"data"`
			Parts []map[string]any `json:"parts"`
		} `json:"output"`
		Error    *failing `json:"error"`
		Proposal *struct {
			ID string `json:"proposal_id"`
		} `json:"proposal"`
	}
}

// key is what Relay knows an event by.
func (c callback) key() string { return c.Body.OrderID + "/" + c.Body.Type + "/" + c.Body.EventID }

type failing struct {
	Code       string `json:"code"`
	Message    string `json:"message"`
	RetryAfter int    `json:"retry_after"`
	Details    struct {
		Reason string `json:"reason"`
	} `json:"details"`
}

// reply is a response to an envelope.
type reply struct {
	HTTP      int
	Header    http.Header
	Raw       string
	Status    string          `json:"status"`
	Challenge json.RawMessage `json:"challenge"`
	RSP       string          `json:"rsp"`
	TaskID    string          `json:"task_id"`
	Error     *failing        `json:"error"`
	Ref       string          `json:"supplier_user_ref"`
	Name      string          `json:"display_name"`
	Reason    string          `json:"reason"`
	Proposals []struct {
		ID      string `json:"proposal_id"`
		Content struct {
			Data json.RawMessage `json:"data"`
		} `json:"content"`
	} `json:"proposals"`
	Output *struct {
		Data  json.RawMessage  `json:"data"`
		Parts []map[string]any `json:"parts"`
	} `json:"output"`
}

func newPlatform(t testing.TB, secret string) *platform {
	p := &platform{t: t, secret: secret, arrived: make(chan callback, 1000), seen: map[string]bool{}}
	p.server = httptest.NewServer(http.HandlerFunc(p.take))
	t.Cleanup(p.server.Close)
	return p
}

func hexMAC(secret, text string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

func header(secret string, at time.Time, body string) string {
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hexMAC(secret, fmt.Sprintf("%d.%s", at.Unix(), body)))
}

// take receives a callback as §7 says.
func (p *platform) take(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	order := strings.TrimPrefix(r.URL.Path, "/v1/callbacks/")
	var t int64
	if _, scan := fmt.Sscanf(r.Header.Get("X-Relay-Signature"), "t=%d,", &t); err != nil || scan != nil ||
		r.Header.Get("X-Relay-Signature") != header(p.secret, time.Unix(t, 0), string(raw)) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	c := callback{Order: order, Raw: string(raw)}
	if err := json.Unmarshal(raw, &c.Body); err != nil {
		p.t.Errorf("a callback is no JSON: %v", err)
	}
	p.arrived <- c
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.script != nil {
		if status, body := p.script(c); status != 0 {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return
		}
	}
	switch {
	case len(raw) > 1<<20:
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	case c.Body.OrderID != order || c.Body.EventID == "" || c.Body.OccurredAt == 0 || c.Body.RSP != "1.0":
		w.WriteHeader(http.StatusUnprocessableEntity)
	case p.seen[c.key()]:
		_, _ = io.WriteString(w, `{"duplicate":true}`)
	default:
		p.seen[c.key()] = true
		_, _ = io.WriteString(w, `{}`)
	}
}

func (p *platform) answers(script func(callback) (int, string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = script
}

// next is the next callback that arrives.
func (p *platform) next() callback {
	p.t.Helper()
	select {
	case c := <-p.arrived:
		return c
	case <-time.After(20 * time.Second):
		p.t.Fatal("no callback arrives")
		return callback{}
	}
}

// post sends raw bytes with a signature header.
func (p *platform) post(signature, body string) reply {
	p.t.Helper()
	r, err := p.try(signature, body)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func (p *platform) try(signature, body string) (reply, error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, p.endpoint, bytes.NewReader([]byte(body)))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("X-Relay-RSP", "1.0")
	req.Header.Set("X-Relay-Signature", signature)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{Raw: string(raw)}
	if resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal(raw, &r); err != nil {
			return r, fmt.Errorf("no JSON: %w: %s", err, raw)
		}
	}
	r.HTTP, r.Header = resp.StatusCode, resp.Header
	return r, nil
}

// say signs an envelope and sends it.
func (p *platform) say(body string) reply {
	p.t.Helper()
	return p.post(header(p.secret, time.Now(), body), body)
}

// invoke places an order.
func (p *platform) invoke(order, action, input string) reply {
	p.t.Helper()
	return p.say(invocation(order, action, input))
}

func invocation(order, action, input string) string {
	return fmt.Sprintf(`{"type":"action.invoke","rsp":"1.0","issued_at":%d,"order_id":%q,"action":%q,"manifest_version":1,"input":%s,`+
		`"user":{"relay_uid":"u_pair_7f3a9c21d4","display_name":"小李","supplier_user_ref":null},"idempotency_key":%q}`,
		time.Now().Unix(), order, action, input, order)
}

// about sends an envelope about a task.
func (p *platform) about(kind, order, task, more string) reply {
	p.t.Helper()
	return p.say(fmt.Sprintf(`{"type":%q,"rsp":"1.0","issued_at":%d,"order_id":%q,"task_id":%q%s}`, kind, time.Now().Unix(), order, task, more))
}
