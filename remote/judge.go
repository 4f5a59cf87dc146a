package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

var (
	errDeadline = errors.New("the call's deadline passed")
	errClosed   = errors.New("the client is closed")
)

// noSession recognises servers that send a JSON-RPC error without a code of the contract for a session that they do not
// know. The wire leaves nothing else to tell it by.
var noSession = regexp.MustCompile(`(?i)\bsession\b.{0,60}\b(not found|unknown|invalid|expired|missing|terminated)|\b(no valid|unknown|invalid|expired|missing) session\b`)

// judge names what became of an exchange whose SDK call ended with err. parent is the caller's context, ctx the call's
// own; dead says that the SDK gave the session up. The SDK's error text is never passed on: it holds session ids.
func (x *exchange) judge(parent, ctx context.Context, err error, dead bool, timeout time.Duration) error {
	if err == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.rpc != nil: // before err: the SDK takes -32003 and -32004 for a closed connection of its own
		return x.ofRPC(x.rpc)
	case parent.Err() != nil:
		return contextError(parent, x.tool)
	case x.tooLarge:
		e := x.fail(Malformed, errTooLarge.Error())
		e.TooLarge = true
		return e
	case x.moved:
		return x.fail(SessionLost, "the answer belongs to another session")
	case x.refused:
		return x.ofAnswer()
	case errors.Is(context.Cause(ctx), errDeadline):
		return x.fail(Unreachable, fmt.Sprintf("no answer within %s", timeout))
	case x.cause != nil:
		return x.ofCause()
	case x.result != nil && !dead:
		return x.ofMisfit()
	default:
		return x.ofStream(dead)
	}
}

// ofMisfit names a result that the SDK could not use: a tool's form of refusal in answer to initialize or tools/list, or
// something that nobody can read.
func (x *exchange) ofMisfit() *Error {
	var refusal *Error
	if _, err := x.openResult(x.result); errors.As(err, &refusal) && contractCode(string(refusal.Code)) != "" {
		return refusal
	}
	return x.fail(Malformed, "the result is not of the form that the protocol gives it")
}

// contextError is the caller's own cancellation, with its cause when it has one.
func contextError(ctx context.Context, tool string) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("remote: %s: %w: %w", tool, ctx.Err(), cause)
	}
	return fmt.Errorf("remote: %s: %w", tool, ctx.Err())
}

// fail makes an error of this exchange.
func (x *exchange) fail(code Code, message string) *Error {
	return &Error{
		Code:       code,
		Tool:       x.tool,
		RequestID:  x.clean(x.answer.requestID, maxRequestID),
		Message:    x.clean(message, maxMessage),
		RetryAfter: x.answer.retryAfter,
		Status:     x.answer.status,
		Generation: x.generation,
	}
}

// clean hides this exchange's own secrets too.
func (x *exchange) clean(text string, limit int) string {
	return clean(text, limit, x.token, x.sessionID)
}

// short marks an answer that was empty or ended early (contract §2.1: ask again).
func (x *exchange) short(code Code, message string) *Error {
	e := x.fail(code, message)
	e.CutShort = true
	return e
}

// ofReport makes an error of what a refusal says; a code of the contract is stronger than the fallback.
func (x *exchange) ofReport(r report, fallback Code) *Error {
	code, message := r.code, r.message
	switch code {
	case "":
		code = fallback
		if r.unknown != "" {
			message = strings.TrimSuffix(r.unknown+": "+message, ": ")
		}
	default:
		message = withoutCode(message, code)
	}
	e := x.fail(code, message)
	if r.requestID != "" {
		e.RequestID = x.clean(r.requestID, maxRequestID)
	}
	e.RetryAfter = max(e.RetryAfter, r.retryAfter)
	return e
}

// ofRPC names a JSON-RPC error.
func (x *exchange) ofRPC(rpc *jsonrpc.Error) *Error {
	ex := extractor{now: time.Now()}
	ex.text(string(rpc.Data), 0)
	fromData := ex.code
	ex.message = "" // the error's own message says more than its data
	ex.text(rpc.Message, 0)
	if fromData != "" {
		ex.code = fromData
	}
	fallback := Unreachable
	switch rpc.Code {
	case jsonrpc.CodeInvalidParams:
		fallback = InvalidArgument
	case jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidRequest, jsonrpc.CodeParseError:
		fallback = Malformed
	}
	if x.sessionID != "" && fallback == Unreachable && noSession.MatchString(rpc.Message) {
		fallback = SessionLost
	}
	return x.ofReport(ex.report, fallback)
}

// ofAnswer names an HTTP answer that is no JSON-RPC response to the call.
func (x *exchange) ofAnswer() *Error {
	a := x.answer
	said := extract(a.body, time.Now())
	if a.contentType == "text/html" {
		said.message = "" // a page for people
	}
	if rpc := rpcError(a.body); rpc != nil && said.code == "" && (a.status == http.StatusOK || a.status == http.StatusBadRequest) {
		if e := x.ofRPC(rpc); a.status == http.StatusOK || e.Code != Unreachable {
			return e
		}
	}
	code, message := x.ofStatus()
	if said.code == "" && said.message != "" {
		message += ": " + said.message
	}
	if said.code == "" || said.message == "" {
		said.message = message
	}
	e := x.ofReport(said, code)
	e.CutShort = (e.Code == Unreachable || e.Code == Malformed) && x.endedEarly()
	return e
}

