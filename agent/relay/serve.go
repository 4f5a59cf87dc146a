package relay

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"go.uber.org/zap"
)

const (
	maxBody  = 1 << 20 // bytes, both ways (RSP §7)
	readTime = 5 * time.Second
	// answerTime ends what Relay would give up by itself: it waits 20 seconds, one
	// more attempt included (RSP §2).
	answerTime = 8 * time.Second
)

// Handler is the endpoint: POST /relay, and nothing else.
func (d *Door) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /relay", d.serve)
	return mux
}

func (d *Door) serve(w http.ResponseWriter, r *http.Request) {
	body, status, why := d.hear(w, r)
	if status != http.StatusOK {
		d.refuse(w, status, why)
		return
	}
	// Only what is Relay's takes one of these places.
	if !enter(d.slots) {
		d.refuse(w, http.StatusTooManyRequests, "too many at once")
		return
	}
	defer func() { <-d.slots }()
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	began := time.Now()
	a := d.answer(ctx, body)
	d.note(a, time.Since(began))
	d.write(w, a)
}

// hear reads a body and makes sure that it is Relay's, or says what to refuse it
// with, and why, for the log.
func (d *Door) hear(w http.ResponseWriter, r *http.Request) (body []byte, status int, why string) {
	if !enter(d.reads) {
		return nil, http.StatusTooManyRequests, "too many at once"
	}
	defer func() { <-d.reads }()
	body, err := readBody(w, r)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, http.StatusRequestEntityTooLarge, "the body is too large"
	case err != nil:
		return nil, http.StatusBadRequest, "the body ended early"
	}
	if why = unsigned(r.Header.Get(signatureHeader), body, d.options.Secrets(), time.Now()); why != "" {
		return nil, http.StatusUnauthorized, why
	}
	return body, http.StatusOK, ""
}

// enter takes one of the places, if there is one.
func enter(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}

// readBody takes the raw bytes, in bounded time: they are not known to be Relay's
// yet.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(readTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	// A deadline that is left behind would end the answer's context.
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	return body, nil
}

// refuse answers what is not from Relay, or too much, with a bare status.
func (d *Door) refuse(w http.ResponseWriter, status int, why string) {
	d.log.Warn("an envelope was refused", zap.Int("http", status), zap.String("reason", why))
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
}

func (d *Door) note(a answer, took time.Duration) {
	fields := []zap.Field{zap.String("type", a.kind), zap.String("status", a.Status), zap.Duration("took", took)}
	if a.order != "" {
		fields = append(fields, zap.String("order", a.order))
	}
	if a.Error != nil {
		fields = append(fields, zap.String("code", a.Error.Code), zap.String("reason", a.Error.Details.Reason))
	}
	d.log.Info("an envelope was answered", fields...)
}

func (d *Door) write(w http.ResponseWriter, a answer) {
	text, err := json.Marshal(a)
	if err != nil {
		// Only a kept result that is no JSON comes here.
		d.log.Error("an answer has no JSON", zap.String("type", a.kind), zap.String("status", a.Status))
		text = []byte(`{"status":"failed","error":{"code":"permanent","message":"the answer cannot be written"}}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(text) // who has gone has nobody left to tell
}
