package remotetest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

func TestFullPassBringsEveryRecordByteForByte(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{Strict: true})
	s.Seed(7, 450, 33)
	c := connect(t, s)
	for resource, pages := range map[string]int{"users": 1, "properties": 3, "contracts": 1} {
		got, _, n := c.drain(resource, nil, 200)
		if n != pages {
			t.Errorf("%s: %d pages, want %d", resource, n, pages)
		}
		if d := cmp.Diff(texts(s.Live(resource)), byID(t, got)); d != "" {
			t.Errorf("%s: mirror is not upstream:\n%s", resource, d)
		}
	}
}

func TestIncrementBringsOnlyChangesAndTombstones(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{Strict: true})
	s.Seed(0, 0, 20)
	c := connect(t, s)
	_, token, _ := c.drain("contracts", nil, 200)
	ids := s.IDs("contracts")
	s.Edit("contracts", ids[3], `{"amount":1.10,"new_field":{"x":[1]}}`)
	s.Delete("contracts", ids[5])
	s.Purge("contracts", ids[7])
	s.Put("contracts", "9999999999999999999", `{"amount":12345678901234567890.123456789}`)

	got, next, _ := c.drain("contracts", &token, 200)
	m := byID(t, got)
	want := []string{ids[3], ids[5], "9999999999999999999"}
	if have := slices.Sorted(maps.Keys(m)); !slices.Equal(have, slices.Sorted(slices.Values(want))) {
		t.Fatalf("increment brought %v, want %v", have, want)
	}
	if !strings.Contains(m[ids[3]], `"amount":1.10`) || !strings.Contains(m[ids[3]], `"contract_no"`) {
		t.Errorf("edit did not keep the digits or the other fields: %s", m[ids[3]])
	}
	if strings.Contains(m[ids[5]], `"deleted_at":null`) || !strings.Contains(m[ids[5]], `"deleted_at":"2026-`) {
		t.Errorf("no tombstone: %s", m[ids[5]])
	}
	if !strings.Contains(m["9999999999999999999"], `12345678901234567890.123456789`) {
		t.Errorf("digits lost: %s", m["9999999999999999999"])
	}
	if again, _, _ := c.drain("contracts", &next, 200); len(again) != 0 {
		t.Errorf("nothing changed, and %d rows came", len(again))
	}
	s.Revive("contracts", ids[5])
	back, _, _ := c.drain("contracts", &next, 200)
	if d := cmp.Diff(string(s.Live("contracts")[ids[5]]), string(back[0])); len(back) != 1 || d != "" {
		t.Errorf("revival: %s", d)
	}
}

func TestSnapshotStandsStillWhileDataChanges(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{Strict: true})
	s.Seed(0, 0, 50)
	c := connect(t, s)
	before := texts(s.Live("contracts"))
	first, a := c.changes("contracts", nil, nil, 10)
	ids := s.IDs("contracts")
	s.Edit("contracts", ids[0], `{"amount":1}`)
	s.Edit("contracts", ids[49], `{"amount":2}`)
	s.Delete("contracts", ids[25])
	s.Purge("contracts", ids[30])
	s.Put("contracts", "777", `{"amount":3}`)

	got, token, _ := c.rest("contracts", nil, 10, first, a)
	if d := cmp.Diff(before, byID(t, got)); d != "" {
		t.Fatalf("the round saw changes made after its first page:\n%s", d)
	}
	inc, _, _ := c.drain("contracts", &token, 3)
	have := slices.Sorted(maps.Keys(byID(t, inc)))
	if want := slices.Sorted(slices.Values([]string{ids[0], ids[49], ids[25], "777"})); !slices.Equal(have, want) {
		t.Errorf("changes made in mid-round: next round brought %v, want %v", have, want)
	}
}

