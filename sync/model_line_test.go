package sync_test

import (
	"context"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// line stands between the mirror and PostgreSQL. A blow falls on it after so
// many bytes, in either direction: in the middle of a message as a rule, where
// localpg.Proxy cuts between two.
type line struct {
	server string
	down   atomic.Bool // like a dead process, which makes no new connections
	armed  atomic.Pointer[blow]
	conns  chan map[net.Conn]struct{} // those that are open; out of the channel while somebody uses it
}

// throughLine starts a line and gives the address that leads over it.
func throughLine(t *testing.T, target string) (*line, string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	l := &line{server: u.Host, conns: make(chan map[net.Conn]struct{}, 1)}
	l.conns <- map[net.Conn]struct{}{}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go l.serve(c)
		}
	}()
	u.Host = listener.Addr().String()
	return l, u.String()
}

func (l *line) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	if l.down.Load() {
		return
	}
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", l.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	l.hold(client, true)
	defer l.hold(client, false)
	if l.down.Load() { // it fell in between
		return
	}
	go func() {
		l.pump(client, server, client)
		_ = client.Close()
	}()
	l.pump(server, client, client)
}

// pump carries bytes one way. client is the end that a blow may cut.
func (l *line) pump(to, from, client net.Conn) {
	buf := make([]byte, 8<<10)
	for {
		n, err := from.Read(buf)
		before, b := n, l.armed.Load()
		if b != nil {
			before = b.bytes(n)
		}
		if _, writeErr := to.Write(buf[:before]); writeErr != nil {
			return
		}
		if before < n {
			b.strike(client)
			if _, writeErr := to.Write(buf[before:n]); writeErr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *line) hold(c net.Conn, on bool) {
	open := <-l.conns
	if on {
		open[c] = struct{}{}
	} else {
		delete(open, c)
	}
	l.conns <- open
}

// cut breaks every connection.
func (l *line) cut() {
	open := <-l.conns
	for c := range open {
		_ = c.Close()
	}
	l.conns <- open
}

// die breaks every connection, and no new one comes about.
func (l *line) die() {
	l.down.Store(true)
	l.cut()
}

// blow is what befalls a run once, after so many bytes on the line or so many
// requests to the remote.
type blow struct {
	left atomic.Int64
	turn chan bool // false once it has struck or was called off
	do   func(net.Conn)
}

func newBlow(after int64, do func(net.Conn)) *blow {
	b := &blow{turn: make(chan bool, 1), do: do}
	b.left.Store(after)
	b.turn <- true
	return b
}

// bytes tells how many of n bytes go before the blow: n when it is not due.
func (b *blow) bytes(n int) int {
	if left := b.left.Add(-int64(n)); left < 0 && left+int64(n) >= 0 {
		return n + int(left)
	}
	return n
}

func (b *blow) strike(client net.Conn) {
	if <-b.turn {
		b.do(client)
	}
	b.turn <- false
}

// callOff returns when the blow has struck in full or never will, and tells
// whether it did.
func (b *blow) callOff() (struck bool) {
	struck = !<-b.turn
	b.turn <- false
	return struck
}

// ambush waits at the remote for the nth request.
type ambush struct {
	armed atomic.Pointer[blow]
}

// fall is the remote's hook.
func (a *ambush) fall(remotetest.Call) {
	if b := a.armed.Load(); b != nil && b.left.Add(-1) == 0 {
		b.strike(nil)
	}
}
