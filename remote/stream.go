package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// events cuts a stream of events into lines and events, as the HTML standard says, whatever ends the lines.
type events struct {
	lf      bool   // a line ended with CR, so a LF now is part of it
	line    []byte // the beginning of a line whose end has not come
	fields  []byte // of the event in hand, but its data: the standard's own alone
	data    []byte // of the event in hand
	hasData bool
	// dispatch takes the event in hand; its bytes are used again, unless it takes e.data away.
	dispatch func(e *events)
}

// write takes the next piece of the stream.
func (e *events) write(text []byte) {
	for len(text) > 0 {
		text = e.split(text)
	}
}

// split takes the first line of text, or the beginning of one, and gives what is behind it.
func (e *events) split(text []byte) []byte {
	if e.lf {
		e.lf = false
		if text[0] == '\n' {
			return text[1:]
		}
	}
	end := lineEnd(text)
	if end < 0 {
		e.line = append(e.line, text...)
		return nil
	}
	line, kept := text[:end], len(e.line) > 0
	if kept {
		e.line = append(e.line, line...)
		line = e.line
	}
	e.lf = text[end] == '\r'
	e.field(line, kept)
	e.line = e.line[:0]
	return text[end+1:]
}

// lineEnd is where the first line of text ends, -1 when it does not. To look for
// one byte at a time is many times as fast as to look for either.
func lineEnd(text []byte) int {
	end := bytes.IndexByte(text, '\n')
	if end < 0 {
		return bytes.IndexByte(text, '\r')
	}
	if cr := bytes.IndexByte(text[:end], '\r'); cr >= 0 {
		return cr
	}
	return end
}

// field takes one line of an event; a blank one ends it. A line that was kept,
// e.line, may become the data without a copy: a page is one such line.
func (e *events) field(line []byte, kept bool) {
	if len(line) == 0 {
		e.end()
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		switch {
		case e.hasData:
			e.data = append(append(e.data, '\n'), value...)
		case kept:
			e.data, e.line = value, nil
		default:
			e.data = append(e.data, value...)
		}
		e.hasData = true
	case "event", "id", "retry":
		e.fields = append(append(append(e.fields, name...), ": "...), value...)
		e.fields = append(e.fields, '\n')
	}
}

func (e *events) end() {
	if len(e.fields) > 0 || e.hasData {
		e.dispatch(e)
	}
	e.fields, e.data, e.hasData = e.fields[:0], e.data[:0], false
}

// finish ends an event that no blank line ended: servers do that at the end of a stream.
func (e *events) finish() {
	if len(e.line) > 0 {
		e.field(e.line, true)
		e.line = nil
	}
	e.end()
}

// stream is an answer's event stream on its way to the SDK, which gets each event with the standard's own fields alone
// and, in place of the call's result, one without content: the SDK would decode all of it, and end the session over what
// is nested too deeply.
type stream struct {
	body io.ReadCloser
	x    *exchange

	buf    []byte // what is read at once
	events events
	out    []byte // for the SDK
	err    error  // after out
}

// readSize is how much of a stream is read at once.
const readSize = 64 << 10

func newStream(body io.ReadCloser, x *exchange) *stream {
	s := &stream{body: body, x: x}
	s.events.dispatch = s.give
	return s
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

// fill reads a piece of the stream and takes its events. One that broke off leaves the event in hand.
func (s *stream) fill() {
	if s.buf == nil {
		s.buf = make([]byte, readSize)
	}
	n, err := s.body.Read(s.buf)
	s.out = s.out[:0]
	s.events.write(s.buf[:n])
	if err != nil {
		s.err = err
	}
	if errors.Is(err, io.EOF) {
		s.events.finish()
	}
}

// give writes an event for the SDK.
func (s *stream) give(e *events) {
	s.out = append(s.out, e.fields...)
	if e.hasData {
		data := e.data
		if short, taken := s.x.take(data); taken {
			data, e.data = short, nil // the result's bytes are the exchange's now
		}
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			s.out = append(append(append(s.out, "data: "...), line...), '\n')
		}
	}
	s.out = append(s.out, '\n')
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
