package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		" 7 ":                           7 * time.Second,
		"0":                             0,
		"-3":                            0,
		"1.5":                           1500 * time.Millisecond,
		"NaN":                           0,
		"-Inf":                          0,
		"Inf":                           24 * time.Hour,
		"100000":                        24 * time.Hour,
		"99999999999999999999999":       24 * time.Hour,
		"soon":                          0,
		"Mon, 30 Nov 2026 12:00:30 GMT": 30 * time.Second,
		"Mon, 30 Nov 2026 11:59:00 GMT": 0,
		"Fri, 31 Dec 9999 23:59:59 GMT": 24 * time.Hour,
		"2026-11-30T12:00:30Z":          0,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
	}
}

func TestCleanBoundsAndHides(t *testing.T) {
	for in, want := range map[string]string{
		"a\x00b\nc\x1b[31m":                   "a b c [31m",
		"token xqak-abc.d_e-f!":               "token [redacted]!",
		"key XQOK-1":                          "key [redacted]",
		"Authorization: Bearer   abc def":     "Authorization: [redacted] def",
		"call 13800138000 or +8613800138000.": "call [redacted] or [redacted].",
		"id 1380013800012 stays":              "id 1380013800012 stays",
		"sid-1 sid-1":                         "[redacted] [redacted]",
		"\xff\xfe":                            "\uFFFD",
		strings.Repeat("字", 200):              strings.Repeat("字", 99) + "…",
	} {
		got := clean(in, maxMessage, "sid-1", "")
		if got != want || len(got) > maxMessage {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := clean(strings.Repeat("x", 1<<20), maxMessage); len(got) > maxMessage {
		t.Errorf("%d bytes", len(got))
	}
}

func TestEventData(t *testing.T) {
	for in, want := range map[string]string{
		"data: a\n\ndata:b\n\n":              "a|b",
		"data: a\ndata: b\n\n":               "a\nb",
		": c\r\nevent: x\r\ndata: a\r\n\r\n": "a",
		"data: a\n\ndata: cut":               "a",
		"event: x\rdata: a\r\rdata:b\r\r":    "a|b",
		"":                                   "",
	} {
		if got := string(bytes.Join(eventData([]byte(in), false), []byte("|"))); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := eventData([]byte("data: a\n\ndata: last"), true); len(got) != 2 || string(got[1]) != "last" {
		t.Errorf("got %q", got)
	}
}

// FuzzPage holds that decoding never panics, and that what it calls records are exact pieces of the answer.
func FuzzPage(f *testing.F) {
	for _, seed := range []string{
		`{"structuredContent":{"schema_version":2,"request_id":"r","data":{"users":[{"id":1e400},7],"has_more":true,"next_cursor":"c","snapshot_id":9}}}`,
		`{"structuredContent":{"users":[],"has_more":false,"notices":["a",{"message":"b"}]}}`,
		`{"content":[{"type":"text","text":"{\"rows\":[{}],\"has_more\":false}"}]}`,
		`{"isError":true,"content":[{"type":"text","text":"RATE_LIMITED: x"}],"structuredContent":{"error":{"error":{"error":"x"}}}}`,
		`{"structuredContent":{"data":{"a":[{}],"a":[],"has_more":false}}}`,
		`null`, `[]`, `{`, "\xff", `{"structuredContent":{"tenant":{"id":{}},"capabilities":["A"]}}`,
	} {
		f.Add([]byte(seed), "users")
	}
	f.Fuzz(func(t *testing.T, raw []byte, key string) {
		x := &exchange{tool: "t"}
		r, err := x.openResult(raw)
		if err != nil {
			if len(err.Error()) > 2*maxMessage+maxRequestID {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		readIdentity(r.data)
		p, err := readPage(r.data, key)
		if err != nil {
			return
		}
		for _, record := range p.Records {
			if len(record) == 0 {
				t.Fatal("a record of nothing")
			}
			if bytes.Contains(raw, []byte(`"structuredContent"`)) && !bytes.Contains(raw, record) && !bytes.Contains(raw, []byte(`"text"`)) {
				t.Fatalf("record %q is not in the answer", record)
			}
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"7", "-1", "1e300", "NaN", "0x1p-2", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT"} {
		f.Add(seed, int64(1700000000))
	}
	f.Fuzz(func(t *testing.T, value string, now int64) {
		if got := retryAfter(value, time.Unix(now%(1<<40), 0)); got < 0 || got > maxRetryAfter {
			t.Fatalf("%q: %s", value, got)
		}
	})
}

// FuzzExtract holds that only the contract's codes come out, and that a message that is cleaned is fit for a log line.
func FuzzExtract(f *testing.F) {
	for _, seed := range []string{
		"RATE_LIMITED", "RATE_LIMITED：慢", `{"code":"UNAUTHENTICATED"}`, `{"error":"PERMISSION_DENIED: x","retry_after":"7"}`,
		`{"error":{"data":{"details":{"code":"INVALID_ARGUMENT","request_id":17}}}}`,
		`{"content":[{"text":"{\"content\":[{\"text\":\"SYNC_CURSOR_EXPIRED\"}]}"}]}`, `{"message":"xqak-1 \u0000"}`, "{", "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := extract(text, time.Unix(1700000000, 0))
		if r.code != "" && contractCode(string(r.code)) != r.code {
			t.Fatalf("code %q", r.code)
		}
		if r.code != "" && !bytes.Contains(text, []byte("_")) && r.code != Unauthenticated && !json.Valid(text) {
			t.Fatalf("code %q out of %q", r.code, text)
		}
		got := clean(r.message, maxMessage)
		if len(got) > maxMessage || !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\n\r\x1b") {
			t.Fatalf("message %q", got)
		}
	})
}

// No answer can lead here while redirects are refused; the door holds by itself too.
func TestOnlyTheConfiguredHostIsSpokenTo(t *testing.T) {
	spoken := 0
	tr := &transport{origin: &url.URL{Scheme: "https", Host: "agent.example"}, base: door(func(r *http.Request) { spoken++ })}
	token := "xqak-canary"
	tr.latest.Store(&token)
	for _, target := range []string{
		"http://agent.example/mcp", "https://agent.example:8443/mcp", "https://agent.example.evil/mcp", "https://localhost/mcp",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if !errors.Is(err, errHost) || spoken != 0 || req.Header.Get("Authorization") != "" {
			t.Errorf("%s: %v, spoken to %d times", target, err, spoken)
		}
	}
}

// Nobody waits for a cancellation; without a session it would break the contract.
func TestACancelledHandshakeSendsNoCancellation(t *testing.T) {
	for session, want := range map[string]int{"": 0, "s-1": 1} {
		spoken := 0
		tr := &transport{origin: &url.URL{Scheme: "https", Host: "agent.example"}, base: door(func(*http.Request) { spoken++ })}
		token := "xqak-canary"
		tr.latest.Store(&token)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://agent.example/mcp",
			strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`))
		if err != nil {
			t.Fatal(err)
		}
		if session != "" {
			req.Header.Set(headerSession, session)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil || resp.StatusCode/100 != 2 || spoken != want {
			t.Errorf("session %q: spoken to %d times, %v", session, spoken, err)
			continue
		}
		_ = resp.Body.Close()
	}
}

// door is a network that only counts.
type door func(*http.Request)

func (d door) RoundTrip(r *http.Request) (*http.Response, error) {
	d(r)
	return &http.Response{StatusCode: http.StatusAccepted, Body: http.NoBody, Request: r}, nil
}