func TestCursorLosesNothingAmongEqualModifyTimes(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{Strict: true})
	s.FreezeClock(true)
	s.Seed(0, 0, 1000)
	c := connect(t, s)
	for _, limit := range []int{1, 7, 199, 200} {
		got, token, _ := c.drain("contracts", nil, limit)
		if m := byID(t, got); len(m) != 1000 {
			t.Fatalf("limit %d: %d of 1000 rows", limit, len(m))
		}
		s.Put("contracts", fmt.Sprint(limit), `{}`) // the clock is still frozen
		if inc, _, _ := c.drain("contracts", &token, limit); len(inc) != 1 {
			t.Fatalf("limit %d: a change after the cut-off shares its time: %d rows", limit, len(inc))
		}
		s.Purge("contracts", fmt.Sprint(limit))
	}
}

func TestLimitMayChangeInMidRound(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	s.Seed(0, 0, 40)
	c := connect(t, s)
	p, a := c.changes("contracts", nil, nil, 7)
	got, _, n := c.rest("contracts", nil, 11, p, a)
	if len(byID(t, got)) != 40 || n != 4 {
		t.Errorf("%d rows in %d pages", len(got), n)
	}
}

func TestSamePageIsSameAnswer(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	s.Seed(0, 0, 30)
	c := connect(t, s)
	first, _ := c.changes("contracts", nil, nil, 20)
	_, one := c.changes("contracts", nil, first.NextCursor, 20)
	s.Seed(0, 0, 30)
	_, two := c.changes("contracts", nil, first.NextCursor, 20)
	if d := cmp.Diff(string(one.envelope.Data), string(two.envelope.Data)); d != "" {
		t.Errorf("last page asked for twice:\n%s", d)
	}
	if one.envelope.RequestID == two.envelope.RequestID {
		t.Error("request_id repeats")
	}
}

func TestLimitIsCutAndSaysSo(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	s.Seed(0, 0, 450)
	c := connect(t, s)
	for _, limit := range []int{0, 200, 1000} {
		p, a := c.changes("contracts", nil, nil, limit)
		if len(p.Records) != 200 || (p.Notice != "") != (limit > 200) {
			t.Errorf("limit %d: %d records, notice %q", limit, len(p.Records), p.Notice)
		}
		s.Vary(func(v *remotetest.Variants) { v.NoticeInEnvelope = true })
		if p, a = c.changes("contracts", nil, nil, limit); p.Notice != "" || (a.envelope.Notice != "") != (limit > 200) {
			t.Errorf("limit %d: notice is not in the envelope", limit)
		}
		s.Vary(func(v *remotetest.Variants) { v.NoticeInEnvelope = false })
	}
}

