package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// replyTo is what a task keeps of its call's context: no credential, no signature.
type replyTo struct {
	Invocation string `json:"invocation,omitempty"`
}

// CourierOptions are what a Courier needs.
type CourierOptions struct {
	CallbackURL string // exact and https but for loopback; the invocation's id is put behind it
	Credential  string // that the platform issued for callbacks; sent as bearer
	PublicURL   string // as in Options
}

// Courier tells the platform how asynchronous calls ended. It is an agent.Courier for
// the door "mcp".
type Courier struct {
	options CourierOptions
	client  *http.Client
}

// NewCourier checks the options; it calls nobody.
func NewCourier(o CourierOptions) (*Courier, error) {
	if err := exact(o.CallbackURL); err != nil {
		return nil, fmt.Errorf("mcp: the callback URL %w", err)
	}
	if o.Credential == "" {
		return nil, errors.New("mcp: callbacks need the credential that the platform issued for them")
	}
	o.PublicURL = strings.TrimSuffix(o.PublicURL, "/")
	return &Courier{options: o, client: platform(tellTime)}, nil
}

// Deliver submits a task's last envelope for its invocation. Every attempt has the
// same address, body and Idempotency-Key, the event's id.
func (c *Courier) Deliver(ctx context.Context, t agent.Task, e agent.Event) (agent.Verdict, error) {
	var to replyTo
	if err := json.Unmarshal(t.ReplyTo, &to); err != nil {
		return agent.Refused, errors.New("mcp: the task does not say where it came from")
	}
	if to.Invocation == "" || !t.State.Final() {
		return agent.Delivered, nil // nobody waits for it
	}
	last := ended(c.options.PublicURL, t)
	if last.Artifacts == nil {
		last.Artifacts = []artifact{}
	}
	body, err := text(last)
	if err != nil {
		return agent.Refused, errors.New("mcp: the envelope has no JSON")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, callbackTo(c.options.CallbackURL, to.Invocation), bytes.NewReader(body))
	if err != nil {
		return agent.Refused, errors.New("mcp: the callback has no address")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.options.Credential)
	req.Header.Set("Idempotency-Key", e.ID)
	res, err := c.client.Do(req)
	if err != nil {
		return agent.Again, fmt.Errorf("mcp: the callback endpoint cannot be reached: %w", bare(err))
	}
	_, _ = io.CopyN(io.Discard, res.Body, maxSpoken) // for the connection's sake
	_ = res.Body.Close()
	return verdict(res.StatusCode)
}

// verdict is what a callback's status says.
func verdict(status int) (agent.Verdict, error) {
	switch {
	case status >= 200 && status < 300, status == http.StatusConflict: // 409: an earlier attempt had arrived
		return agent.Delivered, nil
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status >= 500:
		return agent.Again, fmt.Errorf("mcp: the callback endpoint answered %d", status)
	case status >= 300 && status < 400:
		return agent.Refused, fmt.Errorf("mcp: the callback endpoint answered %d, and a credential follows no redirect", status)
	}
	return agent.Refused, fmt.Errorf("mcp: the callback endpoint answered %d: look at its address and the credential", status)
}

// callbackTo is an invocation's callback address. The invocation is in the form that
// needs no escaping.
func callbackTo(base, invocation string) string {
	return strings.TrimSuffix(base, "/") + "/" + invocation
}

// bare takes the address off a client's error: it names an invocation.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
