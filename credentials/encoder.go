package credentials

import (
	"bytes"
	"io"
	"sync"

	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"
)

// Encoder wraps inner so that every finished line is scrubbed: the message,
// fields of every kind, what With added, error texts and stacks. Only bytes in
// base64 (zap.Binary) pass unseen.
func (r *Redactor) Encoder(inner zapcore.Encoder) zapcore.Encoder {
	return &encoder{Encoder: inner, redactor: r}
}

// encoder works on the line and not on the fields, since fields can hide text
// in a dozen ways and a line in one.
type encoder struct {
	zapcore.Encoder
	redactor *Redactor
}

// Clone keeps the wrapper: zap clones the encoder for every With.
func (e *encoder) Clone() zapcore.Encoder {
	return &encoder{Encoder: e.Encoder.Clone(), redactor: e.redactor}
}

// EncodeEntry encodes and scrubs one line.
func (e *encoder) EncodeEntry(entry zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	line, err := e.Encoder.EncodeEntry(entry, fields)
	if err != nil {
		return nil, err
	}
	raw := line.String()
	clean := e.redactor.String(raw)
	if clean == raw {
		return line, nil
	}
	line.Free()
	out := e.redactor.lines.Get()
	out.AppendString(clean)
	return out, nil
}

// maxHeld bounds an unfinished line that a writer holds back, in bytes.
const maxHeld = 64 << 10

// Writer gives a writer to w that scrubs whole lines, ended by \n or \r, for
// text that is not a log. An unfinished line is held back, up to 64 KiB, until
// it ends or Close writes it. Close leaves w open.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser {
	return &writer{to: w, redactor: r}
}

type writer struct {
	mu       sync.Mutex
	to       io.Writer
	redactor *Redactor
	held     []byte
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, p...)
	whole := bytes.LastIndexAny(w.held, "\r\n") + 1
	if whole == 0 && len(w.held) > maxHeld {
		whole = len(w.held)
	}
	if err := w.flush(whole); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush(len(w.held))
}

func (w *writer) flush(size int) error {
	if size == 0 {
		return nil
	}
	clean := w.redactor.String(string(w.held[:size]))
	w.held = append(w.held[:0], w.held[size:]...)
	_, err := io.WriteString(w.to, clean)
	return err
}
