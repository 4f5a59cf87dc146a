package remote_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

type handler = func(http.ResponseWriter, *http.Request, message)

// status answers with an HTTP status, a content type and a body; "header: value" pairs may follow.
func status(code int, contentType, body string, headers ...string) handler {
	return func(w http.ResponseWriter, _ *http.Request, m message) {
		w.Header()["Content-Type"] = nil
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprint(w, strings.ReplaceAll(body, `"id":ID`, `"id":`+string(m.ID)))
	}
}

// stream answers 200 with these bytes as an event stream.
func stream(body string) handler { return status(http.StatusOK, "text/event-stream", body) }

// rpc answers with a JSON-RPC error in a stream.
func rpc(errorObject string) handler {
	return stream("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"error\":" + errorObject + "}\n\n")
}

func tool(result string) handler {
	return func(w http.ResponseWriter, _ *http.Request, m message) { respond(w, m, result) }
}

func respond(w http.ResponseWriter, m message, r string) { result(w, m, r) }

// cut writes the bytes as they are on the connection, then closes it, with a reset when asked.
func cut(reset bool, text string) handler {
	return func(w http.ResponseWriter, _ *http.Request, _ message) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = conn.Write([]byte(text))
		if reset {
			_ = conn.(*net.TCPConn).SetLinger(0)
		}
		_ = conn.Close()
	}
}

const chunkedStream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

const refusal = `{"code":"RATE_LIMITED","message":"slow down","request_id":"r-9","retry_after":4}`

type fault struct {
	name    string
	answer  handler
	want    remote.Error // Code, CutShort, TooLarge, Status, RetryAfter, RequestID, and Message as a part of it
	newSess bool         // the next call makes a new handshake
}

