package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// protocolVersion is the one version of contract §2.
const protocolVersion = "2025-06-18"

// Headers of contract §2.1.
const (
	headerSession = "Mcp-Session-Id"
	acceptBoth    = "application/json, text/event-stream"
	mediaJSON     = "application/json"
	mediaStream   = "text/event-stream"
)

const (
	refusalBytes = 64 << 10    // kept of an answer that is no JSON-RPC
	asideTimeout = time.Second // less than closeLimit; for what nobody waits for: DELETE, cancellations, replies to a ping
)

var (
	errAnswer = errors.New("the answer is not one that a session can go on with")
	errHost   = errors.New("a request to another scheme or host is refused")
	errAside  = errors.New("a notification was not accepted")
)

// transport is one session's door to the network. It is the only place that touches the token.
type transport struct {
	base   http.RoundTripper
	origin *url.URL // scheme and host that may be spoken to
	limit  int64    // bytes per answer
	latest atomic.Pointer[string]
	gone   atomic.Bool // the remote has forgotten the session: there is nothing to DELETE
}

// RoundTrip implements [http.RoundTripper]. An answer that the SDK would end the session over is noted in the exchange
// and given to the SDK as an error, which leaves the session alive.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != t.origin.Scheme || req.URL.Host != t.origin.Host {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, errHost // before the token is added
	}
	r := roleFrom(req.Context())
	if r.x == nil || req.Method == http.MethodDelete {
		return t.aside(req)
	}
	resp, err := t.base.RoundTrip(t.dress(req, r.x.token))
	if err != nil {
		r.x.failed(err)
		return nil, err
	}
	a := head(resp)
	r.x.arrived(a, req)
	switch {
	case req.Method == http.MethodGet:
		return t.resumed(resp, a, r.x), nil
	case movedSession(req, resp):
		r.x.mu.Lock()
		r.x.moved = true
		r.x.mu.Unlock()
		return t.reject(resp, r.x)
	case !r.call && a.status/100 == 2:
		return settled(resp), nil
	case r.call && a.status == http.StatusOK && a.contentType == mediaStream:
		resp.Body = newStream(&body{rc: resp.Body, x: r.x, limit: t.limit}, r.x)
		return resp, nil
	case r.call && a.status == http.StatusOK && a.contentType == mediaJSON:
		return t.single(resp, r.x)
	default:
		return t.reject(resp, r.x)
	}
}

// dress sets the unified headers of contract §2.1, on every request, initialize and DELETE too.
func (t *transport) dress(req *http.Request, token string) *http.Request {
	r := req.Clone(req.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", mediaJSON)
	r.Header.Set("Accept", acceptBoth)
	r.Header.Set("Mcp-Protocol-Version", protocolVersion)
	r.Header.Set("X-Mcp-Schema-Version", "2")
	return r
}

// aside sends what no caller waits for, in bounded time, and gives the SDK an answer without a body.
func (t *transport) aside(req *http.Request) (*http.Response, error) {
	// Before the handshake is answered there is no session to speak in (contract
	// §2.1): the SDK would send the cancellation of a handshake all the same.
	homeless := req.Method == http.MethodPost && req.Header.Get(headerSession) == ""
	if homeless && req.Body != nil {
		_ = req.Body.Close()
	}
	if homeless || req.Method == http.MethodDelete && t.gone.Load() {
		return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	}
	ctx, cancel := context.WithTimeout(req.Context(), asideTimeout)
	defer cancel()
	resp, err := t.base.RoundTrip(t.dress(req.WithContext(ctx), *t.latest.Load()))
	if err != nil {
		return nil, err
	}
	settled(resp)
	if req.Method != http.MethodDelete && resp.StatusCode/100 != 2 {
		return nil, errAside
	}
	return resp, nil
}

// single reads an answer that is one JSON message. It must be the response to the call: anything else would end the
// session, or leave the call waiting for its deadline.
func (t *transport) single(resp *http.Response, x *exchange) (*http.Response, error) {
	b := &body{rc: resp.Body, x: x, limit: t.limit}
	text, err := io.ReadAll(b)
	_ = b.Close()
	if err != nil {
		return nil, err
	}
	message := text
	if short, taken := x.take(text); taken {
		message = short
	}
	msg, err := jsonrpc.DecodeMessage(message)
	response, ok := msg.(*jsonrpc.Response)
	if err != nil || !ok || response.ID != x.callID() {
		x.reject(text)
		return nil, errAnswer
	}
	resp.Body = io.NopCloser(bytes.NewReader(message))
	return resp, nil
}

// reject keeps the beginning of an answer for the judgement and ends it.
func (t *transport) reject(resp *http.Response, x *exchange) (*http.Response, error) {
	text, err := io.ReadAll(io.LimitReader(resp.Body, refusalBytes))
	_ = resp.Body.Close()
	if err != nil {
		x.failed(err)
	}
	x.reject(text)
	return nil, errAnswer
}

// resumed passes the answer to a GET, which continues a broken stream: the SDK must see its status itself.
func (t *transport) resumed(resp *http.Response, a answer, x *exchange) *http.Response {
	if a.status == http.StatusOK && a.contentType == mediaStream {
		resp.Body = newStream(&body{rc: resp.Body, x: x, limit: t.limit}, x)
		return resp
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, refusalBytes))
	_ = resp.Body.Close()
	x.reject(text)
	resp.Body = http.NoBody
	return resp
}

// settled reads what is left of a short answer, so that its connection can be used again, and closes it.
func settled(resp *http.Response) *http.Response {
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, refusalBytes))
	_ = resp.Body.Close()
	resp.Body = http.NoBody
	return resp
}

// movedSession says whether an answer names another session than its request did.
func movedSession(req *http.Request, resp *http.Response) bool {
	sent, got := req.Header.Get(headerSession), resp.Header.Get(headerSession)
	return sent != "" && got != "" && sent != got
}

func head(resp *http.Response) answer {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	a := answer{
		status:      resp.StatusCode,
		contentType: media,
		retryAfter:  retryAfter(resp.Header.Get("Retry-After"), time.Now()),
		requestID:   resp.Header.Get("X-Request-Id"),
	}
	if to, err := resp.Location(); err == nil {
		a.location = to.Host
	}
	return a
}

// newBase makes the client's own connection pool: one host and modern TLS. How long an answer may take is the call's own
// deadline alone. Compression is left to net/http, which undoes it before the bytes are counted.
func newBase() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    8,
		MaxResponseHeaderBytes: 256 << 10,
		ForceAttemptHTTP2:      true,
	}
}
