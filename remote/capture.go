package remote

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tap stands between the SDK's session and its HTTP connection, as the transport and as the connection of one session.
// It takes results off before the SDK decodes them: structuredContent would become float64, and a number past its range
// would fail the call. It also sees error codes that the SDK keeps for itself (-32003, -32004).
type tap struct {
	mcp.Connection // set by Connect
	inner          mcp.Transport

	mu      sync.Mutex
	pending map[jsonrpc.ID]*exchange
	broken  bool
}

// Connect implements [mcp.Transport]. It is called once.
func (t *tap) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.Connection = conn
	return t, nil
}

// Write implements [mcp.Connection]: it ties a call's id to the exchange that rides in its context.
func (t *tap) Write(ctx context.Context, msg jsonrpc.Message) error {
	x := exchangeFrom(ctx)
	var r role
	if req, ok := msg.(*jsonrpc.Request); ok && x != nil {
		switch {
		case req.IsCall():
			t.expect(req.ID, x)
			r = role{x: x, call: true}
		case req.Method == "notifications/initialized": // its refusal is the handshake's
			r = role{x: x}
		}
	}
	return t.Connection.Write(withRole(ctx, r), msg)
}

// Read implements [mcp.Connection]: it notes what a response holds and hands the SDK a result without content.
func (t *tap) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := t.Connection.Read(ctx)
	if err != nil {
		t.mu.Lock()
		t.broken = !errors.Is(err, io.EOF) // set before the SDK fails the calls in flight; EOF: we closed it
		t.mu.Unlock()
		return msg, err
	}
	resp, ok := msg.(*jsonrpc.Response)
	if !ok {
		return msg, nil
	}
	t.mu.Lock()
	x := t.pending[resp.ID]
	delete(t.pending, resp.ID)
	t.mu.Unlock()
	if x != nil {
		x.respond(resp)
	}
	return msg, nil
}

func (t *tap) expect(id jsonrpc.ID, x *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, other := range t.pending {
		other.share()
	}
	x.called(id, len(t.pending) > 0)
	t.pending[id] = x
}

// forget drops a call that its caller has left: a cancelled one never gets a response.
func (t *tap) forget(x *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pending, x.callID())
}

// dead says whether the SDK has given the session up.
func (t *tap) dead() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broken
}

func (x *exchange) share() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.shared = true
}

func (x *exchange) called(id jsonrpc.ID, shared bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.id, x.shared = id, shared
}

func (x *exchange) callID() jsonrpc.ID {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.id
}

// respond keeps the response and empties it for the SDK.
func (x *exchange) respond(resp *jsonrpc.Response) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if rpc, ok := resp.Error.(*jsonrpc.Error); ok { //nolint:errorlint // the SDK never wraps it here
		x.rpc = rpc
	}
	if resp.Error != nil {
		return
	}
	if x.result == nil { // not taken off the wire
		x.result = resp.Result
	}
	if x.tool != methodInitialize { // which the SDK must read
		resp.Result = x.empty()
	}
}

// empty is a result without content, in the form that the SDK expects.
func (x *exchange) empty() []byte {
	if x.tool == methodTools {
		return []byte(`{"tools":[]}`)
	}
	return []byte(`{"content":[]}`)
}
