package remotetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Call is one request as it arrived, before it was judged.
type Call struct {
	Seq       int    // among all requests of the server, from 1
	Kind      string // ensure; a JSON-RPC method; an HTTP method for what is not POST
	Tool      string // of a tools/call
	Resource  string // of a changes tool
	Args      json.RawMessage
	Page      int // of a changes tool: number of the page in its round, from 1
	Nth       int // among the requests of the same kind and tool, from 1
	RequestID string
	At        time.Time // time of day, for measuring
}

// exchange is a request on its way to an answer.
type exchange struct {
	srv  *Server
	w    http.ResponseWriter
	r    *http.Request
	body []byte
	msg  message
	call Call
	v    Variants // as they were when the request arrived
}

// classify names the request; it judges nothing.
func (x *exchange) classify() {
	switch {
	case x.r.URL.Path == ensurePath:
		x.call.Kind = kindEnsure
		return
	case x.r.Method != http.MethodPost:
		x.call.Kind = x.r.Method
		return
	}
	if err := json.Unmarshal(x.body, &x.msg); err != nil {
		x.call.Kind = kindGarbage
		return
	}
	x.call.Kind = x.msg.Method
	if x.msg.Method == "" {
		x.call.Kind = "response" // the client answers a request of the server
	}
	if x.msg.Method != "tools/call" {
		return
	}
	var p callParams
	if json.Unmarshal(x.msg.Params, &p) == nil {
		x.call.Tool, x.call.Args = p.Name, bytes.Clone(p.Arguments)
	}
}

// record writes the request down and gives back what is to happen before it is
// answered.
func (s *Server) record(x *exchange) ([]func(Call), time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	x.v = s.variants
	c := &x.call
	c.Seq, c.At, c.RequestID = s.seq, time.Now(), fmt.Sprintf("req-%08d", s.seq)
	delay := s.latency
	if name, ok := s.resourceOf(c.Tool); ok {
		c.Resource, c.Page = name, s.pageNumber(c.Args)
		delay += s.pageDelay
	}
	label := c.Kind
	if c.Tool != "" {
		label = c.Tool
	}
	s.stats.Calls[label]++
	c.Nth = s.stats.Calls[label]
	if len(s.calls) >= 2*maxCallLog {
		s.calls = append([]Call(nil), s.calls[maxCallLog:]...)
	}
	s.calls = append(s.calls, *c)
	if c.Kind == kindEnsure {
		s.ensureBegins(x.body)
	}
	s.inspect(x)
	return slices.Clone(s.hooks), delay
}
