package remotetest

import (
	"maps"
	"slices"
	"time"
)

// RevokeTokens ends every access token; ensure gives new ones.
func (s *Server) RevokeTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	clear(s.grants)
}

// RotateKey makes key the only service key; the old one is dead at once
// (contract §3.3). Tokens that it brought stay valid.
func (s *Server) RotateKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openKey = key
}

// Deactivate ends the personal token of a mobile number, here at once and not
// within 60 seconds (contract §3.2), and refuses to give it again.
func (s *Server) Deactivate(mobile string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deactivated[mobile] = true
}

// ExpireRounds ends the rounds in progress: their cursors answer
// SYNC_CURSOR_EXPIRED, sync tokens stay valid. No names: all resources.
func (s *Server) ExpireRounds(resources ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireRounds(resources)
}

// ExpireTokens ends the sync tokens given so far and the rounds in progress.
// No names: all resources.
func (s *Server) ExpireTokens(resources ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireRounds(resources)
	for name, r := range s.resources {
		if len(resources) == 0 || slices.Contains(resources, name) {
			r.epoch++
		}
	}
}

func (s *Server) expireRounds(resources []string) {
	gone := func(id string) bool {
		r := s.rounds[id]
		return len(resources) == 0 || slices.Contains(resources, r.resource)
	}
	s.roundOrder = slices.DeleteFunc(s.roundOrder, func(id string) bool {
		if !gone(id) {
			return false
		}
		delete(s.rounds, id)
		return true
	})
}

// DropSessions forgets all sessions, as a restart of the server would.
func (s *Server) DropSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.sessions {
		s.dropped[id] = true
	}
	clear(s.sessions)
}

// SetContext changes what integration.context.get answers.
func (s *Server) SetContext(c Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.context = c
}

// HideTool takes tools, and only these, out of every token's scope: they are
// not listed, and calling one is PERMISSION_DENIED (contract §4.1).
func (s *Server) HideTool(tools ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.hidden)
	for _, t := range tools {
		s.hidden[t] = true
	}
}

// Latency delays every answer.
func (s *Server) Latency(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency = d
}

// PageDelay delays every page, on top of Latency.
func (s *Server) PageDelay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pageDelay = d
}

// SetQuota lets so many calls of the two classes through before RATE_LIMITED
// (contract §5); below 0 is no limit. Calling it again fills up.
func (s *Server) SetQuota(changes, query int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quota[classSync], s.quota[classQuery] = changes, query
}

// OnCall runs f on every request before it is answered, in its goroutine: f
// may change the data or hold the request up.
func (s *Server) OnCall(f func(Call)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = append(s.hooks, f)
}

// Calls lists the latest requests, oldest first.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Stats counts since the start.
type Stats struct {
	Calls      map[string]int // requests by tool, or by kind where there is none
	Pages      map[string]int // pages made by resource, delivered or not
	Ensures    int
	Handshakes int // initialize requests that were answered
}

// Stats reads the counters.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.stats
	c.Calls, c.Pages = maps.Clone(c.Calls), maps.Clone(c.Pages)
	return c
}
