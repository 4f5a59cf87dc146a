package credentials

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/zap"
)

const (
	opEnsure   = "ensure"
	opPersonal = "personal token"

	defaultTimeout = 10 * time.Second
	maxAttempts    = 5
	maxWait        = 60 * time.Second // contract §5
	maxAnswer      = 64 << 10
	maxRead        = 10 * time.Minute // for a key source to give the key; a store may wait for itself
)

// exchange is the client of POST /api/open/token/ensure (contract §3.2).
type exchange struct {
	endpoint *url.URL
	timeout  time.Duration
	client   *http.Client
	logger   *zap.Logger
}

// request is one trade of the key for a token.
type request struct {
	op      string
	key     Secret
	payload []byte
	private []string // further values that no text may hold
}

func newExchange(endpoint *url.URL, timeout time.Duration, via http.RoundTripper, logger *zap.Logger) *exchange {
	if via == nil {
		via = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			ForceAttemptHTTP2:      true,
			DisableKeepAlives:      true, // exchanges are hours apart
			MaxResponseHeaderBytes: maxAnswer,
		}
	}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &exchange{
		endpoint: endpoint,
		timeout:  timeout,
		client:   &http.Client{Transport: via, CheckRedirect: refuse},
		logger:   logger,
	}
}

// longest bounds a trade with all its attempts and waits.
func (x *exchange) longest() time.Duration {
	return maxAttempts*x.timeout + (maxAttempts-1)*maxWait
}

// trade attempts the exchange until it succeeds, fails for good or has been
// attempted maxAttempts times. ensure is idempotent, so asking again is safe.
func (x *exchange) trade(ctx context.Context, r request) (Secret, error) {
	pace := newPace()
	attempts := 0
	attempt := func() (Secret, error) {
		attempts++
		token, err := x.attempt(ctx, r)
		var failure *Error
		if err == nil || errors.As(err, &failure) && failure.passing() {
			pace.follow(failure)
			return token, err
		}
		return Secret{}, backoff.Permanent(err)
	}
	waiting := func(err error, wait time.Duration) {
		x.logger.Warn("the token exchange failed and is repeated",
			zap.Error(err), zap.Int("attempt", attempts), zap.Duration("wait", wait))
	}
	token, err := backoff.RetryNotifyWithData(attempt, backoff.WithContext(pace, ctx), waiting)
	var failure *Error
	if errors.As(err, &failure) && attempts > 1 {
		failure.Message += fmt.Sprintf(" (%d attempts)", attempts)
	}
	return token, err
}

// attempt sends the request once. The error is an *Error, or the context's when
// the caller's own context ended.
func (x *exchange) attempt(ctx context.Context, r request) (Secret, error) {
	once, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(once, http.MethodPost, x.endpoint.String(), bytes.NewReader(r.payload))
	if err != nil {
		return Secret{}, r.fail(Malformed, "the request can't be built", err)
	}
	req.Header.Set("X-Open-Key", r.key.Reveal())
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")

	resp, err := x.client.Do(req)
	if err != nil {
		return Secret{}, x.silence(ctx, once, r, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return Secret{}, x.silence(ctx, once, r, err)
	}
	if len(body) > maxAnswer {
		return Secret{}, r.fail(Malformed, fmt.Sprintf("the answer is longer than %d KiB: is base_url right?", maxAnswer>>10), nil)
	}
	return r.judge(resp, body)
}

// silence judges a transport fault: the caller's end, our deadline, or the wire.
// Our deadline leaves no context error in the chain: for whoever reads it, that
// would mean that the caller's time is over.
func (x *exchange) silence(caller, once context.Context, r request, err error) error {
	switch {
	case caller.Err() != nil:
		return context.Cause(caller)
	case once.Err() != nil:
		return r.fail(Unreachable, fmt.Sprintf("no whole answer from %s within %s", x.endpoint.Host, x.timeout), nil)
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // the address is said once
	}
	return r.fail(Unreachable, "no whole answer from "+x.endpoint.Host, err)
}

func (r request) fail(kind Kind, message string, err error) *Error {
	if err != nil {
		err = Scrub(err, append([]string{r.key.Reveal()}, r.private...)...)
	}
	return &Error{Kind: kind, Op: r.op, Message: message, Err: err}
}