func TestWhatExpires(t *testing.T) {
	type state struct{ token, cursor, tokenCursor, contractCursor string }
	tamper := func(s string) *string {
		b := []byte(s)
		b[4] ^= 1
		s = string(b)
		return &s
	}
	for name, tc := range map[string]struct {
		before        func(*remotetest.Server)
		token, cursor func(state) *string
		live          bool
	}{
		"token is good":                  {token: func(s state) *string { return &s.token }, live: true},
		"cursor is good":                 {cursor: func(s state) *string { return &s.cursor }, live: true},
		"cursor of a round from a token": {token: func(s state) *string { return &s.token }, cursor: func(s state) *string { return &s.tokenCursor }, live: true},
		"token tampered with":            {token: func(s state) *string { return tamper(s.token) }},
		"cursor tampered with":           {cursor: func(s state) *string { return tamper(s.cursor) }},
		"cursor of another token":        {token: func(s state) *string { return &s.token }, cursor: func(s state) *string { return &s.cursor }},
		"cursor without its token":       {cursor: func(s state) *string { return &s.tokenCursor }},
		"cursor of another resource":     {cursor: func(s state) *string { return &s.contractCursor }},
		"cursor as token":                {token: func(s state) *string { return &s.cursor }},
		"token as cursor":                {cursor: func(s state) *string { return &s.token }},
		"empty token":                    {token: func(state) *string { return new(string) }},
		"rounds expired, cursor":         {before: func(s *remotetest.Server) { s.ExpireRounds() }, cursor: func(s state) *string { return &s.cursor }},
		"rounds expired, token":          {before: func(s *remotetest.Server) { s.ExpireRounds() }, token: func(s state) *string { return &s.token }, live: true},
		"tokens expired, token":          {before: func(s *remotetest.Server) { s.ExpireTokens("users") }, token: func(s state) *string { return &s.token }},
		"tokens expired, cursor":         {before: func(s *remotetest.Server) { s.ExpireTokens("users") }, cursor: func(s state) *string { return &s.cursor }},
		"another resource expired":       {before: func(s *remotetest.Server) { s.ExpireTokens("contracts") }, token: func(s state) *string { return &s.token }, live: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := remotetest.Start(t, remotetest.Options{})
			s.Seed(10, 0, 10)
			c := connect(t, s)
			var st state
			_, st.token, _ = c.drain("users", nil, 0)
			p, _ := c.changes("users", nil, nil, 4)
			st.cursor = *p.NextCursor
			s.Seed(10, 0, 0)
			p, _ = c.changes("users", &st.token, nil, 4)
			st.tokenCursor = *p.NextCursor
			p, _ = c.changes("contracts", nil, nil, 4)
			st.contractCursor = *p.NextCursor
			if tc.before != nil {
				tc.before(s)
			}
			var token, cursor *string
			if tc.token != nil {
				token = tc.token(st)
			}
			if tc.cursor != nil {
				cursor = tc.cursor(st)
			}
			_, a := c.changes("users", token, cursor, 4)
			want := ""
			if !tc.live {
				want = remotetest.SyncCursorExpired
			}
			if a.envelope.Error.Code != want || a.rpc.Result.IsError == tc.live {
				t.Errorf("got %q, want %q: %s", a.envelope.Error.Code, want, a.body)
			}
		})
	}
}

