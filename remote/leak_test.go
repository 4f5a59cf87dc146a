package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// wires counts the connections that a client has open.
type wires struct {
	http.Transport
	open atomic.Int64
}

type wire struct {
	net.Conn
	closed func()
}

func (w *wire) Close() error {
	w.closed()
	return w.Conn.Close()
}

func newWires() *wires {
	w := &wires{}
	w.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		w.open.Add(1)
		return &wire{conn, sync.OnceFunc(func() { w.open.Add(-1) })}, nil
	}
	return w
}

// endlessFaults end by the client's own bounds alone.
func endlessFaults() map[string]handler {
	begin := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
	}
	return map[string]handler{
		"nothing": func(_ http.ResponseWriter, r *http.Request, _ message) { <-r.Context().Done() },
		"headers and then nothing": func(w http.ResponseWriter, r *http.Request, _ message) {
			begin(w)
			<-r.Context().Done()
		},
		"a byte now and then": func(w http.ResponseWriter, r *http.Request, _ message) {
			begin(w)
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("d"))
				w.(http.Flusher).Flush()
				<-tick.C
			}
		},
		"comments without end": func(w http.ResponseWriter, r *http.Request, _ message) {
			begin(w)
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte(strings.Repeat(": keep\n\n", 1000)))
			}
		},
		"a line without end": func(w http.ResponseWriter, r *http.Request, _ message) {
			begin(w)
			_, _ = w.Write([]byte("data: {"))
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte(strings.Repeat("x", 8000)))
			}
		},
	}
}

// handlers gives the answers of tables of faults.
func handlers(tables ...[]fault) iter.Seq[handler] {
	return func(yield func(handler) bool) {
		for _, f := range slices.Concat(tables...) {
			if !yield(f.answer) {
				return
			}
		}
	}
}

// faultOf reads from a call's cursor which fault it asks for.
func faultOf(m message) (index int, ok bool) {
	var arguments struct{ Cursor *string }
	if json.Unmarshal(m.Params.Arguments, &arguments) != nil || arguments.Cursor == nil {
		return 0, false
	}
	index, err := strconv.Atoi(*arguments.Cursor)
	return index, err == nil
}

// footing is what a client holds when nothing is in flight.
type footing struct {
	goroutines int
	open       int64
	heap       uint64
}

// stand measures it; idle connections, which are kept on purpose, are closed first.
func stand(pool *wires) footing {
	var m runtime.MemStats
	pool.CloseIdleConnections()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return footing{runtime.NumGoroutine(), pool.open.Load(), m.HeapAlloc}
}

// within waits for a condition.
func within(limit time.Duration, holds func() bool) bool {
	end, tick := time.After(limit), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-end:
			return false
		}
	}
	return true
}

// A thousand calls and their handshakes meet every fault that these tests know, three at a time on one client.
func TestAThousandFaultsLeakNothing(t *testing.T) {
	const faults, slack = 1000, 4 << 20
	all := slices.Collect(handlers(httpFaults(), streamFaults(), codeFaults()))
	for _, h := range endlessFaults() {
		all = append(all, h)
	}
	var greetings atomic.Int64
	s := serve(t, func(s *server) {
		s.answer = func(w http.ResponseWriter, r *http.Request, m message) {
			if i, ok := faultOf(m); ok {
				all[i](w, r, m)
				return
			}
			result(w, m, okPage)
		}
		s.greet = func(w http.ResponseWriter, r *http.Request, m message) {
			if n := greetings.Add(1); n%4 == 0 {
				all[int(n)%len(all)](w, r, m)
				return
			}
			w.Header().Set("Mcp-Session-Id", fmt.Sprintf("canary-session-%d", greetings.Load()))
			result(w, m, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`)
		}
	})
	pool := newWires()
	c := client(t, s.URL, func(o *remote.Options) { o.HTTP, o.Timeout, o.MaxBytes = pool, 250*time.Millisecond, 1<<20 })
	clean := func() error { _, err := c.Changes(t.Context(), users()); return err }
	if err := clean(); err != nil {
		t.Fatal(err)
	}
	before := stand(pool)
	order := rand.New(rand.NewPCG(1, 1)).Perm(faults)
	meet(t, c, order, len(all))
	if !within(5*time.Second, func() bool { return clean() == nil }) {
		t.Error("no call succeeds afterwards")
	}
	s.forget()
	var after footing
	if !within(5*time.Second, func() bool {
		after = stand(pool)
		return after.goroutines <= before.goroutines && after.open <= before.open && after.heap <= before.heap+slack
	}) {
		var stacks strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		t.Errorf("before %+v, after %+v\n%s", before, after, stacks.String())
	}
	t.Logf("before %+v, after %+v, %d greetings", before, after, greetings.Load())
}

// meet makes the calls, three at a time, and holds that each failure has a name.
func meet(t *testing.T, c *remote.Client, order []int, kinds int) {
	t.Helper()
	todo := make(chan int)
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for i := range todo {
				_, err := c.Changes(t.Context(), remote.Query{Resource: "users", Cursor: strconv.Itoa(i % kinds)})
				var e *remote.Error
				if !errors.As(err, &e) {
					t.Errorf("fault %d: got %v", i%kinds, err)
				}
			}
		})
	}
	for _, i := range order {
		todo <- i
	}
	close(todo)
	workers.Wait()
}
