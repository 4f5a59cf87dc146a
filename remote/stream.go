package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// stream is an answer's event stream on its way to the SDK. It reads it as the HTML standard says, whatever ends the
// lines, and gives the SDK each event with the standard's own fields alone and, in place of the call's result, one
// without content: the SDK would decode all of it, and end the session over what is nested too deeply.
type stream struct {
	body io.ReadCloser
	x    *exchange

	buf     []byte // read and not yet split into lines
	lf      bool   // a line ended with CR, so a LF now is part of it
	line    []byte // the beginning of a line whose end has not come
	event   []byte // fields of the event in hand but its data
	data    []byte // of the event in hand
	hasData bool
	out     []byte // for the SDK
	err     error  // after out
}

// readSize is how much of a stream is read at once.
const readSize = 64 << 10

func newStream(body io.ReadCloser, x *exchange) *stream {
	return &stream{body: body, x: x}
}

// Read implements [io.Reader].
func (s *stream) Read(p []byte) (int, error) {
	for len(s.out) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.fill()
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// Close implements [io.Closer].
func (s *stream) Close() error { return s.body.Close() }

// fill reads a piece of the stream and takes its lines.
func (s *stream) fill() {
	if s.buf == nil {
		s.buf = make([]byte, readSize)
	}
	n, err := s.body.Read(s.buf)
	s.out = s.out[:0]
	for rest := s.buf[:n]; len(rest) > 0; {
		rest = s.split(rest)
	}
	if err != nil {
		s.err = err
	}
	if errors.Is(err, io.EOF) {
		s.finish()
	}
}

// split takes the first line of text, or the beginning of one, and gives what is behind it.
func (s *stream) split(text []byte) []byte {
	if s.lf {
		s.lf = false
		if text[0] == '\n' {
			return text[1:]
		}
	}
	end := bytes.IndexAny(text, "\r\n")
	if end < 0 {
		s.line = append(s.line, text...)
		return nil
	}
	line := text[:end]
	if len(s.line) > 0 {
		s.line = append(s.line, line...)
		line = s.line
	}
	s.lf = text[end] == '\r'
	s.field(line)
	s.line = s.line[:0]
	return text[end+1:]
}

// field takes one line of an event; a blank one ends it.
func (s *stream) field(line []byte) {
	if len(line) == 0 {
		s.dispatch()
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if s.hasData {
			s.data = append(s.data, '\n')
		}
		s.data = append(s.data, value...)
		s.hasData = true
	case "event", "id", "retry":
		s.event = append(append(append(s.event, name...), ": "...), value...)
		s.event = append(s.event, '\n')
	}
}

// dispatch gives the SDK the event in hand.
func (s *stream) dispatch() {
	s.out = append(s.out, s.event...)
	if s.hasData {
		data := s.data
		if short, taken := s.x.take(data); taken {
			data, s.data = short, nil // the result's bytes are the exchange's now
		}
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			s.out = append(append(append(s.out, "data: "...), line...), '\n')
		}
	}
	if len(s.event) > 0 || s.hasData {
		s.out = append(s.out, '\n')
	}
	s.event, s.data, s.hasData = s.event[:0], s.data[:0], false
}

// finish gives the SDK the event of a stream that ends well without a blank line: servers do that.
func (s *stream) finish() {
	if len(s.line) > 0 {
		s.field(s.line)
		s.line = nil
	}
	s.dispatch()
}

// take keeps the result of a message that answers the exchange's call and gives the message without it. Anything else
// is the SDK's to read. The exchange owns the message then.
func (x *exchange) take(message []byte) (short []byte, taken bool) {
	if x.tool == methodInitialize { // which the SDK must read
		return nil, false
	}
	id, result := responded(message)
	x.mu.Lock()
	defer x.mu.Unlock()
	own, numbered := x.id.Raw().(int64)
	if result == nil || x.result != nil || !numbered || string(id) != strconv.FormatInt(own, 10) {
		return nil, false
	}
	x.result = result
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, x.empty()), true
}

// responded cuts the id and the result out of a JSON-RPC response; result is nil when the message is none.
func responded(message []byte) (id, result []byte) {
	p := parser{scanner{src: message}}
	members := map[string][]byte{}
	if p.take('{') != nil || p.list('}', func() error {
		name, err := p.name()
		if err != nil {
			return err
		}
		members[name], err = p.scanner.value()
		return err
	}) != nil || p.peek() != 0 {
		return nil, nil
	}
	refusal := node{raw: members["error"]}
	if string(members["jsonrpc"]) != `"2.0"` || refusal.present() {
		return nil, nil
	}
	return members["id"], members["result"]
}
