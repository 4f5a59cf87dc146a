package remotetest

import (
	"fmt"
	"net"
	"net/http"
	"time"
	"unicode/utf8"
)

// Answer replaces the answer, for instance by a 202, HTML or bytes that are no
// JSON. Without a Content-Type in it the body is sniffed by net/http.
func Answer(r Reply) Effect {
	return Effect{replace: func(x *exchange) { x.send(r) }}
}

// SSE replaces the answer by a stream of these bytes; none is a stream that
// ends without an event.
func SSE(stream string) Effect {
	return Answer(Reply{Header: map[string]string{"Content-Type": "text/event-stream"}, Body: []byte(stream)})
}

// HTML replaces the answer by what a proxy says.
func HTML(status int) Effect {
	return Answer(Reply{
		Status: status, Header: map[string]string{"Content-Type": "text/html; charset=utf-8"},
		Body: fmt.Appendf(nil, "<html><head><title>%d</title></head><body><center><h1>%d %s</h1></center></body></html>\n",
			status, status, http.StatusText(status)),
	})
}

// Redirect answers 307, which asks to repeat the POST, with its headers, at url.
func Redirect(url string) Effect {
	return Answer(Reply{Status: http.StatusTemporaryRedirect, Header: map[string]string{"Location": url}})
}

// Fail replaces the answer by an error.
func Fail(f Failure) Effect {
	return Effect{replace: func(x *exchange) {
		f := f
		f.Place = f.Place.or(x.v.Errors.or(ResultNested))
		x.send(x.refuse(f))
	}}
}

// Point is where in an answer the connection breaks.
type Point int

// The points of an answer. At MidRune a character of several bytes is cut; an
// answer in ASCII is cut as at MidData.
const (
	BeforeHeaders Point = iota
	InHeaders
	AfterHeaders
	MidData
	MidRune
)

// Ending is how the connection breaks.
type Ending int

// The endings: a TCP reset, a plain close (the body is shorter than promised),
// or an HTTP body that ends well, around an answer that does not.
const (
	Reset Ending = iota
	EOF
	Clean
)

// Cut breaks the connection within a good answer. The server has served the
// page, the client did not get it.
func Cut(at Point, how Ending) Effect {
	return Effect{deliver: func(x *exchange, r Reply) {
		conn, _, err := http.NewResponseController(x.w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler) // not a real connection: breaking it is all there is
		}
		defer func() { _ = conn.Close() }()
		if tcp, ok := conn.(*net.TCPConn); ok && how == Reset {
			_ = tcp.SetLinger(0) // close sends RST
		}
		_, _ = conn.Write(broken(r, at, how))
	}}
}

// broken is what goes out before the break.
func broken(r Reply, at Point, how Ending) []byte {
	if at == BeforeHeaders {
		return nil
	}
	b := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Ty", r.status(), http.StatusText(r.status()))
	if at == InHeaders {
		return b
	}
	b = fmt.Appendf(b, "pe: %s\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n", r.Header["Content-Type"])
	if part := r.Body[:cutAt(r.Body, at)]; len(part) > 0 {
		b = fmt.Appendf(b, "%x\r\n%s\r\n", len(part), part)
	}
	if how == Clean {
		b = append(b, "0\r\n\r\n"...)
	}
	return b
}

func cutAt(body []byte, at Point) int {
	if at == AfterHeaders {
		return 0
	}
	half := len(body) / 2
	for i := half; at == MidRune && i < len(body); i++ {
		if body[i] >= utf8.RuneSelf && utf8.RuneStart(body[i]) {
			return i + 1
		}
	}
	return half
}

// Hang says nothing until the client or the server closes, before the headers
// or after them.
func Hang(afterHeaders bool) Effect {
	return Effect{replace: func(x *exchange) {
		if afterHeaders {
			x.openStream()
		}
		x.wait()
		panic(http.ErrAbortHandler)
	}}
}

// Slow delivers a good answer in pieces of so many bytes, with a pause after
// each.
func Slow(bytes int, every time.Duration) Effect {
	return Effect{deliver: func(x *exchange, r Reply) {
		for k, v := range r.Header {
			x.w.Header().Set(k, v)
		}
		x.w.WriteHeader(r.status())
		for rest := r.Body; len(rest) > 0; {
			n := min(max(bytes, 1), len(rest))
			if !x.push(rest[:n]) || !x.srv.pause(x.r.Context(), every) {
				panic(http.ErrAbortHandler)
			}
			rest = rest[n:]
		}
	}}
}

// Flood sends a data line without end, as fast as it is taken.
func Flood() Effect {
	return Effect{replace: func(x *exchange) {
		x.openStream()
		block := make([]byte, 64<<10)
		for i := range block {
			block[i] = 'x'
		}
		for ok := x.push([]byte("event: message\ndata: ")); ok && x.r.Context().Err() == nil; {
			ok = x.push(block)
		}
		panic(http.ErrAbortHandler)
	}}
}

func (x *exchange) openStream() {
	x.w.Header().Set("Content-Type", "text/event-stream")
	x.w.WriteHeader(http.StatusOK)
	x.push(nil)
}

// push sends bytes at once and reports whether anybody is there.
func (x *exchange) push(b []byte) bool {
	if _, err := x.w.Write(b); err != nil {
		return false
	}
	return http.NewResponseController(x.w).Flush() == nil
}

func (x *exchange) wait() {
	select {
	case <-x.r.Context().Done():
	case <-x.srv.done:
	}
}
