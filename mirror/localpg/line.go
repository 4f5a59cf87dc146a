package localpg

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
)

const (
	// maxText bounds the text of a query that is looked at, and maxHeld an answer
	// that is kept back until it is whole, in bytes. Longer ones just pass.
	maxText = 1 << 20
	maxHeld = 4 << 20
	// cancelCode is in a first message that is no startup but a cancel request, which
	// nothing follows.
	cancelCode = 80877102
)

// line is one connection through a proxy.
type line struct {
	proxy          *Proxy
	client, server net.Conn

	mu      sync.Mutex
	commits []bool // round trips without an answer yet: is a COMMIT in it
	copying bool   // a COPY with a COMMIT behind it is under way
}

// hangUp breaks the connection on both sides.
func (l *line) hangUp() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// requests carries the client's messages, until one is to be cut.
func (l *line) requests() {
	r := bufio.NewReader(l.client)
	if l.startup(r) != nil {
		return
	}
	for {
		head, size, err := messageHead(r)
		if err != nil {
			return
		}
		var text []byte
		if head[0] == 'Q' && size <= maxText {
			text = make([]byte, size)
			if _, err := io.ReadFull(r, text); err != nil {
				return
			}
			size = 0
		}
		if l.asked(head[0], text) {
			return
		}
		if l.send(l.server, append(head, text...)) != nil || l.pass(l.server, r, size) != nil {
			return
		}
	}
}

// startup carries the first message, which has no type byte, in one piece: poolers
// want it so.
func (l *line) startup(r *bufio.Reader) error {
	head := make([]byte, 8)
	if _, err := io.ReadFull(r, head); err != nil {
		return err
	}
	size, code := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:])
	if size < 8 || size > maxText {
		return errors.New("not a startup message")
	}
	message := append(head, make([]byte, size-8)...)
	if _, err := io.ReadFull(r, message[8:]); err != nil {
		return err
	}
	if err := l.send(l.server, message); err != nil || code != cancelCode {
		return err
	}
	_, _ = io.Copy(io.Discard, r)
	return io.EOF
}

// asked notes a message of the client's and tells whether to cut before it.
func (l *line) asked(kind byte, query []byte) bool {
	commit := false
	switch kind {
	case 'Q':
		text := strings.ToLower(strings.TrimSpace(strings.TrimRight(string(query), "\x00")))
		ends := strings.HasSuffix(strings.TrimRight(text, "; \n"), "commit")
		commit = ends && !strings.HasPrefix(text, "copy")
		l.expect(ends, ends && !commit)
	case 'S':
		l.expect(false, false)
		return false
	case 'c':
		commit = l.endCopy()
	case 'E':
	default:
		return false
	}
	cut := l.proxy.hit(Statement)
	return commit && l.proxy.hit(Commit) || cut
}

// expect notes that an answer is due.
func (l *line) expect(commit, copying bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commits = append(l.commits, commit)
	l.copying = copying
}

func (l *line) endCopy() (commit bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	commit, l.copying = l.copying, false
	return commit
}

// answers carries the server's messages. An answer is held back until it is
// whole, so that a cut leaves nothing of it.
func (l *line) answers() {
	r := bufio.NewReader(l.server)
	var held []byte
	for started := false; ; {
		head, size, err := messageHead(r)
		if err != nil {
			_ = l.send(l.client, held) // the server's last words before it left
			return
		}
		held = append(held, head...)
		if int64(len(held))+size > maxHeld {
			if l.send(l.client, held) != nil || l.pass(l.client, r, size) != nil {
				return
			}
			held = held[:0]
			continue
		}
		at := len(held)
		held = append(held, make([]byte, size)...)
		if _, err := io.ReadFull(r, held[at:]); err != nil {
			return
		}
		ready := head[0] == 'Z'
		if ready && started && l.answered() {
			return
		}
		started = started || ready
		if !started || ready || head[0] == 'G' { // G: the server waits for the rows of a COPY
			if l.send(l.client, held) != nil {
				return
			}
			held = held[:0]
		}
	}
}

// answered notes a whole answer and tells whether to keep it from the client.
func (l *line) answered() bool {
	l.mu.Lock()
	commit := len(l.commits) > 0 && l.commits[0]
	l.commits = l.commits[min(1, len(l.commits)):]
	l.mu.Unlock()
	cut := l.proxy.hit(Answer)
	return commit && l.proxy.hit(Committed) || cut
}

func (l *line) send(to io.Writer, b []byte) error {
	if l.proxy.isSilent() {
		return nil
	}
	_, err := to.Write(b)
	return err
}

func (l *line) pass(to io.Writer, r io.Reader, size int64) error {
	if l.proxy.isSilent() {
		to = io.Discard
	}
	_, err := io.CopyN(to, r, size)
	return err
}

// messageHead reads a message's type and length, and returns how much follows.
func messageHead(r io.Reader) (head []byte, size int64, err error) {
	head = make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, 0, err
	}
	size = int64(binary.BigEndian.Uint32(head[1:])) - 4
	if size < 0 {
		return nil, 0, errors.New("not a message of PostgreSQL's protocol")
	}
	return head, size, nil
}
