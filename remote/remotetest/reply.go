package remotetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// Reply is a whole HTTP answer.
type Reply struct {
	Status int // 0: 200
	Header map[string]string
	Body   []byte
}

func (r Reply) status() int {
	if r.Status == 0 {
		return http.StatusOK
	}
	return r.Status
}

func jsonReply(status int, body []byte) Reply {
	return Reply{Status: status, Header: map[string]string{"Content-Type": "application/json"}, Body: body}
}

// result answers a JSON-RPC request. The parts of the result come apart so that
// a page's bytes are not copied by every layer around them.
func (x *exchange) result(parts ...[]byte) Reply {
	return x.frame(x.payload("result", parts...))
}

// rpcError answers with a JSON-RPC error that is no code of contract §5.
func (x *exchange) rpcError(status, code int, text string) Reply {
	p := x.payload("error", fmt.Appendf(nil, `{"code":%d,"message":%q}`, code, text))
	if status != http.StatusOK {
		return jsonReply(status, p)
	}
	return x.frame(p)
}

// payload is the JSON-RPC message. Where it may be cut into data lines it has
// line breaks between members.
func (x *exchange) payload(kind string, value ...[]byte) []byte {
	br := ""
	if x.v.SSE.SeveralDataLines && !x.v.JSONAnswer {
		br = "\n"
	}
	id := x.msg.ID
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	head := fmt.Appendf(nil, `{"jsonrpc":"2.0",%s"id":%s,%s"%s":`, br, id, br, kind)
	return bytes.Join(append(append([][]byte{head}, value...), []byte(br+"}")), nil)
}

// frame packs a message the way the server answers: SSE (contract §2), or JSON
// in a variant.
func (x *exchange) frame(payload []byte) Reply {
	if x.v.JSONAnswer {
		return jsonReply(http.StatusOK, payload)
	}
	return Reply{
		Header: map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache"},
		Body:   x.v.SSE.write(payload, x.call.RequestID),
	}
}

// write makes the stream of one answer.
func (f SSEForm) write(payload []byte, id string) []byte {
	b := make([]byte, 0, len(payload)+256)
	if f.BOM {
		b = append(b, "\uFEFF"...)
	}
	if f.KeepAlive {
		b = append(b, ": keep-alive\n\n:\n"...)
	}
	if f.NotificationFirst {
		b = f.event(b, []byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"同步任务排队中"}}`), id+"-n")
	}
	if f.RequestFirst {
		b = f.event(b, []byte(`{"jsonrpc":"2.0","id":"srv-1","method":"ping"}`), id+"-r")
	}
	b = f.event(b, payload, id)
	if f.NoFinalBlank {
		b = bytes.TrimRight(b, "\n")
	}
	if f.CRLF {
		b = bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))
	}
	return b
}

func (f SSEForm) event(b, payload []byte, id string) []byte {
	if f.IDs {
		b = append(append(append(b, "id: "...), id...), "\nretry: 3000\n"...)
	}
	if !f.NoEventName {
		b = append(b, "event: message\n"...)
	}
	for line := range bytes.SplitSeq(payload, []byte("\n")) {
		b = append(b, "data:"...)
		if !f.NoSpace {
			b = append(b, ' ')
		}
		b = append(append(b, line...), '\n')
		if f.KeepAlive {
			b = append(b, ": keep-alive\n"...)
		}
	}
	return append(b, '\n')
}

// envelope answers a tools/call (contract §4.2): version 2 when the header asks
// for it, else the old shape with data at the top.
func (x *exchange) envelope(data []byte, notice string) Reply {
	id := fmt.Appendf(nil, `"request_id":%q`, x.call.RequestID)
	place := RequestIDPlace(orString(string(x.v.RequestID), string(RequestIDEnvelope)))
	v1 := x.v.V1Always || x.r.Header.Get("X-Mcp-Schema-Version") != "2"
	if place == RequestIDData || v1 && place == RequestIDEnvelope {
		data = withMember(data, id)
	}
	s := [][]byte{data}
	if !v1 {
		head := []byte(`{"schema_version":2,`)
		if place == RequestIDEnvelope {
			head = append(append(head, id...), ',')
		}
		if notice != "" && x.v.NoticeInEnvelope {
			head = append(appendString(append(head, `"notice":`...), notice), ',')
		}
		s = [][]byte{append(head, `"data":`...), data, []byte("}")}
	}
	return x.toolResult(s, "ok", false, place)
}

// withMember adds a member at the front of an object.
func withMember(object, member []byte) []byte {
	rest := bytes.TrimPrefix(bytes.TrimSpace(object), []byte("{"))
	b := make([]byte, 0, len(object)+len(member)+2)
	b = append(append(b, '{'), member...)
	if !bytes.HasPrefix(rest, []byte("}")) {
		b = append(b, ',')
	}
	return append(b, rest...)
}

// toolResult wraps structured content, which may be nil, and text.
func (x *exchange) toolResult(structured [][]byte, text string, isError bool, place RequestIDPlace) Reply {
	if x.v.ContentJSON && structured != nil {
		text = string(bytes.Join(structured, nil))
	}
	head := append(appendString([]byte(`{"content":[{"type":"text","text":`), text), `}]`...)
	if structured != nil {
		head = append(head, `,"structuredContent":`...)
	}
	tail := fmt.Appendf(nil, `,"isError":%t`, isError)
	if place == RequestIDMeta {
		tail = fmt.Appendf(tail, `,"_meta":{"request_id":%q}`, x.call.RequestID)
	}
	r := x.result(slices.Concat([][]byte{head}, structured, [][]byte{append(tail, '}')})...)
	if place == RequestIDHeader {
		r.Header["X-Request-Id"] = x.call.RequestID
	}
	return r
}
