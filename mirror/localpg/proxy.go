package localpg

import (
	"context"
	"net"
	"net/url"
	"sync"
	"time"
)

// dialTimeout bounds a proxy's call to the server.
const dialTimeout = 5 * time.Second

// Event is a moment on a connection at which a Proxy can cut it.
type Event int

const (
	// Statement is a statement on its way to the server: a simple query, an
	// Execute, or the end of a COPY's rows. A cut keeps it from the server.
	Statement Event = iota
	// Answer is the whole answer to a round trip. A cut keeps it from the client;
	// what the server did is done.
	Answer
	// Commit is a COMMIT on its way to the server, also one behind a COPY.
	Commit
	// Committed is the answer to a COMMIT.
	Committed
	events // how many there are
)

// Proxy stands between clients and a PostgreSQL server, over plain TCP. It knows
// the protocol well enough to count what passes and to cut a connection at a
// chosen moment. Its methods are for any goroutine.
type Proxy struct {
	listener net.Listener
	target   *url.URL // as StartProxy was told

	mu     sync.Mutex
	server string // where new connections go
	silent bool
	lines  map[*line]bool
	counts [events]int
	armed  bool
	event  Event // of the cut that is armed
	at     int   // the count at which it comes
}

// StartProxy starts a proxy before the server of a database URL. It ends with
// the test.
func StartProxy(t TB, target string) *Proxy {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatalf("localpg: proxy: the target is not a URL")
	}
	ctx, cancel := context.WithCancel(context.Background())
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		cancel()
		t.Fatalf("localpg: proxy: %v", err)
	}
	p := &Proxy{listener: l, target: u, server: u.Host, lines: map[*line]bool{}}
	go p.accept(ctx)
	t.Cleanup(func() {
		_ = l.Close()
		cancel()
		p.Drop()
	})
	return p
}

// URL is the target's, through the proxy.
func (p *Proxy) URL() string {
	u := *p.target
	q := u.Query()
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = p.listener.Addr().String(), q.Encode()
	return u.String()
}

// Count is how many events of a kind there were so far, cut ones included.
func (p *Proxy) Count(e Event) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[e]
}

// Cut makes the n-th event from now break the connection that it is on. It
// replaces a cut that has not come yet; an n of 0 only takes that one back.
func (p *Proxy) Cut(e Event, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.event, p.at = n > 0, e, p.counts[e]+n
}

// Armed tells whether a cut is still to come.
func (p *Proxy) Armed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.armed
}

// Drop breaks all connections.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.lines {
		l.hangUp()
	}
}

// Retarget sends new connections to the server of another database URL, whose
// name and login stay those that the client gives, and breaks the old ones.
// It ends a silence.
func (p *Proxy) Retarget(target string) error {
	u, err := url.Parse(target)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.server, p.silent = u.Host, false
	p.mu.Unlock()
	p.Drop()
	return nil
}

// Silence swallows every byte from now on, as a dead network does: connections
// stay open, new ones are accepted, and nobody hears anything.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
}

func (p *Proxy) isSilent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.silent
}

// hit counts an event and tells whether it is the one to cut at.
func (p *Proxy) hit(e Event) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[e]++
	if !p.armed || p.event != e || p.counts[e] != p.at {
		return false
	}
	p.armed = false
	return true
}

func (p *Proxy) accept(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(ctx, client)
	}
}

// serve carries one connection until either side or a cut ends it.
func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	p.mu.Lock()
	address := p.server
	p.mu.Unlock()
	dialer := net.Dialer{Timeout: dialTimeout}
	server, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &line{proxy: p, client: client, server: server}
	p.mu.Lock()
	// A connection that was on its way to the server of before is not let through.
	stale := p.server != address || ctx.Err() != nil
	if !stale {
		p.lines[l] = true
	}
	p.mu.Unlock()
	if stale {
		l.hangUp()
		return
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		defer l.hangUp()
		l.answers()
	}()
	l.requests()
	l.hangUp()
	<-answered
	p.mu.Lock()
	delete(p.lines, l)
	p.mu.Unlock()
}
