package remote

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

var errTooLarge = errors.New("the answer passes the byte limit")

// byteOrderMark may open a stream; the SDK's scanner would lose the first line to it.
var byteOrderMark = []byte{0xEF, 0xBB, 0xBF}

// body is an answer's body: counted and limited after decompression, its beginning and its end noted in the exchange.
type body struct {
	rc    io.ReadCloser
	in    *bufio.Reader // nil before the first Read
	x     *exchange
	limit int64
	err   error // sticky: the SDK drains a body that it gave up
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.in == nil {
		b.in = bufio.NewReaderSize(b.rc, 32<<10)
		if mark, _ := b.in.Peek(len(byteOrderMark)); bytes.Equal(mark, byteOrderMark) {
			_, _ = b.in.Discard(len(byteOrderMark))
		}
	}
	n, err := b.in.Read(p)
	if b.x.took(p[:n], b.limit) {
		b.err = errTooLarge
		if b.x.cancel != nil {
			b.x.cancel(errTooLarge) // else the SDK would go on and try to resume the stream
		}
		return 0, b.err
	}
	if err != nil {
		b.err = err
		b.x.stopped(err)
	}
	return n, err
}

func (b *body) Close() error { return b.rc.Close() }