func TestVariantsOfRecords(t *testing.T) {
	for name, tc := range map[string]struct {
		v               remotetest.Variants
		live, tombstone string // "…" stands for what does not matter
	}{
		"plain":      {remotetest.Variants{}, `{"id":7,"a":1,…"version":…,"deleted_at":null}`, `{"id":8,"a":2,…"deleted_at":"20…}`},
		"empty":      {remotetest.Variants{LiveDeletedAt: remotetest.DeletedAtEmpty}, `{"id":7,"a":1,…"deleted_at":""}`, `{"id":8,"a":2,…"deleted_at":"20…}`},
		"absent":     {remotetest.Variants{LiveDeletedAt: remotetest.DeletedAtAbsent}, `{"id":7,"a":1,"modify_time":"…","version":1…}`, `{"id":8,…"deleted_at":"20…}`},
		"strings":    {remotetest.Variants{StringIDs: true, StringVersions: true}, `{"id":"7",…"version":"1…","deleted_at":null}`, `{"id":"8",…}`},
		"bare":       {remotetest.Variants{BareTombstones: true}, `{"id":7,…}`, `{"id":8,"modify_time":…}`},
		"timelayout": {remotetest.Variants{TimeLayout: "2006-01-02 15:04:05"}, `{"id":7,…"modify_time":"2026-09-15 08:00:01"…}`, `{"id":8,…}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := remotetest.Start(t, remotetest.Options{Variants: tc.v})
			s.Put("users", "7", `{"a":1}`)
			s.Put("users", "8", `{"a":2}`)
			s.Delete("users", "8")
			c := connect(t, s)
			got, token, _ := c.drain("users", nil, 0)
			m := byID(t, got)
			for id, want := range map[string]string{"7": tc.live, "8": tc.tombstone} {
				if !like(m[id], want) {
					t.Errorf("%s is not %s", m[id], want)
				}
			}
			s.Revive("users", "8")
			back, _, _ := c.drain("users", &token, 0)
			if len(back) != 1 || !like(string(back[0]), strings.NewReplacer("7", "8", `"a":1`, `"a":2`, "08:00:01", "…").Replace(tc.live)) {
				t.Errorf("revived: %s", back)
			}
		})
	}
}

// like matches text with … as a wildcard.
func like(text, pattern string) bool {
	parts := strings.Split(pattern, "…")
	if !strings.HasPrefix(text, parts[0]) || !strings.HasSuffix(text, parts[len(parts)-1]) {
		return false
	}
	for _, p := range parts {
		_, rest, ok := strings.Cut(text, p)
		if !ok {
			return false
		}
		text = rest
	}
	return true
}

func TestFullPassWithoutTombstones(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{Variants: remotetest.Variants{OmitTombstones: true}})
	s.Seed(5, 0, 0)
	c := connect(t, s)
	_, token, _ := c.drain("users", nil, 0)
	s.Delete("users", s.IDs("users")[0])
	if got, _, _ := c.drain("users", nil, 0); len(got) != 4 || len(s.All("users")) != 5 || len(s.Live("users")) != 4 {
		t.Errorf("full pass: %d rows", len(got))
	}
	if got, _, _ := c.drain("users", &token, 0); len(got) != 1 {
		t.Errorf("increment: %d rows, want the tombstone", len(got))
	}
}

func TestRawRecordsAreSentAsTheyAre(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{ExtraResources: []string{"payments"}})
	raws := map[string]string{
		"a": `{"id":"a","modify_time":"0000-00-00","n":1e400,"s":"\u0000\ud800"}`,
		"b": `{ "id" : "b" ,  "x":-0 }`,
		"c": `{"id":"c","deleted_at":"soon"}`,
	}
	for id, raw := range raws {
		s.PutRaw("payments", id, raw)
	}
	c := connect(t, s)
	got, token, _ := c.drain("payments", nil, 0)
	if d := cmp.Diff(raws, byID(t, got)); d != "" {
		t.Error(d)
	}
	if live := s.Live("payments"); len(live) != 2 || live["c"] != nil {
		t.Errorf("a raw record with deleted_at counts as live")
	}
	s.Edit("payments", "b", `{"y":2}`)
	s.Delete("payments", "a")
	if got, _, _ := c.drain("payments", &token, 0); len(got) != 2 || !like(string(got[0]), `{"id":"b","x":-0,"y":2,…}`) {
		t.Errorf("edit of a raw record: %s", got)
	}
}

func TestWallClockStampsWithTheTimeOfDay(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{WallClock: true})
	s.Seed(5, 0, 0)
	c := connect(t, s)
	begin := time.Now().Truncate(time.Millisecond)
	s.Put("users", "1", `{}`)
	p, _ := c.changes("users", nil, nil, 0)
	cutoff := must(time.Parse(time.RFC3339, p.CutoffAt))
	if cutoff.Before(begin) || cutoff.After(time.Now().Add(time.Second)) {
		t.Errorf("cut-off %v, now %v", cutoff, begin)
	}
	s.Put("users", "2", `{}`) // perhaps within the same millisecond as the cut-off
	if got, _, _ := c.drain("users", p.NextSyncToken, 0); len(got) != 1 || idOf(got[0]) != "2" {
		t.Errorf("increment: %s", got)
	}
}

func TestSeedIsDeterministicAndLooksReal(t *testing.T) {
	s1 := remotetest.Start(t, remotetest.Options{Seed: 5})
	s2 := remotetest.Start(t, remotetest.Options{Seed: 5})
	other := remotetest.Start(t, remotetest.Options{Seed: 6})
	for _, s := range []*remotetest.Server{s1, s2, other} {
		s.Seed(50, 50, 50)
	}
	for _, r := range []string{"users", "properties", "contracts"} {
		if d := cmp.Diff(texts(s1.All(r)), texts(s2.All(r))); d != "" {
			t.Errorf("same seed, other %s:\n%s", r, d)
		}
		if cmp.Equal(texts(s1.All(r)), texts(other.All(r))) {
			t.Errorf("another seed gives the same %s", r)
		}
		for id, raw := range s1.All(r) {
			if !json.Valid(raw) || len(id) != 19 {
				t.Fatalf("%s %s: %s", r, id, raw)
			}
		}
	}
}
