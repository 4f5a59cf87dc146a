package remotetest

import (
	"fmt"
	"net/http"
)

// The error codes of contract §5.
const (
	Unauthenticated   = "UNAUTHENTICATED"
	PermissionDenied  = "PERMISSION_DENIED"
	RateLimited       = "RATE_LIMITED"
	SyncCursorExpired = "SYNC_CURSOR_EXPIRED"
	InvalidArgument   = "INVALID_ARGUMENT"
)

// Place is where an error code travels. The contract names the codes and not
// the place.
type Place string

// The places of an error code.
const (
	RPCData      Place = "json-rpc error, data.code"
	RPCMessage   Place = "json-rpc error, message"
	ResultTop    Place = "isError, structuredContent.code"
	ResultNested Place = "isError, structuredContent.error.code"
	ContentJSON  Place = "isError, content is JSON"
	ContentText  Place = "isError, content is CODE: text"
	HTTPTop      Place = "http status, body code"
	HTTPNested   Place = "http status, body error.code"
	HTTPRPC      Place = "http status, body is a json-rpc error"
	HTTPBare     Place = "http status, body is text without the code"
)

// Places lists every place. HTTPBare, the last one, does not carry the code.
func Places() []Place {
	return []Place{
		RPCData, RPCMessage, ResultTop, ResultNested, ContentJSON, ContentText, HTTPTop, HTTPNested, HTTPRPC, HTTPBare,
	}
}

func (p Place) or(fallback Place) Place {
	if p == "" {
		return fallback
	}
	return p
}

// Failure is an error of the remote.
type Failure struct {
	Place      Place // empty: as Variants say
	Code       string
	Message    string
	Status     int    // of the HTTP places; 0: by code
	RetryAfter string // header, sent as it is
}

func (f Failure) httpStatus() int {
	if f.Status != 0 {
		return f.Status
	}
	switch f.Code {
	case Unauthenticated:
		return http.StatusUnauthorized
	case PermissionDenied:
		return http.StatusForbidden
	case RateLimited:
		return http.StatusTooManyRequests
	case SyncCursorExpired:
		return http.StatusGone
	case InvalidArgument:
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// fail answers a tools/call with an error that the server itself finds.
func (x *exchange) fail(code, text string) Reply {
	return x.refuse(Failure{Place: x.v.Errors.or(ResultNested), Code: code, Message: text})
}

// refuse renders an error in its place.
func (x *exchange) refuse(f Failure) Reply {
	message := orString(f.Message, "refused by the simulator")
	object := fmt.Appendf(nil, `{"code":%s,"message":%s,"request_id":%q}`, quote(f.Code), quote(message), x.call.RequestID)
	rpc := func(text string, data []byte) []byte {
		e := fmt.Appendf(nil, `{"code":-32000,"message":%s`, quote(text))
		if data != nil {
			e = append(append(e, `,"data":`...), data...)
		}
		return append(e, '}')
	}
	var r Reply
	switch f.Place {
	case RPCData:
		r = x.frame(x.payload("error", rpc(message, object)))
	case RPCMessage:
		r = x.frame(x.payload("error", rpc(f.Code+": "+message, nil)))
	case ResultTop:
		r = x.toolResult([][]byte{object}, message, true, RequestIDAbsent)
	case ContentJSON:
		r = x.toolResult(nil, string(object), true, RequestIDAbsent)
	case ContentText:
		r = x.toolResult(nil, f.Code+": "+message, true, RequestIDAbsent)
	case HTTPTop:
		r = jsonReply(f.httpStatus(), object)
	case HTTPNested:
		r = jsonReply(f.httpStatus(), fmt.Appendf(nil, `{"error":%s}`, object))
	case HTTPRPC:
		r = jsonReply(f.httpStatus(), x.payload("error", rpc(message, object)))
	case HTTPBare:
		r = Reply{Status: f.httpStatus(), Header: map[string]string{"Content-Type": "text/plain"}, Body: []byte("refused\n")}
	default:
		nested := fmt.Appendf(nil, `{"schema_version":2,"request_id":%q,"error":%s}`, x.call.RequestID, object)
		r = x.toolResult([][]byte{nested}, message, true, RequestIDAbsent)
	}
	if f.RetryAfter != "" {
		r.Header["Retry-After"] = f.RetryAfter
	}
	return r
}