func httpFaults() []fault {
	const js, text = "application/json", "text/plain"
	biz := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32050,"message":"biz msg","data":{"code":"BIZ","request_id":"r-9"}}}`
	}
	return []fault{
		{"400 text", status(400, text, "nope"), remote.Error{Code: remote.Malformed, Status: 400, Message: "HTTP 400 text/plain in place of a JSON-RPC response: nope"}, false},
		{"400 with an unknown code", status(400, js, biz("ID")), remote.Error{Code: remote.Malformed, Status: 400, RequestID: "r-9", Message: "BIZ"}, false},
		{"400 that speaks of the session", status(400, js, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`), remote.Error{Code: remote.SessionLost, Status: 400}, true},
		{"400 invalid params", status(400, js, `{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad limit"}}`), remote.Error{Code: remote.InvalidArgument, Status: 400, Message: "bad limit"}, false},
		{"401 text", status(401, text, "no"), remote.Error{Code: remote.Unauthenticated, Status: 401}, true},
		{"401 no body", status(401, "", ""), remote.Error{Code: remote.Unauthenticated, Status: 401}, true},
		{"401 json that is no rpc", status(401, js, `{"message":"revoked"}`), remote.Error{Code: remote.Unauthenticated, Status: 401, Message: "revoked"}, true},
		{"401 rpc error", status(401, js, biz("ID")), remote.Error{Code: remote.Unauthenticated, Status: 401, RequestID: "r-9"}, true},
		{"401 rpc error without id", status(401, js, biz("null")), remote.Error{Code: remote.Unauthenticated, Status: 401}, true},
		{"401 in a stream", status(401, "text/event-stream", "data: x\n\n"), remote.Error{Code: remote.Unauthenticated, Status: 401}, true},
		{"403 text", status(403, text, "no"), remote.Error{Code: remote.PermissionDenied, Status: 403}, false},
		{"403 with a code of the contract", status(403, js, `{"error":{"code":"UNAUTHENTICATED","message":"stopped"}}`), remote.Error{Code: remote.Unauthenticated, Status: 403, Message: "stopped"}, true},
		{"404 text", status(404, text, "gone"), remote.Error{Code: remote.SessionLost, Status: 404}, true},
		{"404 rpc error", status(404, js, biz("ID")), remote.Error{Code: remote.SessionLost, Status: 404}, true},
		{"404 rpc error without id", status(404, js, biz("null")), remote.Error{Code: remote.SessionLost, Status: 404}, true},
		{"405", status(405, text, ""), remote.Error{Code: remote.Malformed, Status: 405}, false},
		{"408", status(408, text, ""), remote.Error{Code: remote.Unreachable, Status: 408}, false},
		{"409", status(409, text, ""), remote.Error{Code: remote.Malformed, Status: 409}, false},
		{"413", status(413, text, ""), remote.Error{Code: remote.Malformed, Status: 413}, false},
		{"425", status(425, text, ""), remote.Error{Code: remote.Unreachable, Status: 425}, false},
		{"429 text with Retry-After", status(429, text, "slow", "Retry-After", "7"), remote.Error{Code: remote.RateLimited, Status: 429, RetryAfter: 7 * time.Second}, false},
		{"429 with the wait in its body", status(429, js, refusal), remote.Error{Code: remote.RateLimited, Status: 429, RetryAfter: 4 * time.Second, RequestID: "r-9", Message: "slow down"}, false},
		{"500 text", status(500, text, "oops"), remote.Error{Code: remote.Unreachable, Status: 500}, false},
		{"500 with a code of the contract", status(500, js, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"x","data":{"code":"SYNC_CURSOR_EXPIRED"}}}`), remote.Error{Code: remote.CursorExpired, Status: 500}, false},
		{"501", status(501, text, ""), remote.Error{Code: remote.Unreachable, Status: 501}, false},
		{"502 html", status(502, "text/html", "<html><body>Bad Gateway"), remote.Error{Code: remote.Unreachable, Status: 502, Message: "HTTP 502 text/html"}, false},
		{"503 with Retry-After", status(503, text, "", "Retry-After", "3"), remote.Error{Code: remote.Unreachable, Status: 503, RetryAfter: 3 * time.Second}, false},
		{"504", status(504, text, ""), remote.Error{Code: remote.Unreachable, Status: 504}, false},
		{"520", status(520, text, ""), remote.Error{Code: remote.Unreachable, Status: 520}, false},
		{"302", status(302, "", "", "Location", "http://elsewhere.example/login?token=x"), remote.Error{Code: remote.Malformed, Status: 302, Message: "a redirect to elsewhere.example was refused"}, false},
		{"307", status(307, "", "", "Location", "/elsewhere"), remote.Error{Code: remote.Malformed, Status: 307, Message: "redirect"}, false},
		{"304", status(304, "", ""), remote.Error{Code: remote.Malformed, Status: 304}, false},
		{"202 to a call", status(202, "", ""), remote.Error{Code: remote.Unreachable, Status: 202, CutShort: true}, false},
		{"204 to a call", status(204, "", ""), remote.Error{Code: remote.Unreachable, Status: 204, CutShort: true}, false},
		{"200 without type or body", status(200, "", ""), remote.Error{Code: remote.Unreachable, Status: 200, CutShort: true}, false},
		{"200 html", status(200, "text/html", "<html>login"), remote.Error{Code: remote.Malformed, Status: 200, Message: "HTTP 200 text/html in place"}, false},
		{"200 json with an rpc error", status(200, js, biz("ID")), remote.Error{Code: remote.Unreachable, Status: 200, RequestID: "r-9", Message: "BIZ: biz msg"}, false},
		{"200 json with an rpc error without id", status(200, js, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"PERMISSION_DENIED"}}`), remote.Error{Code: remote.PermissionDenied, Status: 200}, false},
		{"200 json cut", status(200, js, `{"jsonrpc":`), remote.Error{Code: remote.Malformed, Status: 200, CutShort: true}, false},
		{"200 json empty", status(200, js, ""), remote.Error{Code: remote.Unreachable, Status: 200, CutShort: true}, false},
		{"200 json batch", status(200, js, `[{"jsonrpc":"2.0","id":ID,"result":{}}]`), remote.Error{Code: remote.Malformed, Status: 200}, false},
		{"200 json that is no rpc", status(200, js, `{"hello":1}`), remote.Error{Code: remote.Malformed, Status: 200}, false},
		{"200 json for another id", status(200, js, `{"jsonrpc":"2.0","id":99999,"result":{}}`), remote.Error{Code: remote.Malformed, Status: 200}, false},
		{"another session in the answer", status(200, "text/event-stream", "", "Mcp-Session-Id", "canary-session-other"), remote.Error{Code: remote.SessionLost, Status: 200}, true},
	}
}

