package mcp_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// stranger sends a text over a connection of its own and reads nothing.
func (s *scene) stranger(t *testing.T, text string) net.Conn {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, text) // what does not go through any more is enough
	return conn
}

// Whoever may send without a signature must not keep the platform out by being slow.
func TestStrangersWhoAreSlowKeepNobodyOut(t *testing.T) {
	s := open(t, func(st *stage) { st.door.MaxCalls = 2 })
	p := newPlatform(s).shake(t)
	host := strings.TrimPrefix(s.url, "http://")
	post := "POST /mcp HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/json\r\nMcp-Session-Id: " + p.session + "\r\nContent-Length: %d\r\n\r\n%s"
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	tests := map[string]string{
		"who send": fmt.Sprintf(post, 1000, "{"),
		"who read": strings.Repeat(fmt.Sprintf(post, len(list), list), 2000),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				s.stranger(t, text)
			}
			got := 0
			for began := time.Now(); got != 200 && time.Since(began) < 5*time.Second; {
				got = p.ask(t, "ping", "").status // a place that is taken for a moment comes free
			}
			if got != 200 {
				t.Errorf("the platform got %d", got)
			}
		})
	}
}

// A handshake needs no signature. Those who only shake hands make room for each other
// before who has called something makes room for them.
func TestStrangersSessionsDoNotTakeThePlatforms(t *testing.T) {
	s := open(t, func(st *stage) { st.door.MaxSessions = 3 })
	s.put(t, "c-1", `{"rent":1}`)
	p := newPlatform(s).shake(t)
	p.call(t, "i1", "records_get", `{"resource":"contracts","id":"c-1"}`).outcome(t)
	for range 10 {
		newPlatform(s).shake(t)
	}
	p.call(t, "i2", "records_get", `{"resource":"contracts","id":"c-1"}`).outcome(t)
}