// endedEarly says whether an answer was empty, or broke off in the middle of a JSON text or a resumed stream.
func (x *exchange) endedEarly() bool {
	a := x.answer
	switch {
	case x.resumed:
		return true
	case a.status/100 != 2:
		return false
	case len(bytes.TrimSpace(a.body)) == 0:
		return true
	}
	_, err := parse(a.body, 0)
	return a.contentType == mediaJSON && errors.Is(err, io.ErrUnexpectedEOF)
}

// ofStatus names an answer by its status alone.
func (x *exchange) ofStatus() (Code, string) {
	a := x.answer
	message := fmt.Sprintf("HTTP %d", a.status)
	if a.contentType != "" {
		message += " " + a.contentType
	}
	switch {
	case a.status == http.StatusUnauthorized:
		return Unauthenticated, message
	case a.status == http.StatusForbidden:
		return PermissionDenied, message
	case x.sessionID != "" && a.status == http.StatusNotFound,
		x.sessionID != "" && a.status == http.StatusBadRequest && bytes.Contains(bytes.ToLower(a.body), []byte("session")):
		return SessionLost, message
	case a.status == http.StatusTooManyRequests:
		return RateLimited, message
	case x.resumed:
		return Unreachable, "the stream broke off and could not be resumed: " + message
	case a.status >= 500, a.status == http.StatusRequestTimeout, a.status == http.StatusTooEarly:
		return Unreachable, message
	case a.status/100 == 2 && x.endedEarly() && len(bytes.TrimSpace(a.body)) == 0:
		return Unreachable, message + ", an empty answer"
	case a.status/100 == 2 && x.endedEarly():
		return Malformed, message + ", JSON that breaks off"
	case a.status/100 == 3 && a.location != "":
		return Malformed, message + ", a redirect to " + a.location + " was refused"
	default:
		return Malformed, message + " in place of a JSON-RPC response"
	}
}

// ofCause names a failure of the network, before or in an answer.
func (x *exchange) ofCause() *Error {
	cause := x.cause
	e := x.fail(Unreachable, cause.Error())
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case errors.As(cause, &certificate), errors.As(cause, &authority), errors.As(cause, &host):
		e.Message = x.clean("the server's certificate was not accepted: "+cause.Error(), maxMessage)
	case x.answer.status != 0:
		e.CutShort = true
		e.Message = x.clean("the answer broke off: "+cause.Error(), maxMessage)
	}
	e.Err = cause
	return e
}

// ofStream names a stream that ended, or that the SDK could not read, by what it began with. Without evidence of its
// own a call on a dead session is the victim of another call's answer.
func (x *exchange) ofStream(dead bool) *Error {
	whole := x.bytes == int64(len(x.head))
	for _, data := range eventData(x.head, x.ended && whole) {
		if e := x.ofEvent(data, dead); e != nil {
			return e
		}
	}
	switch {
	case !dead && x.answer.status != 0:
		return x.short(Unreachable, "the stream ended before the answer")
	case x.ended && !whole:
		return x.short(Malformed, "the stream ended in the middle of its JSON")
	case x.shared || x.answer.status == 0:
		return x.fail(SessionLost, "the session ended under the call")
	default:
		return x.fail(Malformed, "the stream is not one of JSON-RPC messages")
	}
}

// ofEvent judges one event that the SDK passed over or stumbled on; nil when it is not the reason.
func (x *exchange) ofEvent(data []byte, dead bool) *Error {
	n, err := parse(data, 2)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return x.short(Malformed, "the stream ended in the middle of its JSON")
	case err != nil && dead:
		return x.fail(Malformed, "an event's data is not JSON")
	case err != nil:
		return nil
	}
	said := extractNode(n, time.Now())
	switch {
	case said.code != "":
		return x.ofReport(said, said.code)
	case n.first("error").present():
		return x.ofReport(said, Unreachable)
	case n.first("result").present() && !dead:
		return x.fail(Malformed, "the answer carries the id of another request")
	case !n.isObject() && dead:
		return x.fail(Malformed, "an event's data is not a JSON-RPC message")
	default:
		return nil
	}
}

// eventData gives the data of the complete events in the beginning of a stream; all is set when it is the whole stream,
// whose last event needs no blank line.
func eventData(head []byte, all bool) [][]byte {
	var found [][]byte
	e := events{dispatch: func(e *events) {
		if data := bytes.TrimSpace(e.data); len(data) > 0 {
			found = append(found, bytes.Clone(data))
		}
	}}
	e.write(head)
	if all {
		e.finish()
	}
	return found
}

// rpcError reads the error of a JSON-RPC response whose id the SDK would not accept.
func rpcError(body []byte) *jsonrpc.Error {
	n, err := parse(body, 2)
	if err != nil || n.members["error"].members == nil {
		return nil
	}
	e := n.members["error"].members
	message, _ := e["message"].str()
	number, ok := e["code"].text()
	if !ok || message == "" {
		return nil
	}
	rpc := &jsonrpc.Error{Message: message}
	if d := e["data"]; d.present() {
		rpc.Data = []byte(d.raw)
	}
	_, _ = fmt.Sscan(number, &rpc.Code) // a code that is no number says nothing
	return rpc
}