func streamFaults() []fault {
	ok := `{"jsonrpc":"2.0","id":ID,"result":` + okPage + `}`
	return []fault{
		{"empty", stream(""), remote.Error{Code: remote.Unreachable, Status: 200, CutShort: true}, false},
		{"comment only", stream(": ok\n\n"), remote.Error{Code: remote.Unreachable, Status: 200, CutShort: true}, false},
		{"an event named error", stream("event: error\ndata: " + refusal + "\n\n"), remote.Error{Code: remote.RateLimited, Status: 200, RetryAfter: 4 * time.Second, RequestID: "r-9"}, false},
		{"another id, then the end", stream("data: {\"jsonrpc\":\"2.0\",\"id\":99999,\"result\":{}}\n\n"), remote.Error{Code: remote.Malformed, Status: 200, Message: "another request"}, false},
		{"a notification, then the end", stream("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n"), remote.Error{Code: remote.Unreachable, Status: 200, CutShort: true}, false},
		{"junk first", stream("data: ping\n\ndata: " + ok + "\n\n"), remote.Error{Code: remote.Malformed, Status: 200, Message: "not JSON"}, true},
		{"no jsonrpc member", stream("data: {\"id\":ID,\"result\":{}}\n\n"), remote.Error{Code: remote.Malformed, Status: 200}, true},
		{"cut JSON, clean end", stream("data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"con"), remote.Error{Code: remote.Malformed, Status: 200, CutShort: true}, true},
		{"cut JSON far from the beginning", stream("data: {\"x\":\"" + strings.Repeat("y", 200<<10)), remote.Error{Code: remote.Malformed, Status: 200, CutShort: true}, true},
		{"a result that is a list, deeply nested", stream("data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":" + strings.Repeat("[", 1200) + strings.Repeat("]", 1200) + "}\n\n"), remote.Error{Code: remote.Malformed, Status: 200}, false},
		{"rpc error without id", stream("data: {\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32001,\"message\":\"no\",\"data\":{\"code\":\"UNAUTHENTICATED\"}}}\n\n"), remote.Error{Code: remote.Unauthenticated, Status: 200}, true},
		{"rpc error whose code is a name", rpc(`{"code":"RATE_LIMITED","message":"x"}`), remote.Error{Code: remote.RateLimited, Status: 200}, true},
		{"result missing", stream("data: {\"jsonrpc\":\"2.0\",\"id\":ID}\n\n"), remote.Error{Code: remote.Malformed, Status: 200, CutShort: true}, false},
		{"reset before the headers", cut(true, ""), remote.Error{Code: remote.Unreachable}, false},
		{"reset in the headers", cut(true, "HTTP/1.1 200 OK\r\nContent-Ty"), remote.Error{Code: remote.Unreachable}, false},
		{"closed after the headers", cut(false, chunkedStream), remote.Error{Code: remote.Unreachable, Status: 200, CutShort: true}, false},
		{"closed in mid data", cut(false, chunkedStream+"40\r\ndata: {\"jsonrpc\":\"2.0\",\"id"), remote.Error{Code: remote.Unreachable, Status: 200, CutShort: true}, false},
		{"json shorter than its length", cut(false, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{\"js"), remote.Error{Code: remote.Unreachable, Status: 200, CutShort: true}, false},
		{"id'd event, cut, resume refused", stream("id: 7\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\nretry: 5\n\n"), remote.Error{Code: remote.Unreachable, Status: 405, CutShort: true, Message: "could not be resumed"}, true},
	}
}

func codeFaults() []fault {
	var all []fault
	for _, code := range []remote.Code{remote.Unauthenticated, remote.PermissionDenied, remote.RateLimited, remote.CursorExpired, remote.InvalidArgument} {
		places := map[string]handler{
			"error.data.code":              rpc(fmt.Sprintf(`{"code":-32000,"message":"why","data":{"code":%q,"request_id":"r-9"}}`, code)),
			"error.data.error.code":        rpc(fmt.Sprintf(`{"code":-32000,"message":"why","data":{"error":{"code":%q,"requestId":"r-9"}}}`, code)),
			"error.message":                rpc(fmt.Sprintf(`{"code":-32000,"message":"%s: why","data":{"request_id":"r-9"}}`, code)),
			"error.message, SDK's -32003":  rpc(fmt.Sprintf(`{"code":-32003,"message":"why","data":{"code":%q,"request_id":"r-9"}}`, code)),
			"error.message, SDK's -32004":  rpc(fmt.Sprintf(`{"code":-32004,"message":"why","data":{"code":%q,"request_id":"r-9"}}`, code)),
			"error.message, SDK's -32005":  rpc(fmt.Sprintf(`{"code":-32005,"message":"why","data":{"code":%q,"request_id":"r-9"}}`, code)),
			"isError structuredContent":    tool(fmt.Sprintf(`{"isError":true,"content":[],"structuredContent":{"code":%q,"message":"why","request_id":"r-9"}}`, code)),
			"isError structuredContent.e":  tool(fmt.Sprintf(`{"isError":true,"content":[],"structuredContent":{"schema_version":2,"request_id":"r-9","error":{"code":%q,"message":"why"}}}`, code)),
			"isError envelope data":        tool(fmt.Sprintf(`{"isError":true,"content":[],"structuredContent":{"schema_version":2,"request_id":"r-9","data":{"code":%q,"message":"why"}}}`, code)),
			"isError JSON in content":      tool(fmt.Sprintf(`{"isError":true,"content":[{"type":"text","text":"{\"error\":{\"code\":\"%s\",\"message\":\"why\"},\"request_id\":\"r-9\"}"}]}`, code)),
			"isError text in content":      tool(fmt.Sprintf(`{"isError":true,"content":[{"type":"text","text":"%s: why"}],"_meta":{}, "request_id":"r-9"}`, code)),
			"no isError, error":            tool(fmt.Sprintf(`{"content":[],"structuredContent":{"request_id":"r-9","error":{"code":%q,"message":"why"}}}`, code)),
			"no isError, code":             tool(fmt.Sprintf(`{"content":[],"structuredContent":{"request_id":"r-9","code":%q,"message":"why"}}`, code)),
			"no isError, envelope, code":   tool(fmt.Sprintf(`{"content":[],"structuredContent":{"schema_version":2,"request_id":"r-9","data":null,"code":%q,"message":"why"}}`, code)),
			"HTTP 200 json":                status(200, "application/json", fmt.Sprintf(`{"code":%q,"message":"why","request_id":"r-9"}`, code)),
			"HTTP 400 json":                status(400, "application/json", fmt.Sprintf(`{"error":{"code":%q,"message":"why"},"request_id":"r-9"}`, code)),
			"HTTP 409 error as a text":     status(409, "application/json", fmt.Sprintf(`{"error":%q,"message":"why","request_id":"r-9"}`, code)),
			"HTTP 500 rpc without id":      status(500, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"why","data":{"code":%q,"request_id":"r-9"}}}`, code)),
			"an event that is no message":  stream(fmt.Sprintf("event: error\ndata: {\"code\":%q,\"message\":\"why\",\"request_id\":\"r-9\"}\n\n", code)),
			"error in data, error as text": tool(fmt.Sprintf(`{"content":[],"structuredContent":{"schema_version":2,"request_id":"r-9","data":{"error":"%s: why"}}}`, code)),
		}
		for place, h := range places {
			all = append(all, fault{
				string(code) + " in " + place, h,
				remote.Error{Code: code, RequestID: "r-9", Message: "why"},
				code == remote.Unauthenticated,
			})
		}
	}
	return append(all,
		fault{"text in a 403 body", status(403, "text/plain", "RATE_LIMITED: later"), remote.Error{Code: remote.RateLimited, Message: "later"}, false},
		fault{"a code in the middle of a text is none", tool(`{"isError":true,"content":[{"type":"text","text":"not RATE_LIMITED"}]}`), remote.Error{Code: remote.Unreachable, Message: "not RATE_LIMITED"}, false},
		fault{"a longer word is no code", tool(`{"isError":true,"content":[{"type":"text","text":"RATE_LIMITED_TODAY: x"}]}`), remote.Error{Code: remote.Unreachable}, false},
		fault{"a code in small letters is none", tool(`{"isError":true,"structuredContent":{"code":"rate_limited","message":"m"}}`), remote.Error{Code: remote.Unreachable, Message: "rate_limited: m"}, false},
		fault{"an unknown code stays in the message", tool(`{"isError":true,"structuredContent":{"code":"TENANT_PAUSED","message":"until Monday"}}`), remote.Error{Code: remote.Unreachable, Message: "TENANT_PAUSED: until Monday"}, false},
		fault{"rpc -32602", rpc(`{"code":-32602,"message":"limit"}`), remote.Error{Code: remote.InvalidArgument, Message: "limit"}, false},
		fault{"rpc -32601", rpc(`{"code":-32601,"message":"no such method"}`), remote.Error{Code: remote.Malformed}, false},
		fault{"rpc -32600", rpc(`{"code":-32600,"message":"bad"}`), remote.Error{Code: remote.Malformed}, false},
		fault{"rpc -32603", rpc(`{"code":-32603,"message":"oops"}`), remote.Error{Code: remote.Unreachable, Message: "oops"}, false},
		fault{"rpc -32001, session not found", rpc(`{"code":-32001,"message":"Session not found"}`), remote.Error{Code: remote.SessionLost}, true},
		fault{"isError without words", tool(`{"isError":true}`), remote.Error{Code: remote.Unreachable}, false},
	)
}

func TestEveryAnswerHasItsNameAndKeepsOrDropsTheSession(t *testing.T) {
	for group, faults := range map[string][]fault{"http": httpFaults(), "stream": streamFaults(), "code": codeFaults()} {
		for _, f := range faults {
			t.Run(group+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				var calls atomic.Int32
				s := serve(t, func(s *server) {
					s.answer = func(w http.ResponseWriter, r *http.Request, m message) {
						if calls.Add(1) != 2 {
							result(w, m, okPage)
							return
						}
						f.answer(w, r, m)
					}
				})
				c := client(t, s.URL, nil)
				if _, err := c.Changes(t.Context(), users()); err != nil {
					t.Fatalf("before: %v", err)
				}
				_, err := c.Changes(t.Context(), users())
				checkFault(t, f, err)
				if _, err := c.Changes(t.Context(), users()); err != nil {
					t.Errorf("after: %v", err)
				}
				if got := s.handshakes() == 2; got != f.newSess {
					t.Errorf("%d handshakes; a new one wanted: %t", s.handshakes(), f.newSess)
				}
				if calls.Load() != 3 {
					t.Errorf("%d tool calls arrived for 3", calls.Load())
				}
			})
		}
	}
}

func checkFault(t *testing.T, f fault, err error) {
	t.Helper()
	var got *remote.Error
	if !errors.As(err, &got) {
		t.Fatalf("got %T %v", err, err)
	}
	if got.Code != f.want.Code || got.CutShort != f.want.CutShort || got.TooLarge != f.want.TooLarge {
		t.Errorf("got %s (cut short %t, too large %t), want %s (%t, %t): %v",
			got.Code, got.CutShort, got.TooLarge, f.want.Code, f.want.CutShort, f.want.TooLarge, err)
	}
	if f.want.Status != 0 && got.Status != f.want.Status || got.RetryAfter != f.want.RetryAfter && f.want.RetryAfter != 0 {
		t.Errorf("status %d, retry after %s: %v", got.Status, got.RetryAfter, err)
	}
	if f.want.RequestID != "" && got.RequestID != f.want.RequestID || !strings.Contains(got.Message, f.want.Message) {
		t.Errorf("request %q, message %q; want %q, %q", got.RequestID, got.Message, f.want.RequestID, f.want.Message)
	}
	if got.Tool != "users.changes.list" || got.Generation != 1 {
		t.Errorf("tool %q, generation %d", got.Tool, got.Generation)
	}
	for _, secret := range []string{"canary", "terminated without response"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q in %q", secret, err)
		}
	}
}
