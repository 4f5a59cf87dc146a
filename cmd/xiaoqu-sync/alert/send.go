package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	requestTime = 10 * time.Second
	maxAnswer   = 64 << 10 // bytes
)

// ErrRefused means that a target answered, and did not take the event: its
// address, its signature or its settings are wrong, or it takes no more just now.
var ErrRefused = errors.New("alert: the target did not take the event")

func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			DisableKeepAlives:      true, // events are hours apart
			MaxResponseHeaderBytes: maxAnswer,
		},
		// The address is a secret and the target was named: no other host gets it.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// send brings an event to a target and returns what it answered. No error holds
// the address.
func (a *Alerter) send(ctx context.Context, t *target, e Event) (answer string, err error) {
	r, err := a.form(t, e, time.Now())
	if err != nil {
		return "", err
	}
	once, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	req, err := http.NewRequestWithContext(once, http.MethodPost, r.url, bytes.NewReader(r.body))
	if err != nil {
		return "", errors.New("alert: the request cannot be made")
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "xiaoqu-sync")
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return "", a.silence(ctx, once, t, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return "", a.silence(ctx, once, t, err)
	}
	return a.judge(t, resp.StatusCode, body)
}

// silence is a target that did not answer. The text of a network error may hold
// an address of a proxy or of a host, so it is cleaned too.
func (a *Alerter) silence(ctx, once context.Context, t *target, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("alert: no answer from %s: interrupted", t.url.Host)
	case once.Err() != nil:
		return fmt.Errorf("alert: no answer from %s within %s", t.url.Host, requestTime)
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // the outer one repeats the address
	}
	return fmt.Errorf("alert: no answer from %s: %s", t.url.Host, a.clean(err.Error()))
}

// verdict is how the robots say whether they took a message.
type verdict struct {
	Errcode *int   `json:"errcode"` // WeCom, DingTalk
	Errmsg  string `json:"errmsg"`
	Code    *int   `json:"code"` // Feishu
	Msg     string `json:"msg"`
}

// judge reads the answer. Robots say no with HTTP 200.
func (a *Alerter) judge(t *target, status int, body []byte) (string, error) {
	said := fmt.Sprintf("HTTP %d", status)
	switch {
	case status >= 300 && status < 400:
		return "", fmt.Errorf("%w: %s, and redirects are not followed", ErrRefused, said)
	case status < 200 || status > 299:
		return "", fmt.Errorf("%w: %s", ErrRefused, said)
	case len(body) > maxAnswer:
		return "", fmt.Errorf("%w: %s with more than %d KiB: is the address right?", ErrRefused, said, maxAnswer>>10)
	case t.kind == JSON:
		return said, nil
	}
	var v verdict
	code, text := (*int)(nil), ""
	if err := json.Unmarshal(body, &v); err == nil {
		code, text = v.Errcode, v.Errmsg
		if t.kind == Feishu {
			code, text = v.Code, v.Msg
		}
	}
	switch {
	case code == nil:
		return "", fmt.Errorf("%w: %s, and not the answer of a robot of this kind", ErrRefused, said)
	case *code != 0:
		return "", fmt.Errorf("%w: code %d: %s", ErrRefused, *code, a.clean(text))
	}
	return fmt.Sprintf("%s, code 0", said), nil
}

// Answer is what a target said to a test event.
type Answer struct {
	Target string `json:"target"`
	Kind   Kind   `json:"kind"`
	OK     bool   `json:"ok"`
	Answer string `json:"answer"`
	Err    error  `json:"-"` // why it is not OK; ErrRefused when the target answered
}

// Test sends a test event to every target, whatever classes it wants, and
// returns their answers in the order of the targets. It needs no database.
func (a *Alerter) Test(ctx context.Context) []Answer {
	if len(a.targets) == 0 {
		return nil
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	e := Event{
		SchemaVersion: eventVersion, ID: fmt.Sprintf("test-%d", now.UnixMilli()), Class: trial, Instance: a.clean(a.opts.Instance),
		Host: a.clean(a.opts.Host), Time: now, Since: now, Resources: []Affected{},
	}
	a.speak(&e)
	answers := make([]Answer, len(a.targets))
	var g errgroup.Group
	for i, t := range a.targets {
		g.Go(func() error {
			said, err := a.send(ctx, t, e)
			answers[i] = Answer{Target: t.name, Kind: t.kind, OK: err == nil, Answer: said, Err: err}
			if err != nil {
				answers[i].Answer = a.opts.Redact(err.Error())
			}
			return nil
		})
	}
	_ = g.Wait() // each one's error is in its answer
	return answers
}
