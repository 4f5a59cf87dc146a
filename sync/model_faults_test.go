package sync_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// variety is what a history knows of the variants that were drawn for it.
type variety struct {
	omitsTombstones bool // a full pass brings live records only
	eventIDs        bool // a cut stream is then asked for again with GET
	asksFirst       bool // the remote sends requests of its own before its answers
	unheard         bool // something may have kept the remote from hearing notifications/initialized
	exactTimes      bool // deleted_at names its milliseconds and its zone
}

// vary draws a reading of the contract.
func (h *history) vary() (remotetest.Variants, variety) {
	some := func() bool { return h.odds(0.15) }
	v := remotetest.Variants{
		ListName:   h.pick("", "items", "{resource}"),
		JSONAnswer: some(), V1Always: some(), AbsentNulls: some(), NoticeInEnvelope: some(), ContentJSON: some(), OmitTombstones: some(),
		StringIDs: some(), StringVersions: some(), BareTombstones: some(), LostSession400: some(),
		RequestID: remotetest.RequestIDPlace(h.pick("envelope", "data", "_meta", "X-Request-Id", "absent")),
		SSE: remotetest.SSEForm{
			CRLF: some(), BOM: some(), NoSpace: some(), NoEventName: some(), NoFinalBlank: some(), IDs: h.odds(0.05), KeepAlive: some(),
			SeveralDataLines: some(), NotificationFirst: some(), RequestFirst: some(),
		},
		LiveDeletedAt: remotetest.DeletedAt(h.pick("null", "empty", "absent")),
	}
	places := remotetest.Places()
	if some() {
		v.TimeLayout = "2006-01-02 15:04:05"
	}
	if some() {
		v.ToolsPerPage = 1 + h.rng.IntN(3)
	}
	// HTTPBare hides the code: an expired position could then not be told.
	v.Errors, v.AuthErrors = places[h.rng.IntN(len(places)-1)], places[h.rng.IntN(len(places)-1)]
	h.tell("variants %+v", v)
	return v, variety{omitsTombstones: v.OmitTombstones, eventIDs: v.SSE.IDs, asksFirst: v.SSE.RequestFirst, exactTimes: v.TimeLayout == ""}
}

// faults arms up to three faults for the requests of one run, and things that
// happen upstream while it pages.
func (h *history) faults(resources []string) (clear func()) {
	if h.odds(0.5) {
		for range 1 + h.rng.IntN(3) {
			r := resources[h.rng.IntN(len(resources))]
			match, where := h.moment(r)
			what, do := h.effect()
			if h.odds(0.1) { // it takes two pages of a round to show
				match, where, what, do = remotetest.OnPage(r, 0), r, "the page before again", remotetest.Mutate(againOnTheNextPage())
			}
			times := 1 + h.rng.IntN(4)
			h.xiaoqu.Inject(remotetest.Fault{Match: match, Times: times, Do: do})
			h.tell("fault: %s, %d times: %s", where, times, what)
		}
	}
	if h.odds(0.3) {
		h.during(resources)
	}
	if h.odds(0.4) {
		h.maxBytes = 1 << 20
		if h.odds(0.1) {
			h.maxBytes = 4000 // room for some pages only
		}
		h.connectFor(impatient)
	}
	return func() {
		h.xiaoqu.ClearFaults()
		if b := h.events.armed.Swap(nil); b != nil {
			b.callOff()
		}
	}
}

// moment draws a request that a fault waits for.
func (h *history) moment(r string) (match func(remotetest.Call) bool, name string) {
	switch h.rng.IntN(12) {
	case 0:
		return remotetest.OnKind("initialize", 0), "initialize"
	case 1:
		return remotetest.OnKind("tools/list", 0), "tools/list"
	case 2:
		return remotetest.OnTool("integration.context.get", 0), "context"
	case 3:
		h.plain.unheard = true
		return remotetest.OnKind("notifications/initialized", 0), "initialized"
	}
	page := h.rng.IntN(6)
	return remotetest.OnPage(r, page), fmt.Sprintf("%s page %d", r, page)
}

// effect draws what goes wrong.
func (h *history) effect() (name string, e remotetest.Effect) {
	switch n := h.rng.IntN(100); {
	case n < 35:
		return h.failure()
	case n < 55 && !h.plain.eventIDs:
		at, how := remotetest.Point(h.rng.IntN(5)), remotetest.Ending(h.rng.IntN(3))
		return fmt.Sprintf("cut %d %d", at, how), remotetest.Cut(at, how)
	case n < 70:
		faults := remotetest.PageFaults()
		f := faults[h.rng.IntN(len(faults))]
		return string(f), remotetest.Mangle(f)
	case n < 80:
		return "records twice", remotetest.Mutate(h.twice())
	case n < 84:
		return "slow", remotetest.Slow(100+h.rng.IntN(1000), time.Millisecond)
	case n < 86:
		return "hang", remotetest.Hang(h.odds(0.5))
	case n < 88:
		c := 1 + h.rng.IntN(4)
		return fmt.Sprint("cycle ", c), remotetest.Cycle(c)
	case n < 89:
		return "flood", remotetest.Flood()
	case n < 91:
		return "redirect", remotetest.Redirect("http://127.0.0.1:1/mcp")
	case n < 94:
		status := []int{502, 503, 200, 404, 413}[h.rng.IntN(5)]
		return fmt.Sprint("HTML ", status), remotetest.HTML(status)
	default:
		return "odd answer", h.oddAnswer()
	}
}

