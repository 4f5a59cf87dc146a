package remotetest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

func BenchmarkSeed100000(b *testing.B) {
	for b.Loop() {
		s := must(remotetest.New(remotetest.Options{}))
		s.Seed(0, 0, 100_000)
		_ = s.Close()
	}
}

// BenchmarkPage serves pages of 200 rows out of 100,000 without a network: the
// CPU that the simulator takes from what is measured against it.
func BenchmarkPage(b *testing.B) {
	s := remotetest.Start(b, remotetest.Options{})
	s.Seed(0, 0, 100_000)
	c := connect(b, s)
	p, _ := c.changes("contracts", nil, nil, 200)
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"contracts.changes.list","arguments":{"syncToken":null,"limit":200,"cursor":"` + *p.NextCursor + `"}}}`
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+c.token)
		r.Header.Set("Mcp-Session-Id", c.session)
		r.Header.Set("X-Mcp-Schema-Version", "2")
		r.Header.Set("MCP-Protocol-Version", "2025-06-18")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := &sink{h: http.Header{}}
		s.ServeHTTP(w, r)
		b.SetBytes(w.n)
	}
}

type sink struct {
	h http.Header
	n int64
}

func (s *sink) Header() http.Header { return s.h }
func (s *sink) WriteHeader(int)     {}
func (s *sink) Write(b []byte) (int, error) {
	n, err := io.Discard.Write(b)
	s.n += int64(n)
	return n, err
}
