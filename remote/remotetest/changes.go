package remotetest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

const maxRounds = 1024 // open rounds; older ones expire, as they would upstream

// round is one pass over one resource: a snapshot that nothing changes
// (contract §6).
type round struct {
	id, resource string
	from         string // the syncToken it began with; empty: full
	rows         []*row // in order of (modify_time, id)
	cutoff       int64
}

// cursor is the position behind the last row of a page.
type cursor struct {
	Round string `json:"r"`
	Mod   int64  `json:"m"`
	ID    string `json:"i"`
	Page  int    `json:"p"`           // number of the page that gave it
	Salt  int    `json:"s,omitempty"` // makes equal positions look fresh
}

// syncToken remembers the cut-off of a finished round.
type syncToken struct {
	Resource string `json:"t"`
	Cutoff   int64  `json:"c"`
	Epoch    int    `json:"e"`
}

// turn serves one page. A problem means SYNC_CURSOR_EXPIRED.
func (s *Server) turn(name string, a changesArgs, personal bool) (*Page, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit, notice := s.cut(a.limit)
	var (
		r    *round
		at   cursor
		from int
	)
	if a.cursor == nil {
		var problem string
		if r, problem = s.begin(name, a.syncToken, personal); problem != "" {
			return nil, problem
		}
		at.Round = r.id
	} else {
		var ok bool
		if at, ok = s.openCursor(*a.cursor); !ok {
			return nil, "cursor is not one of ours"
		}
		r = s.rounds[at.Round]
		if r == nil || r.resource != name || r.from != deref(a.syncToken) {
			return nil, "cursor does not belong to a live round of this syncToken"
		}
		from = r.after(at)
	}
	to := min(from+limit, len(r.rows))
	p := &Page{
		SnapshotID: r.id, DataCutoffAt: s.variants.timeText(r.cutoff), HasMore: to < len(r.rows), Notice: notice,
		Number: at.Page + 1, RequestCursor: a.cursor, resource: name, Records: make([]json.RawMessage, 0, to-from),
	}
	for _, w := range r.rows[from:to] {
		p.Records = append(p.Records, w.raw)
	}
	p.fresh = func(salt int) string { return s.sealJSON("c", cursor{r.id, at.Mod, at.ID, at.Page + 1, salt}) }
	p.token = s.sealJSON("t", syncToken{name, r.cutoff, s.resources[name].epoch})
	if p.HasMore {
		last := r.rows[to-1]
		next := s.sealJSON("c", cursor{r.id, last.mod, last.id, at.Page + 1, 0})
		p.NextCursor = &next
	} else {
		p.NextSyncToken = &p.token
	}
	s.stats.Pages[name]++
	return p, ""
}

// cut applies the contract's limit and says so when it had to (contract §4.3).
func (s *Server) cut(limit int) (int, string) {
	switch {
	case limit == 0:
		return s.maxLimit, ""
	case limit > s.maxLimit:
		return s.maxLimit, fmt.Sprintf("limit %d 超出上限，已截断为 %d", limit, s.maxLimit)
	}
	return limit, ""
}

// begin takes the snapshot of a new round.
func (s *Server) begin(name string, token *string, personal bool) (*round, string) {
	res := s.resources[name]
	from, full := int64(0), true
	if token != nil {
		var t syncToken
		if !s.openJSON("t", *token, &t) || t.Resource != name || t.Epoch != res.epoch {
			return nil, "syncToken expired or tampered with"
		}
		from, full = t.Cutoff, false
	}
	r := &round{
		id: fmt.Sprintf("snap-%s-%06d", name, res.nextRound()), resource: name, from: deref(token), cutoff: s.clock.cutoff(),
	}
	rows := res.sorted()
	if !full {
		i, _ := slices.BinarySearchFunc(rows, from+1, func(w *row, mod int64) int { return int(w.mod - mod) })
		rows = rows[i:]
	}
	if personal || full && s.variants.OmitTombstones {
		rows = slices.DeleteFunc(slices.Clone(rows), func(w *row) bool {
			return full && s.variants.OmitTombstones && w.deleted || personal && !w.visibleToPerson()
		})
	}
	r.rows = rows
	s.rounds[r.id] = r
	s.roundOrder = append(s.roundOrder, r.id)
	if len(s.roundOrder) > maxRounds {
		delete(s.rounds, s.roundOrder[0])
		s.roundOrder = s.roundOrder[1:]
	}
	return r, ""
}

// after is the index of the first row behind a cursor. A cursor with no id
// stands before the first row.
func (r *round) after(c cursor) int {
	if c.ID == "" {
		return 0
	}
	i, found := slices.BinarySearchFunc(r.rows, &row{mod: c.Mod, id: c.ID}, compareRows)
	if found {
		i++
	}
	return i
}

func (s *Server) openCursor(text string) (cursor, bool) {
	var c cursor
	ok := s.openJSON("c", text, &c)
	return c, ok
}

// sealJSON makes an opaque text that only this server can have made. The kind
// is signed too, so a cursor is no sync token.
func (s *Server) sealJSON(kind string, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("remotetest: " + err.Error()) // plain structs always marshal
	}
	b = append([]byte(kind), b...)
	return base64.RawURLEncoding.EncodeToString(b) + "." + s.seal(b)
}

func (s *Server) openJSON(kind, text string, v any) bool {
	body, mac, ok := strings.Cut(text, ".")
	if !ok {
		return false
	}
	b, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || !hmac.Equal([]byte(mac), []byte(s.seal(b))) {
		return false
	}
	b, ok = bytes.CutPrefix(b, []byte(kind))
	return ok && json.Unmarshal(b, v) == nil
}

func (s *Server) seal(b []byte) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write(b)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

func sealKey(seed uint64) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "remotetest %d", seed))
	return sum[:]
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
