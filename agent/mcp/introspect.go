package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	askTime    = 5 * time.Second
	maxSpoken  = 64 << 10 // bytes of an answer of the platform
	tellTime   = 15 * time.Second
	maxSubject = 200
)

// introspection is what the platform says of a call's context.
type introspection struct {
	Active     bool            `json:"active"`
	Agent      string          `json:"agent_id"`
	Invocation string          `json:"invocation_id"`
	Expires    json.RawMessage `json:"expires_at"` // RFC 3339, or seconds since 1970
	Callback   string          `json:"callback_url"`
	Subject    string          `json:"subject"`
}

// platform calls the platform. It follows no redirect: a credential is for one
// address.
func platform(limit time.Duration) *http.Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: limit,
		ResponseHeaderTimeout: limit, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
	}
	return &http.Client{Transport: transport, Timeout: limit, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// introspect asks the platform about a call. The protected headers go back to where
// they came from, and nowhere else.
func introspect(client *http.Client, rules Context) func(context.Context, protected, []byte) (introspection, *fault) {
	return func(ctx context.Context, p protected, body []byte) (said introspection, f *fault) {
		unknown := refused(http.StatusServiceUnavailable, "context_unavailable", "the platform could not be asked about the call's context")
		sum := sha256.Sum256(body)
		question, err := json.Marshal(map[string]string{
			"agent_id": p.agent, "invocation_id": p.invocation, "timestamp": p.timestamp, "signature": p.signature, "body_sha256": hex.EncodeToString(sum[:]),
		})
		if err != nil {
			return said, unknown
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, rules.IntrospectURL, bytes.NewReader(question))
		if err != nil {
			return said, unknown
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+rules.Credential)
		res, err := client.Do(req)
		if err != nil {
			return said, unknown
		}
		defer func() { _ = res.Body.Close() }() // read or given up
		if res.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(res.Body, maxSpoken)).Decode(&said) != nil {
			return introspection{}, unknown
		}
		return said, nil
	}
}

// believe compares what the platform says with what the headers said.
func (c *checker) believe(p protected, said introspection, now time.Time) (call, *fault) {
	until, err := moment(said.Expires)
	switch {
	case !said.Active || err != nil || !now.Before(until):
		return call{}, refused(http.StatusUnauthorized, "context_inactive", "the platform does not know the call's context, or not any more")
	case said.Agent != c.application.ID:
		return call{}, refused(http.StatusForbidden, "context_agent", "the call is for another agent")
	case said.Invocation != p.invocation:
		return call{}, refused(http.StatusForbidden, "context_invocation", "the call's context is of another invocation")
	case said.Callback != "" && said.Callback != callbackTo(c.application.CallbackURL, p.invocation):
		return call{}, refused(http.StatusForbidden, "context_callback", "the call's callback is not the registered one")
	case len(said.Subject) > maxSubject:
		return call{}, refused(http.StatusUnauthorized, "context_invalid", "the call's context cannot be read")
	}
	return call{Invocation: p.invocation, Subject: said.Subject}, nil
}

func moment(v json.RawMessage) (time.Time, error) {
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return time.Unix(n, 0), nil
	}
	var t time.Time
	if len(v) == 0 {
		return t, errors.New("no time")
	}
	err := json.Unmarshal(v, &t)
	return t, err
}
