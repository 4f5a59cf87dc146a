package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

// Defaults of Options.
const (
	defaultTimeout  = 30 * time.Second
	defaultMaxBytes = 32 << 20
)

// Tokens gives the access token of contract §3. Both methods are called from several goroutines at once.
type Tokens interface {
	// Token gives the token in use and its generation, which grows with every renewal.
	Token(ctx context.Context) (token string, generation int, err error)
	// Renew replaces the token of the given generation; it does nothing when a newer one is in use.
	Renew(ctx context.Context, generation int) error
}

// Options configure a Client. BaseURL and Tokens are required.
type Options struct {
	BaseURL  string            // the MCP endpoint is /mcp below it (contract §2)
	Tokens   Tokens            //
	Timeout  time.Duration     // per call, handshake apart; 0: 30 s
	MaxBytes int64             // per answer, decompressed; 0: 32 MiB
	Logger   *zap.Logger       // nil: none. One line per tool call, at debug level
	Version  string            // our own version, told to the server; "": devel
	ListKeys map[string]string // resource to the name of its list, for pages with several arrays of objects
	HTTP     http.RoundTripper // nil: a pool of the client's own
	// Observe is told of every call and handshake that ended: its tool or method, how ("" is well), and how long it
	// took. One that the caller broke off is not told. nil: nobody is; called from several goroutines.
	Observe func(tool string, code Code, took time.Duration)
}

// Client speaks to one Xiaoqu MCP endpoint. It connects when first used, is safe for concurrent use, and is done with
// after Close.
type Client struct {
	endpoint *url.URL
	tokens   Tokens
	timeout  time.Duration
	maxBytes int64
	log      *zap.Logger
	listKeys map[string]string
	base     http.RoundTripper
	observe  func(tool string, code Code, took time.Duration)
	sdk      *mcp.Client

	gate chan struct{}  // held by the one handshake that may run
	open sync.WaitGroup // calls in flight and sessions being closed

	mu       sync.Mutex
	current  *session
	inflight map[uint64]context.CancelCauseFunc
	calls    uint64
	closed   bool
}

// New makes a Client; it does not connect yet.
func New(o Options) (*Client, error) {
	endpoint, err := endpointOf(o.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("remote: base URL: %w", err)
	}
	if o.Tokens == nil {
		return nil, errors.New("remote: no source of tokens")
	}
	if o.Timeout < 0 || o.MaxBytes < 0 {
		return nil, errors.New("remote: a negative limit")
	}
	c := &Client{
		endpoint: endpoint,
		tokens:   o.Tokens,
		timeout:  o.Timeout,
		maxBytes: o.MaxBytes,
		log:      o.Logger,
		listKeys: maps.Clone(o.ListKeys),
		base:     o.HTTP,
		observe:  o.Observe,
		gate:     make(chan struct{}, 1),
		inflight: map[uint64]context.CancelCauseFunc{},
	}
	if c.timeout == 0 {
		c.timeout = defaultTimeout
	}
	if c.maxBytes == 0 {
		c.maxBytes = defaultMaxBytes
	}
	if c.log == nil {
		c.log = zap.NewNop()
	}
	if c.base == nil {
		c.base = newBase()
	}
	if c.observe == nil {
		c.observe = func(string, Code, time.Duration) {}
	}
	version := cmp.Or(o.Version, "devel") // the protocol wants one
	c.sdk = mcp.NewClient(&mcp.Implementation{Name: "xiaoqu-sync", Version: version}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{},                  // none: we offer no roots
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}, // it would repeat a call by itself
	})
	return c, nil
}

// endpointOf checks the base URL without repeating it in an error: it may hold a password.
func endpointOf(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return nil, errors.New("not a URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("the scheme must be https")
	case u.Host == "":
		return nil, errors.New("no host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("user, query and fragment have no place in it")
	}
	return u.JoinPath("mcp"), nil
}

// Renew asks for a new token in place of the given generation, the one in an [Error].
func (c *Client) Renew(ctx context.Context, generation int) error {
	return c.tokens.Renew(ctx, generation)
}

// do runs one call on the session: send speaks to the SDK, read takes the raw result. A session that turns out lost, or
// refused with its token, is dropped, so that the next call makes a new handshake.
func (c *Client) do(ctx context.Context, x *exchange, s *session, send func(context.Context, *mcp.ClientSession) error, read func(result []byte) error) error {
	call, done := c.arm(ctx, x)
	defer done()
	s.wire.latest.Store(&x.token)
	err := send(call, s.mcp)
	s.tap.forget(x)
	if err = x.judge(ctx, call, err, s.tap.dead(), c.timeout); err == nil {
		err = read(x.raw())
	}
	c.tell(x, err)
	var e *Error
	lost := errors.As(err, &e) && e.Code == SessionLost
	if lost || s.tap.dead() || e != nil && e.Code == Unauthenticated {
		c.drop(s, lost)
	}
	return err
}

// tell lets the observer know how an exchange ended, unless it was broken off.
func (c *Client) tell(x *exchange, err error) {
	var e *Error
	switch {
	case err == nil:
		c.observe(x.tool, "", time.Since(x.began))
	case errors.As(err, &e):
		c.observe(x.tool, e.Code, time.Since(x.began))
	}
}

// prepare gives the session and an exchange on it.
func (c *Client) prepare(ctx context.Context, tool string) (*session, *exchange, error) {
	s, err := c.session(ctx)
	if err != nil {
		return nil, nil, err
	}
	x, err := c.begin(ctx, tool)
	return s, x, err
}

// callTool calls a tool and hands its result, opened, to read, which returns the request id and how many records came.
// It logs one line.
func (c *Client) callTool(ctx context.Context, tool string, arguments any, read func(*exchange, toolResult) (records int, err error)) error {
	ctx, release := c.track(ctx)
	defer release()
	s, x, err := c.prepare(ctx, tool)
	if err != nil {
		return err
	}
	var requestID string
	var records int
	err = c.do(ctx, x, s,
		func(ctx context.Context, m *mcp.ClientSession) error {
			_, err := m.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
			return err
		},
		func(raw []byte) error {
			result, err := x.openResult(raw)
			if err != nil {
				return err
			}
			requestID = result.requestID
			records, err = read(x, result)
			return err
		})
	var e *Error
	fields := []zap.Field{zap.String("tool", tool), zap.Duration("duration", time.Since(x.began)), zap.Int64("bytes", x.size())}
	if errors.As(err, &e) {
		requestID = e.RequestID
		fields = append(fields, zap.String("code", string(e.Code)))
	}
	c.log.Info("tools/call", append(fields, zap.String("request_id", requestID), zap.Int("records", records))...)
	return err
}

// noArguments is an empty object; a nil map would go out as null, which some servers refuse.
func noArguments() json.RawMessage { return json.RawMessage(`{}`) }

func newPending() map[jsonrpc.ID]*exchange { return map[jsonrpc.ID]*exchange{} }
