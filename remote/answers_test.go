package remote_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

func TestAnswersThatAreUnusualButRight(t *testing.T) {
	ok := `{"jsonrpc":"2.0","id":ID,"result":` + okPage + `}`
	half := len(`{"jsonrpc":"2.0",`)
	for name, h := range map[string]handler{
		"json":                      status(200, "application/json; charset=utf-8", ok),
		"type in capitals":          status(200, "Text/Event-Stream; charset=UTF-8", "data: "+ok+"\n\n"),
		"no space after the colon":  stream("data:" + ok + "\n\n"),
		"no blank line at the end":  stream("data: " + ok + "\n"),
		"no newline at the end":     stream("data: " + ok),
		"CRLF":                      stream("event: message\r\ndata: " + ok + "\r\n\r\n"),
		"CR alone":                  stream("event: message\rdata: " + ok + "\r\r"),
		"a line without a colon":    stream("foo\ndata: " + ok + "\n\n"),
		"byte order mark":           stream("\ufeffdata: " + ok + "\n\n"),
		"byte order mark in json":   status(200, "application/json", "\ufeff"+ok),
		"comments and keep-alives":  stream(": hi\n\n: hi\n\ndata: " + ok + "\n\n: bye\n\n"),
		"several data lines":        stream("data: " + ok[:half] + "\ndata: " + ok[half:] + "\n\n"),
		"unknown field":             stream("foo: bar\ndata: " + ok + "\n\n"),
		"ids":                       stream("id: 1\ndata: " + ok + "\n\n"),
		"[DONE] afterwards":         stream("data: " + ok + "\n\ndata: [DONE]\n\n"),
		"a notification first":      stream("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\ndata: " + ok + "\n\n"),
		"a request first":           stream("data: {\"jsonrpc\":\"2.0\",\"id\":\"s1\",\"method\":\"ping\"}\n\ndata: " + ok + "\n\n"),
		"another response first":    stream("data: {\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{}}\n\ndata: " + ok + "\n\n"),
		"content of a strange type": stream("data: " + strings.Replace(ok, `"content":[]`, `"content":[{"type":"table"}]`, 1) + "\n\n"),
		"content null":              stream("data: " + strings.Replace(ok, `"content":[]`, `"content":null`, 1) + "\n\n"),
		"gzip": func(w http.ResponseWriter, _ *http.Request, m message) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprintf(z, "data: %s\n\n", strings.ReplaceAll(ok, `"id":ID`, `"id":`+string(m.ID)))
			_ = z.Close()
		},
		"a stream kept open": func(w http.ResponseWriter, r *http.Request, m message) {
			result(w, m, okPage)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(s *server) { s.answer = h })
			p, err := client(t, s.URL, nil).Changes(t.Context(), users())
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Records) != 1 || p.NextSyncToken != "t1" {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestBrokenStreamIsResumedWhereItsEventsHaveIds(t *testing.T) {
	var call atomic.Value
	s := serve(t, func(s *server) {
		s.answer = func(w http.ResponseWriter, r *http.Request, m message) {
			call.Store(m)
			stream("id: 7\nretry: 5\ndata: \n\n")(w, r, m)
		}
		s.resume = func(w http.ResponseWriter, r *http.Request, _ message) {
			if r.Header.Get("Last-Event-ID") != "7" {
				t.Errorf("resumed at %q", r.Header.Get("Last-Event-ID"))
			}
			result(w, call.Load().(message), okPage)
		}
	})
	if _, err := client(t, s.URL, nil).Changes(t.Context(), users()); err != nil {
		t.Fatal(err)
	}
	if got := s.seen(); got != "initialize notifications/initialized tools/call GET" {
		t.Errorf("saw %s", got)
	}
}

func TestByteLimitKeepsTheSession(t *testing.T) {
	big := `{"jsonrpc":"2.0","id":ID,"result":{"structuredContent":{"users":[{"x":"` + strings.Repeat("z", 300<<10) + `"}],"has_more":false}}}`
	for name, h := range map[string]handler{
		"stream":         stream("data: " + big + "\n\n"),
		"stream with id": stream("id: 1\n\ndata: " + big + "\n\n"),
		"json":           status(200, "application/json", big),
		"endless": func(w http.ResponseWriter, r *http.Request, _ message) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				_, _ = w.Write(bytes.Repeat([]byte(": keep\n"), 1000))
			}
		},
		"gzip bomb": func(w http.ResponseWriter, _ *http.Request, _ message) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 8 { // MiB
				_, _ = z.Write(bytes.Repeat([]byte(" "), 1<<20))
			}
			_ = z.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			s := serve(t, func(s *server) {
				s.answer = func(w http.ResponseWriter, r *http.Request, m message) {
					if calls.Add(1) == 1 {
						h(w, r, m)
						return
					}
					result(w, m, okPage)
				}
			})
			c := client(t, s.URL, func(o *remote.Options) { o.MaxBytes = 200 << 10 })
			_, err := c.Changes(t.Context(), users())
			var e *remote.Error
			if !errors.As(err, &e) || e.Code != remote.Malformed || !e.TooLarge {
				t.Fatalf("got %v", err)
			}
			if _, err := c.Changes(t.Context(), users()); err != nil || s.handshakes() != 1 {
				t.Errorf("after: %v, %d handshakes", err, s.handshakes())
			}
		})
	}
}
