package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const methodInitialize = "initialize"

// closeLimit bounds Close. It is the last part of a stop that has ten seconds for all.
const closeLimit = 2 * time.Second

// resumeTries bounds the GETs that try to continue one broken stream whose events had ids.
const resumeTries = 2

var errRedirect = errors.New("redirects are not followed")

// session is one handshake's worth of the remote: all resources share it while it lives.
type session struct {
	mcp  *mcp.ClientSession
	tap  *tap
	wire *transport
}

// session gives the session in use, or makes one. One handshake runs at a time; who waited for it finds its session.
func (c *Client) session(ctx context.Context) (*session, error) {
	select {
	case c.gate <- struct{}{}:
		defer func() { <-c.gate }()
	case <-ctx.Done():
		return nil, contextError(ctx, methodInitialize)
	}
	c.mu.Lock()
	s := c.current
	c.mu.Unlock()
	if s != nil && !s.tap.dead() {
		return s, nil
	}
	if s != nil {
		c.drop(s, false)
	}
	s, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		c.retire(s)
		return nil, contextError(ctx, methodInitialize)
	}
	c.current = s
	return s, nil
}

// connect makes the handshake of contract §2.1.
func (c *Client) connect(ctx context.Context) (*session, error) {
	x, err := c.begin(ctx, methodInitialize)
	if err != nil {
		return nil, err
	}
	s, err := c.shake(ctx, x)
	c.tell(x, err)
	return s, err
}

func (c *Client) shake(ctx context.Context, x *exchange) (*session, error) {
	call, done := c.arm(ctx, x)
	defer done()
	wire := &transport{base: c.base, origin: c.endpoint, limit: c.maxBytes}
	wire.latest.Store(&x.token)
	s := &session{wire: wire, tap: &tap{pending: newPending(), inner: &mcp.StreamableClientTransport{
		Endpoint: c.endpoint.String(),
		HTTPClient: &http.Client{
			Transport:     wire,
			CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
		},
		DisableStandaloneSSE: true,
		MaxRetries:           resumeTries,
		MaxEventSize:         int(c.maxBytes) + 1<<20, // above our own limit: that one keeps the session, this one ends it
	}}}
	var err error
	s.mcp, err = c.sdk.Connect(call, s.tap, &mcp.ClientSessionOptions{ProtocolVersion: protocolVersion})
	s.tap.forget(x)
	spoken := initializedVersion(x.raw())
	if spoken != protocolVersion && (err == nil || spoken != "") {
		if err == nil {
			c.retire(s)
		}
		return nil, x.fail(Malformed, fmt.Sprintf("the server speaks protocol %q, this client %s", spoken, protocolVersion))
	}
	if err := x.judge(ctx, call, err, s.tap.dead(), c.timeout); err != nil {
		return nil, err
	}
	return s, nil
}

// initializedVersion reads the protocol version of a result of initialize.
func initializedVersion(result []byte) string {
	n, err := parse(result, 1)
	if err != nil {
		return ""
	}
	version, _ := n.members["protocolVersion"].str()
	return version
}

// drop forgets a session, unless a newer one has already taken its place, and closes it in the background: calls in flight
// on it go on. gone says that the remote has forgotten it too.
func (c *Client) drop(s *session, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != s {
		return
	}
	c.current = nil
	if gone {
		s.wire.gone.Store(true)
	}
	c.retire(s)
}

// renounce drops the session in use, whichever it is.
func (c *Client) renounce() {
	c.mu.Lock()
	s := c.current
	c.mu.Unlock()
	if s != nil {
		c.drop(s, false)
	}
}

// retire closes a session in the background. Its calls end by their own deadlines, its DELETE by the transport's. Only a
// tracked call and Close itself may retire, which keeps the count that Close waits for above zero.
func (c *Client) retire(s *session) {
	c.open.Go(func() {
		_ = s.mcp.Close() // best effort: the remote ends idle sessions by itself
	})
}

// begin opens an exchange with the token of this moment. Getting the token is not on the call's clock.
func (c *Client) begin(ctx context.Context, tool string) (*exchange, error) {
	token, generation, err := c.tokens.Token(ctx)
	if err != nil {
		return nil, err
	}
	return &exchange{tool: tool, token: token, generation: generation, began: time.Now()}, nil
}

// arm gives the call its deadline. done must be called: it also ends the SDK's reading of a stream that the server
// keeps open after the answer.
func (c *Client) arm(ctx context.Context, x *exchange) (call context.Context, done func()) {
	call, cancel := context.WithTimeoutCause(ctx, c.timeout, errDeadline)
	call, abort := context.WithCancelCause(call)
	x.cancel = abort
	return withExchange(call, x), func() {
		abort(nil)
		cancel()
	}
}

// track lets Close cancel what is in flight.
func (c *Client) track(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		cancel(errClosed)
		return ctx, func() {}
	}
	c.calls++
	id := c.calls
	c.inflight[id] = cancel
	c.open.Add(1) // so that Close also waits for sessions that this call retires
	return ctx, func() {
		defer c.open.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.inflight, id)
		cancel(nil)
	}
}

// Close cancels the calls in flight, ends the session and waits for both, at most 2 s. It may be called more than once.
func (c *Client) Close() error {
	c.mu.Lock()
	for _, cancel := range c.inflight {
		cancel(errClosed)
	}
	if s := c.current; s != nil {
		c.retire(s)
	}
	c.closed, c.current = true, nil
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		c.open.Wait()
		close(done)
	}()
	limit := time.NewTimer(closeLimit)
	defer limit.Stop()
	var err error
	select {
	case <-done:
	case <-limit.C:
		err = fmt.Errorf("remote: close: the session did not end within %s", closeLimit)
	}
	if pool, ok := c.base.(*http.Transport); ok {
		pool.CloseIdleConnections()
	}
	return err
}
