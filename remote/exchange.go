package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// headBytes is how much of an answer's beginning is kept, to say why it was not understood.
const headBytes = 64 << 10

// exchange records what one call, or one handshake, saw on the wire. The SDK keeps little of it: no status, no
// Retry-After, no body of a refusal, and numbers only as floats.
type exchange struct {
	tool       string
	token      string
	generation int
	began      time.Time
	cancel     context.CancelCauseFunc // ends the call early, when its answer is too large

	mu        sync.Mutex // the SDK's goroutines write below while the caller may already leave
	id        jsonrpc.ID // set by tap.Write
	shared    bool       // other calls were in flight on the same session
	sessionID string     // as sent with the request; "" before there is one
	answer    answer
	resumed   bool   // answer belongs to the GET that tried to resume a broken stream
	moved     bool   // the answer carried another session id than the request
	refused   bool   // the answer was not one the SDK could read; answer.body holds its beginning
	cause     error  // why there was no answer, or why reading it stopped
	bytes     int64  // read so far, after decompression
	head      []byte // the first of them
	ended     bool   // the answer ended cleanly
	tooLarge  bool
	result    []byte // the JSON-RPC result, raw
	rpc       *jsonrpc.Error
}

// answer is an HTTP response without its stream.
type answer struct {
	status      int
	contentType string
	retryAfter  time.Duration
	location    string // host of a redirect's target
	requestID   string // from X-Request-Id: the body's own is better, contract §4.2
	body        []byte
}

// role says what a request on the wire is to an exchange; it travels in the request's context.
type role struct {
	x    *exchange
	call bool // an answer with a body is expected
}

type roleKey struct{}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func exchangeFrom(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

func withRole(ctx context.Context, r role) context.Context {
	return context.WithValue(ctx, roleKey{}, r)
}

func roleFrom(ctx context.Context) role {
	r, _ := ctx.Value(roleKey{}).(role)
	return r
}

// arrived notes an answer's head lines.
func (x *exchange) arrived(a answer, req *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answer = a
	x.sessionID = req.Header.Get(headerSession)
	x.resumed = req.Method == http.MethodGet
}

// failed notes why there is no answer, or no more of it. The first reason is the one.
func (x *exchange) failed(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cause == nil {
		x.cause = err
	}
}

// reject notes an answer that is kept from the SDK, which would end the session over it.
func (x *exchange) reject(body []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refused, x.answer.body = true, body
}

// took counts bytes of the answer, keeps the first of them, and says whether the limit is passed.
func (x *exchange) took(p []byte, limit int64) (tooLarge bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.bytes += int64(len(p))
	if room := headBytes - len(x.head); room > 0 {
		x.head = append(x.head, p[:min(room, len(p))]...)
	}
	x.tooLarge = x.bytes > limit
	return x.tooLarge
}

// stopped notes how the reading of a body ended.
func (x *exchange) stopped(err error) {
	if !errors.Is(err, io.EOF) {
		x.failed(err)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
}

// size gives the bytes read so far.
func (x *exchange) size() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.bytes
}

// raw gives the JSON-RPC result; nil when there was none.
func (x *exchange) raw() []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.result
}
