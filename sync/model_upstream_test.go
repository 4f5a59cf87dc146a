package sync_test

import (
	"fmt"
	"slices"
	"strings"
)

// stock is what the history knows of one resource upstream.
type stock struct {
	live, dead []string           // ids, dead ones with a tombstone
	gone       map[string]bool    // purged: no page speaks of them any more
	died       map[string]bool    // deleted at some time
	odd        map[string]oddment // records that are not mirrored as they come
	purged     bool               // an operator has removed tombstones from the mirror
}

func newStock() *stock {
	return &stock{gone: map[string]bool{}, died: map[string]bool{}, odd: map[string]oddment{}}
}

// oddment is a dirty record.
type oddment struct {
	raw  string // %s is the id
	want string // the live row; "" when there must be none
	// refused records are kept in quarantine instead.
	refused bool
}

func oddments() []oddment {
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	return []oddment{
		{`{"id":"%s","x":"a\u0000b"}`, `{"id":"%s","x":"a` + "\uFFFD" + `b"}`, false},
		{`{"id":"%s","x":"\ud800","\udc00":1}`, `{"id":"%s","x":"` + "\uFFFD" + `","` + "\uFFFD" + `":1}`, false},
		{`{"id":"%s","x":"\\u0000 stays","e":"👩‍👩‍👧🇨🇳𠮷"}`, `{"id":"%s","x":"\\u0000 stays","e":"👩‍👩‍👧🇨🇳𠮷"}`, false},
		{`{"id":"%s","modify_time":"0000-00-00"}`, `{"id":"%s","modify_time":"0000-00-00"}`, false},
		{`{"id":"%s","modify_time":1757900000000,"version":{"no":1}}`, `{"id":"%s","modify_time":1757900000000,"version":{"no":1}}`, false},
		{`{"id":"%s","a":1,"a":2}`, `{"id":"%s","a":2}`, false},
		{`{ "id" : "%s", "n" : 1.10 , "big":12345678901234567890.120 }`, `{"id":"%s","n":1.10,"big":12345678901234567890.120}`, false},
		{`{"id":"%s","deleted_at":"0000-00-00"}`, "", false},
		{`{"id":"%s","deletedAt":"2026-09-01 08:00:00"}`, "", false},
		{`{"id":"%s","x":1e5000}`, "", true},
		{`{"id":"%s","x":` + deep + `}`, "", true},
		{`{"id":{"v":"%s"}}`, "", true},
		{`{"id":null,"name":"%s"}`, "", true},
		{`{"id":"a\u0000%s"}`, "", true},
		{`{"id":"\udc00%s"}`, "", true},
		{`{"name":"%s has no id"}`, "", true},
		{`{"id":"` + strings.Repeat("x", 2001) + `%s"}`, "", true},
		{`{"id":"","name":"%s"}`, "", true},
	}
}

// change does something to a resource upstream.
func (h *history) change(resource string) {
	s := h.stocks[resource]
	switch n := h.rng.IntN(100); {
	case n < 35 || len(s.live) == 0:
		h.put(resource, s, 1+h.rng.IntN(15))
	case n < 60:
		h.editMany(resource, s)
	case n < 73:
		h.remove(resource, s, 1+h.rng.IntN(3))
	case n < 83:
		h.revive(resource, s)
	case n < 86:
		h.forget(resource, s, 1+h.rng.IntN(3))
	case n < 88 && len(s.live) > 20:
		h.forget(resource, s, len(s.live)*2/3)
	case n < 90:
		h.put(resource, s, 90)
	default:
		h.putOdd(resource, s)
	}
}

func (h *history) put(resource string, s *stock, n int) {
	for range n {
		id := h.id()
		h.xiaoqu.Put(resource, id, h.fields())
		s.live = append(s.live, id)
	}
	h.tell("put %d %s", n, resource)
}

// id is one of the forms that ids have.
func (h *history) id() string {
	h.next++
	return fmt.Sprintf(h.pick("%d", "1826000000%09d", "18446744073%09d", "客户-%d", "00%d", "a b/%d'"), h.next)
}

// fields are such as PostgreSQL gives back as they came.
func (h *history) fields() string {
	h.next++
	size := 10
	if h.odds(0.03) {
		size = 3000
	}
	return fmt.Sprintf(`{"name":"%s %d","amount":%d.%02d,"note":"%s","nested":{"数":[1,2.50,null]}}`,
		h.pick("王伟", "李秀英", "O'Neil", `\"`), h.next, h.rng.IntN(1000), h.rng.IntN(100), strings.Repeat("字", size))
}

// editMany gives several records one modify_time, as a batch job does.
func (h *history) editMany(resource string, s *stock) {
	n := 1 + h.rng.IntN(min(len(s.live), h.rng.IntN(40)+1))
	frozen := h.odds(0.3)
	if frozen {
		h.xiaoqu.FreezeClock(true)
		defer h.xiaoqu.FreezeClock(false)
	}
	for range n {
		h.xiaoqu.Edit(resource, s.live[h.rng.IntN(len(s.live))], h.fields())
	}
	h.tell("edit %d %s, at one time: %v", n, resource, frozen)
}

// take removes a random id from a list.
func (h *history) take(from *[]string) string {
	i := h.rng.IntN(len(*from))
	id := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return id
}

func (h *history) remove(resource string, s *stock, n int) {
	for range min(n, len(s.live)) {
		id := h.take(&s.live)
		h.xiaoqu.Delete(resource, id)
		s.dead, s.died[id] = append(s.dead, id), true
		h.tell("delete %s %s", resource, id)
	}
}

// revive brings records back. Some are deleted again before anybody can have
// seen them: their tombstones have another time then, and sometimes it is a
// full pass that brings them.
func (h *history) revive(resource string, s *stock) {
	for range min(1+h.rng.IntN(4), len(s.dead)) {
		id := h.take(&s.dead)
		h.xiaoqu.Revive(resource, id)
		again := h.odds(0.5)
		if again {
			h.xiaoqu.Delete(resource, id)
			s.dead = append(s.dead, id)
		} else {
			s.live = append(s.live, id)
		}
		h.tell("revive %s %s, and delete it again: %v", resource, id, again)
	}
	if h.odds(0.3) {
		h.xiaoqu.ExpireTokens(resource)
		h.tell("tokens of %s expire", resource)
	}
}

// forget makes records vanish without a tombstone; some come back later as new.
func (h *history) forget(resource string, s *stock, n int) {
	for range min(n, len(s.live)) {
		id := h.take(&s.live)
		h.xiaoqu.Purge(resource, id)
		s.gone[id] = true
		if h.odds(0.1) {
			h.xiaoqu.Put(resource, id, h.fields())
			s.live = append(s.live, id)
		}
	}
	h.tell("forget %d %s", n, resource)
}

func (h *history) putOdd(resource string, s *stock) {
	h.next++
	id := fmt.Sprint("odd-", h.next)
	kinds := oddments()
	o := kinds[h.rng.IntN(len(kinds))]
	o.raw = fmt.Sprintf(o.raw, id)
	if o.want != "" {
		o.want = fmt.Sprintf(o.want, id)
	}
	h.xiaoqu.PutRaw(resource, id, o.raw)
	s.odd[id] = o
	h.tell("put %s %.80s", resource, o.raw)
}
