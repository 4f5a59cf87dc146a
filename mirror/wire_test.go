package mirror_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

// wire stands between the mirror and PostgreSQL, knows the frontend's messages,
// counts round trips and can cut the line at COMMIT.
type wire struct {
	trips  atomic.Int64
	atEnd  atomic.Int32 // what happens to the next COMMIT
	server string
}

const (
	passCommit = iota
	cutBefore  // the server never sees it
	cutAfter   // the server commits, nobody hears of it
)

// through starts a wire and returns it with the URL that leads over it.
func through(t *testing.T, target string) (*wire, string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{server: u.Host}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.serve(c)
		}
	}()
	u.Host = l.Addr().String()
	q := u.Query()
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return w, u.String()
}

func (w *wire) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", w.server)
	if err != nil {
		return
	}
	defer server.Close()
	answers := make(chan struct{})
	var muted atomic.Bool
	go func() {
		defer close(answers)
		defer client.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			if muted.Load() { // closing before the server has read all of it would take the COMMIT back
				if bytes.Contains(buf[:n], []byte("Z\x00\x00\x00\x05")) {
					return
				}
				continue
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	for first := true; ; first = false {
		message, err := frontendMessage(client, first)
		if err != nil {
			return
		}
		if !first && (message[0] == 'Q' || message[0] == 'S') {
			w.trips.Add(1)
		}
		// A page goes to staging with its COMMIT behind the rows, whose end is "c".
		if !first && (message[0] == 'c' || string(message) == "Q\x00\x00\x00\x0bcommit\x00") {
			switch w.atEnd.Swap(passCommit) {
			case cutBefore:
				return
			case cutAfter:
				muted.Store(true)
				if _, err := server.Write(message); err == nil {
					<-answers
				}
				return
			}
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// frontendMessage reads one message: the first of a connection has no type byte.
func frontendMessage(r io.Reader, first bool) ([]byte, error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
	_, err := io.ReadFull(r, body)
	return append(head, body...), err
}

func TestAPageIsTwoRoundTrips(t *testing.T) {
	f := setUp(t)
	w, url := through(t, f.url)
	m := open(t, url)
	s := step(f.checkpoint(t), user("a", ""), user("b", ""), `{"refused":true}`)
	if _, err := m.Checkpoint(t.Context(), "users"); err != nil { // connects
		t.Fatal(err)
	}
	w.trips.Store(0)
	if _, _, err := m.Commit(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if n := w.trips.Load(); n != 2 {
		t.Errorf("%d round trips", n)
	}
}

func TestAStagedPageIsTwoRoundTrips(t *testing.T) {
	f := setUp(t)
	w, url := through(t, f.url)
	m := open(t, url)
	p := f.begin(t, mirror.PurposeRebuild)
	if _, _, err := m.Pass(t.Context(), "users"); err != nil { // connects
		t.Fatal(err)
	}
	for _, page := range [][]string{{user("a", ""), `{"refused":true}`}, {}} {
		w.trips.Store(0)
		after, _, err := m.Stage(t.Context(), stageStep(p, false, page...))
		if err != nil {
			t.Fatal(err)
		}
		if n := w.trips.Load(); n != 2 {
			t.Errorf("%d round trips", n)
		}
		p = after
	}
}

func TestConnectionCutWhileStaging(t *testing.T) {
	for name, cut := range map[string]int32{"before the server committed": cutBefore, "after the server committed": cutAfter} {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			w, url := through(t, f.url)
			m := open(t, url)
			s := stageStep(f.begin(t, mirror.PurposeRebuild), true, user("a", ""), user("b", ""))
			w.atEnd.Store(cut)
			_, _, err := m.Stage(t.Context(), s)
			wantKind(t, err, mirror.KindUnreachable)
			now, _, err := m.Pass(t.Context(), "users")
			if err != nil {
				t.Fatal(err)
			}
			if landed := now.At.Epoch == s.Before.At.Epoch+1; landed != (cut == cutAfter) || landed != now.Complete {
				t.Fatalf("%+v", now)
			}
			if !now.Complete {
				now = f.stage(t, s.Before, true, user("a", ""), user("b", ""))
			}
			w.atEnd.Store(cut)
			before := f.checkpoint(t)
			_, _, err = m.Merge(t.Context(), before, now, lenient)
			wantKind(t, err, mirror.KindUnreachable)
			after := f.checkpoint(t)
			if merged := after.Epoch == before.Epoch+1; merged != (cut == cutAfter) || merged != (len(f.lines(t)) == 2) {
				t.Errorf("%+v, rows %v", after, f.lines(t))
			}
		})
	}
}

func TestConnectionCutAtCommit(t *testing.T) {
	for name, cut := range map[string]int32{"before the server committed": cutBefore, "after the server committed": cutAfter} {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			w, url := through(t, f.url)
			m := open(t, url)
			s := step(f.checkpoint(t), user("a", ""), user("b", ""))
			w.atEnd.Store(cut)
			_, _, err := m.Commit(t.Context(), s)
			wantKind(t, err, mirror.KindUnreachable)
			// The caller reads the checkpoint again and goes on from there.
			now, err := m.Checkpoint(t.Context(), "users")
			if err != nil {
				t.Fatal(err)
			}
			if now.Epoch == s.Before.Epoch {
				if n := len(f.lines(t)); n != 0 {
					t.Fatalf("%d rows without a checkpoint", n)
				}
				if _, _, err := m.Commit(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			} else if _, _, err := m.Commit(t.Context(), s); err == nil {
				t.Error("the step was written twice")
			} else {
				wantKind(t, err, mirror.KindFenced)
			}
			if got := withoutXmin(f.lines(t)); got != "a live 1, b live 2" {
				t.Error(got)
			}
			if (cut == cutAfter) != (now.Epoch == s.Before.Epoch+1) {
				t.Errorf("epoch %d", now.Epoch)
			}
		})
	}
}

func TestNothingHangsOnASilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m := open(t, "postgres://u@"+l.Addr().String()+"/d?sslmode=disable")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = m.Checkpoint(ctx, "users")
	wantKind(t, err, mirror.KindUnreachable)
}
