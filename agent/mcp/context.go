package mcp

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// invocationForm is what an invocation's id may be: it becomes a key and a part of
// the callback's address. It holds neither space nor brace, so that no signed text
// can be cut in two ways.
var invocationForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:~-]{0,127}$`)

// timeForm is seconds since 1970.
var timeForm = regexp.MustCompile(`^[0-9]{1,12}$`)

// maxProtected bounds a protected header, in bytes.
const maxProtected = 4096

// call is what a checked context says.
type call struct {
	Invocation string `json:"invocation,omitempty"` // none: unsigned
	Subject    string `json:"subject,omitempty"`    // the platform's pseudonym of who asks
}

// protected are the headers of a call's context.
type protected struct {
	agent, invocation, timestamp, signature, callback string
}

// checker checks the context of calls.
type checker struct {
	application Application
	rules       Context
	ask         func(ctx context.Context, p protected, body []byte) (introspection, *fault)
}

// check makes sure of a call's context, before anything runs. A refusal tells
// nothing of what the headers held.
func (c *checker) check(r *http.Request, body []byte, now time.Time) (call, *fault) {
	if c.rules.AllowUnsigned && c.bare(r.Header) && local(r) {
		return call{}, nil
	}
	p, f := c.read(r.Header)
	if f != nil {
		return call{}, f
	}
	if f := c.judge(p, body, now); f != nil {
		return call{}, f
	}
	if c.rules.IntrospectURL == "" {
		return call{Invocation: p.invocation}, nil
	}
	said, f := c.ask(r.Context(), p, body)
	if f != nil {
		return call{}, f
	}
	return c.believe(p, said, now)
}

// read takes the headers: one value each, or none where it may be left out.
func (c *checker) read(h http.Header) (protected, *fault) {
	var p protected
	n := c.rules.Headers
	for _, x := range []struct {
		name string
		to   *string
		may  bool
	}{{n.Agent, &p.agent, false}, {n.Invocation, &p.invocation, false}, {n.Timestamp, &p.timestamp, false}, {n.Signature, &p.signature, false}, {n.Callback, &p.callback, true}} {
		values := h.Values(x.name)
		switch {
		case len(values) == 0 && x.may:
		case len(values) == 0:
			return p, refused(http.StatusUnauthorized, "context_missing", "the call has no context")
		case len(values) > 1 || values[0] == "" || len(values[0]) > maxProtected:
			return p, refused(http.StatusUnauthorized, "context_invalid", "the call's context cannot be read")
		default:
			*x.to = values[0]
		}
	}
	return p, nil
}

// judge checks what can be checked without asking. The signature comes first: to who
// does not hold the key, everything else stays untold.
func (c *checker) judge(p protected, body []byte, now time.Time) *fault {
	if len(c.rules.Keys) > 0 && !c.signed(p, body) {
		return refused(http.StatusUnauthorized, "context_signature", "the call's signature is not right")
	}
	if !timeForm.MatchString(p.timestamp) || !invocationForm.MatchString(p.invocation) {
		return refused(http.StatusUnauthorized, "context_invalid", "the call's context cannot be read")
	}
	seconds, _ := strconv.ParseInt(p.timestamp, 10, 64) // twelve digits fit
	if age := now.Sub(time.Unix(seconds, 0)); age > c.rules.MaxAge || age < -c.rules.MaxAge {
		return refused(http.StatusUnauthorized, "context_stale", "the call's context is of another time")
	}
	if p.agent != c.application.ID {
		return refused(http.StatusForbidden, "context_agent", "the call is for another agent")
	}
	if p.callback != "" && p.callback != callbackTo(c.application.CallbackURL, p.invocation) {
		return refused(http.StatusForbidden, "context_callback", "the call's callback is not the registered one")
	}
	return nil
}

func (c *checker) signed(p protected, body []byte) bool {
	given, err := hex.DecodeString(p.signature)
	if err != nil {
		return false
	}
	whole := bytes.Join([][]byte{[]byte(p.timestamp), []byte(p.agent), []byte(p.invocation), body}, []byte("."))
	ok := false
	for _, key := range c.rules.Keys {
		mac := hmac.New(sha256.New, key)
		mac.Write(whole)
		ok = hmac.Equal(mac.Sum(nil), given) || ok
	}
	return ok
}

// bare reports whether there is no protected header at all.
func (c *checker) bare(h http.Header) bool {
	n := c.rules.Headers
	for _, name := range []string{n.Agent, n.Invocation, n.Timestamp, n.Signature, n.Callback} {
		if len(h.Values(name)) > 0 {
			return false
		}
	}
	return true
}

// local reports whether both ends of the connection are this machine, and no proxy
// says that somebody else is behind it.
func local(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if len(r.Header.Values(name)) > 0 {
			return false
		}
	}
	here, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && loopbackPort(here.String()) && loopbackPort(r.RemoteAddr)
}

func loopbackPort(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && loopback(host)
}

// refused is a call that does not run. JSON-RPC has no code of its own for it.
func refused(status int, code, why string) *fault {
	return &fault{status, invalidRequest, why, map[string]string{"errorCode": code}}
}
