package remotetest

import (
	"slices"
	"sync"
)

// Fault is one entry of the plan of things that go wrong.
type Fault struct {
	Match func(Call) bool // nil: every tools/call
	Times int             // 0: once; below 0: always
	Do    Effect
}

// Effect is what a fault does to an answer: replace it, change the page within
// it, or spoil the way it is delivered. The zero Effect does nothing. Effects
// that replace leave the server as if the request had not come.
type Effect struct {
	replace func(*exchange)
	mutate  func(*Page)
	deliver func(*exchange, Reply)
}

// OnKind matches the nth request of a kind (see Call.Kind); 0 matches all.
func OnKind(kind string, nth int) func(Call) bool {
	return func(c Call) bool { return c.Kind == kind && (nth == 0 || c.Nth == nth) }
}

// OnTool matches the nth call of a tool; 0 matches all.
func OnTool(tool string, nth int) func(Call) bool {
	return func(c Call) bool { return c.Tool == tool && (nth == 0 || c.Nth == nth) }
}

// OnPage matches a request for a page, by its number in the round; 0 matches
// all pages of the resource.
func OnPage(resource string, page int) func(Call) bool {
	return func(c Call) bool { return c.Resource == resource && (page == 0 || c.Page == page) }
}

// plan has its own lock, so that a fault's functions may use the server.
type plan struct {
	mu     sync.Mutex
	faults []*planned
}

type planned struct {
	Fault
	fired int
}

func (f *planned) spent() bool { return f.Times >= 0 && f.fired >= max(f.Times, 1) }

// Inject adds a fault behind those that are planned already: of several that
// match a request the first acts. The result tells how often it has acted.
func (s *Server) Inject(f Fault) (fired func() int) {
	p := &s.plan
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.Match == nil {
		f.Match = func(c Call) bool { return c.Kind == "tools/call" }
	}
	entry := &planned{Fault: f}
	p.faults = append(p.faults, entry)
	return func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return entry.fired
	}
}

// ClearFaults forgets the plan.
func (s *Server) ClearFaults() {
	s.plan.mu.Lock()
	defer s.plan.mu.Unlock()
	s.plan.faults = nil
}

func (p *plan) pick(c Call) Effect {
	p.mu.Lock()
	candidates := slices.Clone(p.faults)
	p.mu.Unlock()
	for _, f := range candidates {
		// Match runs without the lock; whether the fault is spent is asked
		// again with it, so two requests cannot share its last time.
		if f.Match(c) && p.take(f) {
			return f.Do
		}
	}
	return Effect{}
}

func (p *plan) take(f *planned) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.spent() {
		return false
	}
	f.fired++
	return true
}