func (h *history) failure() (string, remotetest.Effect) {
	places := remotetest.Places()
	f := remotetest.Failure{
		Place: places[h.rng.IntN(len(places))],
		Code: h.pick(remotetest.RateLimited, remotetest.RateLimited, remotetest.Unauthenticated, remotetest.SyncCursorExpired,
			remotetest.PermissionDenied, remotetest.InvalidArgument, "INTERNAL_ERROR"),
		RetryAfter: h.pick("", "", "1", "-5", "Wed, 21 Oct 2015 07:28:00 GMT", "soon", "100000"),
	}
	return fmt.Sprintf("%s in %s", f.Code, f.Place), remotetest.Fail(f)
}

func (h *history) oddAnswer() remotetest.Effect {
	switch h.rng.IntN(5) {
	case 0:
		return remotetest.Answer(remotetest.Reply{Status: 202})
	case 1:
		return remotetest.Answer(remotetest.Reply{Status: 200, Header: map[string]string{"Content-Type": "application/json"}, Body: []byte(`{"jsonrpc":`)})
	case 2:
		return remotetest.SSE("")
	case 3:
		return remotetest.SSE("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":999999,\"result\":{}}\n\n")
	default:
		return remotetest.SSE("data: not JSON\n\n")
	}
}

// twice repeats records within the page: an older version of each goes before,
// or the same bytes come again.
func (h *history) twice() func(*remotetest.Page) {
	stale := h.odds(0.5)
	return func(p *remotetest.Page) {
		var more []json.RawMessage
		for _, raw := range p.Records {
			var r struct {
				ID json.RawMessage `json:"id"`
			}
			switch {
			case json.Unmarshal(raw, &r) != nil || bytes.Contains(raw, []byte("odd-")): // of two odd ones the first may be the good one
			case stale:
				more = append(more, fmt.Appendf(nil, `{"id":%s,"name":"stale","modify_time":"2001-01-01T00:00:00Z"}`, r.ID))
			default:
				more = append(more, raw)
			}
		}
		p.Records = append(more, p.Records...)
	}
}

// againOnTheNextPage repeats the page before, for a fault that fires on several
// pages of a round.
func againOnTheNextPage() func(*remotetest.Page) {
	last := make(chan remotetest.Page, 1)
	last <- remotetest.Page{}
	return func(p *remotetest.Page) {
		before := <-last
		last <- *p
		if before.SnapshotID == p.SnapshotID && before.Number < p.Number {
			p.Records = slices.Concat(before.Records, p.Records)
		}
	}
}

// during lets something happen upstream at the nth request of a run.
func (h *history) during(resources []string) {
	r := resources[h.rng.IntN(len(resources))]
	var events []func()
	what := h.pick("edits", "tokens expire", "rounds expire", "tokens revoked", "key rotated", "sessions dropped")
	switch what {
	case "edits":
		for range 1 + h.rng.IntN(5) {
			if live := h.stocks[r].live; len(live) > 0 {
				id, fields := live[h.rng.IntN(len(live))], h.fields()
				events = append(events, func() { h.xiaoqu.Edit(r, id, fields) })
			}
		}
	case "tokens expire":
		events = append(events, func() { h.xiaoqu.ExpireTokens(r) })
	case "rounds expire":
		events = append(events, func() { h.xiaoqu.ExpireRounds(r) })
	case "tokens revoked":
		h.plain.unheard = true
		events = append(events, h.xiaoqu.RevokeTokens)
	case "key rotated":
		h.plain.unheard = true
		h.next++
		key := fmt.Sprintf("xqok-model-%06d", h.next)
		events = append(events, func() { h.xiaoqu.RotateKey(key); h.xiaoqu.RevokeTokens() })
	case "sessions dropped":
		events = append(events, h.xiaoqu.DropSessions)
	}
	nth := 1 + h.rng.Int64N(12)
	h.tell("%s of %s at request %d", what, r, nth)
	h.events.armed.Store(newBlow(nth, func(net.Conn) {
		for _, e := range events {
			e()
		}
	}))
}

// upset changes how the remote presents itself for one run, and back.
func (h *history) upset() {
	r := h.resource()
	what := h.pick("tool hidden", "personal token", "another tenant", "no quota", "everything expires")
	h.tell("%s (%s)", what, r)
	switch what {
	case "tool hidden":
		h.xiaoqu.HideTool(r + ".changes.list")
	case "personal token":
		h.xiaoqu.SetContext(remotetest.Context{PrincipalType: "user_delegated"})
	case "another tenant":
		if len(h.rows("select from xiaoqu_sync.state where tenant <> ''")) == 0 {
			return // a mirror that knows no tenant would take it for its own
		}
		h.xiaoqu.SetContext(remotetest.Context{Tenant: json.RawMessage(`"t-another"`)})
	case "no quota":
		h.xiaoqu.SetQuota(h.rng.IntN(8), h.rng.IntN(2))
	case "everything expires":
		h.xiaoqu.ExpireTokens()
	}
	h.runOnce()
	h.calm()
}

// calm takes back what upset the remote.
func (h *history) calm() {
	h.xiaoqu.HideTool()
	h.xiaoqu.SetContext(remotetest.Context{})
	h.xiaoqu.SetQuota(-1, -1)
}
