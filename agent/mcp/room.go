package mcp

import (
	"maps"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// proven are the sessions in which a call with a right context came.
type proven struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (p *proven) add(session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ids == nil {
		p.ids = map[string]bool{}
	}
	p.ids[session] = true
}

// order puts those that are not proven first, and forgets those that have ended.
func (p *proven) order(open []*sdk.ServerSession) []*sdk.ServerSession {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := func(s *sdk.ServerSession) int {
		if p.ids[s.ID()] {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(open, func(a, b *sdk.ServerSession) int { return last(a) - last(b) })
	there := map[string]bool{}
	for _, s := range open {
		there[s.ID()] = true
	}
	maps.DeleteFunc(p.ids, func(id string, _ bool) bool { return !there[id] })
	return open
}

// room makes room for a session. Taking the oldest's place beats turning the platform
// away: who lost a session shakes hands again, and nobody can use all of them up. A
// handshake needs no signature, so that strangers' sessions go first.
func (d *Door) room() {
	sessions := d.proven.order(slices.Collect(d.server.Sessions()))
	for len(sessions) >= d.options.MaxSessions {
		_ = sessions[0].Close()
		sessions = sessions[1:]
	}
}
