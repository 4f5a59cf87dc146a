package mcp_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// post is send without what a test checks, over one connection.
func (p *platform) post(b *testing.B, client *http.Client, body string, headers map[string]string) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, p.url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", p.accept)
	req.Header.Set("Mcp-Session-Id", p.session)
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	res, err := client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != 200 {
		b.Fatal(res.StatusCode, err)
	}
	res.Body.Close()
}

func BenchmarkToolsList(b *testing.B) {
	s := open(b)
	p := newPlatform(s).shake(b)
	b.SetBytes(int64(len(p.ask(b, "tools/list", "").body)))
	for b.Loop() {
		p.post(b, http.DefaultClient, p.request("tools/list", ""), nil)
	}
}

// What a record costs: the SQL alone, the catalogue, the catalogue with a key (which
// keeps the answer), and the door, whose every call has a key.
func BenchmarkRecordsGet(b *testing.B) {
	s := open(b)
	s.put(b, "c-1", fmt.Sprintf(`{"id":"c-1","rent":1.10,"text":%q}`, strings.Repeat("x", 600)))
	const input = `{"resource":"contracts","id":"c-1"}`
	caller := agent.Caller{Door: "bench", Name: "bench", Scopes: []string{"*"}}
	b.Run("sql", func(b *testing.B) {
		for b.Loop() {
			if _, ok, err := s.store.Record(b.Context(), "contracts", "c-1"); err != nil || !ok {
				b.Fatal(ok, err)
			}
		}
	})
	n := 0
	do := func(b *testing.B, key string) {
		if _, err := s.service.Do(b.Context(), agent.Call{Caller: caller, Capability: "records.get", Input: []byte(input), Key: key}); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("catalogue", func(b *testing.B) {
		for b.Loop() {
			do(b, "")
		}
	})
	b.Run("catalogue with a key", func(b *testing.B) {
		for b.Loop() {
			n++
			do(b, fmt.Sprint("k-", n))
		}
	})
	b.Run("door", func(b *testing.B) {
		p := newPlatform(s).shake(b)
		for b.Loop() {
			n++
			body := p.request("tools/call", `{"name":"records_get","arguments":`+input+`}`)
			p.post(b, http.DefaultClient, body, p.context(fmt.Sprint("i-", n), body))
		}
	})
	b.Run("door unsigned", func(b *testing.B) {
		open := open(b, func(st *stage) { st.door.Context.AllowUnsigned = true })
		open.put(b, "c-1", `{"id":"c-1"}`)
		p := newPlatform(open).shake(b)
		for b.Loop() {
			p.post(b, http.DefaultClient, p.request("tools/call", `{"name":"records_get","arguments":`+input+`}`), nil)
		}
	})
}
