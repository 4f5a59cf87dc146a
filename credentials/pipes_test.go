package credentials_test

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// pipes is a real HTTP server on in-memory connections: inside a synctest
// bubble, sockets would keep the clock from moving.
type pipes struct {
	url       string
	transport *http.Transport
	conns     chan net.Conn
	done      chan struct{}
	handler   atomic.Pointer[http.HandlerFunc]
	calls     atomic.Int64
}

func (p *pipes) handle(h http.HandlerFunc) { p.handler.Store(&h) }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.conns <- server
	return client, nil
}

// bubble runs body with a server on a fake clock.
func bubble(t *testing.T, body func(*testing.T, *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{url: "http://localhost", conns: make(chan net.Conn), done: make(chan struct{})}
		p.transport = &http.Transport{DialContext: p.dial, DisableKeepAlives: true}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.calls.Add(1)
			(*p.handler.Load())(w, r)
		})}
		go func() { _ = server.Serve(p) }()
		defer func() { _ = server.Close() }()
		body(t, p)
	})
}
