package remotetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	maxBody     = 4 << 20
	maxCallLog  = 20_000
	defaultKey  = "xqok-simulator-0001"
	ensurePath  = "/api/open/token/ensure"
	mcpPath     = "/mcp"
	kindEnsure  = "ensure"
	kindGarbage = "garbage"
)

// TB is the part of testing.TB that Start needs, so that a program which is no
// test can use it as well.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Options of a simulator. The zero value is a server of the three resources of
// the contract, without data.
type Options struct {
	Listen         string   // host:port; empty: a free port of 127.0.0.1
	OpenKey        string   // the service key; empty: a fixed one, see Key
	ExtraResources []string // beside users, properties and contracts, e.g. payments
	Seed           uint64   // of the made-up data, signatures and tokens
	MaxLimit       int      // rows a page may have; 0: 200 (contract §4.3)
	// Strict makes Start fail the test at its end if Breaches is not empty.
	Strict bool
	// WallClock stamps changes with the time of day. Without it the clock is
	// a counter, and the same calls make the same bytes.
	WallClock bool
	Variants  Variants
}

// Server is a running simulator. Its methods may be called from anywhere at
// any time, also from hooks and from a Fault's functions.
type Server struct {
	key      []byte // signs cursors, tokens and access tokens
	maxLimit int
	listener net.Listener
	http     *http.Server
	done     chan struct{}
	inflight sync.WaitGroup
	plan     plan

	mu          sync.Mutex
	closed      bool
	openKey     string
	epoch       int // of the access tokens; a revocation starts a new one
	grants      map[string]grant
	deactivated map[string]bool
	ensuring    map[string]int
	sessions    map[string]*session
	dropped     map[string]bool // sessions that the server forgot
	clock       clock
	names       []string
	resources   map[string]*dataset
	rounds      map[string]*round
	roundOrder  []string
	seeder      seeder
	variants    Variants
	context     Context
	hidden      map[string]bool
	latency     time.Duration
	pageDelay   time.Duration
	quota       map[string]int
	hooks       []func(Call)
	seq         int
	calls       []Call
	stats       Stats
	breaches    []string
}

// Start runs a simulator until the test ends.
func Start(tb TB, o Options) *Server {
	tb.Helper()
	s, err := New(o)
	if err != nil {
		tb.Fatalf("%v", err)
		return nil
	}
	tb.Cleanup(func() {
		_ = s.Close()
		if b := s.Breaches(); o.Strict && len(b) > 0 {
			tb.Fatalf("remotetest: the client broke the contract %d times, first: %s", len(b), b[0])
		}
	})
	return s
}

// New runs a simulator; the caller closes it.
func New(o Options) (*Server, error) {
	listen := o.Listen
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("remotetest: listen: %w", err)
	}
	s := build(o)
	s.listener = l
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 30 * time.Second}
	go func() { _ = s.http.Serve(l) }() // ends with Close, with nothing to tell
	return s, nil
}

func build(o Options) *Server {
	s := &Server{
		key: sealKey(o.Seed), maxLimit: o.MaxLimit, openKey: o.OpenKey, done: make(chan struct{}),
		grants: map[string]grant{}, deactivated: map[string]bool{}, ensuring: map[string]int{},
		sessions: map[string]*session{}, dropped: map[string]bool{}, resources: map[string]*dataset{}, rounds: map[string]*round{},
		clock: newClock(o.WallClock), seeder: newSeeder(o.Seed), variants: o.Variants,
		hidden: map[string]bool{}, quota: map[string]int{classSync: -1, classQuery: -1},
		stats: Stats{Calls: map[string]int{}, Pages: map[string]int{}},
	}
	if s.maxLimit <= 0 {
		s.maxLimit = contractLimit
	}
	if s.openKey == "" {
		s.openKey = defaultKey
	}
	s.names = append([]string{"users", "properties", "contracts"}, o.ExtraResources...)
	for _, name := range s.names {
		s.resources[name] = &dataset{rows: map[string]*row{}}
	}
	return s
}

// URL is the base address, without a slash at its end.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Key is the service key that is valid now.
func (s *Server) Key() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.openKey
}

// Close ends every answer in flight, waits for them and frees the port.
func (s *Server) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if !first {
		return nil
	}
	close(s.done)
	err := s.http.Close()
	s.inflight.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("remotetest: close: %w", err)
	}
	return nil
}

// ServeHTTP serves one request: log, hooks, latency, fault plan, answer.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.inflight.Done()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "request body too large or cut", http.StatusBadRequest)
		return
	}
	x := &exchange{srv: s, w: w, r: r, body: body}
	x.classify()
	hooks, delay := s.record(x)
	if x.call.Kind == kindEnsure {
		defer s.ensureEnds(x.body)
	}
	for _, h := range hooks {
		h(x.call)
	}
	if !s.pause(r.Context(), delay) {
		panic(http.ErrAbortHandler)
	}
	effect := s.plan.pick(x.call)
	if effect.replace != nil {
		effect.replace(x)
		return
	}
	reply := x.answer(effect.mutate)
	if effect.deliver != nil {
		effect.deliver(x, reply)
		return
	}
	x.send(reply)
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.inflight.Add(1)
	return true
}

// pause waits, and reports false if the client or the server went away first.
func (s *Server) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-s.done:
	}
	return false
}

// answer judges the request and makes the reply that a server without faults
// would give, but for the page that mutate may change.
func (x *exchange) answer(mutate func(*Page)) Reply {
	switch {
	case x.call.Kind == kindEnsure:
		return x.ensure()
	case x.r.URL.Path != mcpPath:
		return Reply{Status: http.StatusNotFound, Body: []byte("not found\n")}
	case x.r.Method == http.MethodDelete:
		return x.endSession()
	case x.r.Method != http.MethodPost:
		return Reply{
			Status: http.StatusMethodNotAllowed, Header: map[string]string{"Allow": "POST, DELETE"},
			Body: []byte("no standalone stream here\n"),
		}
	}
	return x.rpc(mutate)
}

// send writes a reply as it is.
func (x *exchange) send(r Reply) {
	for k, v := range r.Header {
		x.w.Header().Set(k, v)
	}
	x.w.WriteHeader(r.status())
	_, _ = x.w.Write(r.Body) // the client may be gone; nobody is left to tell
}
