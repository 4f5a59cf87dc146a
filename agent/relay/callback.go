package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

const (
	callTime  = 15 * time.Second
	maxAnswer = 64 << 10 // bytes of an answer that are looked at
	// noteTime is how long Relay may need to note what it was answered. A task can
	// be faster than that: its first event meets an order that is not accepted yet.
	noteTime = time.Minute
)

func newClient(via http.RoundTripper) *http.Client {
	if via == nil {
		via = &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			MaxIdleConns: 2, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxAnswer,
		}
	}
	return &http.Client{
		Transport: via, Timeout: callTime,
		// The address was named; no other one gets the event.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// event is the body of a callback (RSP §7).
type event struct {
	Type       string    `json:"type"`
	RSP        string    `json:"rsp"`
	OrderID    string    `json:"order_id"`
	EventID    string    `json:"event_id"`
	OccurredAt int64     `json:"occurred_at"`
	Output     *output   `json:"output,omitempty"`
	Error      *fault    `json:"error,omitempty"`
	Proposal   *proposal `json:"proposal,omitempty"`
	Reason     string    `json:"reason,omitempty"`
}

// Deliver posts an event to Relay, signed, and judges the answer. The same event
// has the same id and the same body each time, but for documents that have expired.
func (d *Door) Deliver(ctx context.Context, t agent.Task, e agent.Event) (agent.Verdict, error) {
	if d.options.CallbackURL == "" {
		return agent.Waiting, errors.New("relay: there is no callback address; Relay polls")
	}
	if t.State == agent.Cancelled {
		return agent.Delivered, nil // Relay asked for that, and has nobody choose any more
	}
	body, err := d.render(t, e)
	if err != nil {
		return agent.Refused, err
	}
	secrets := d.options.Secrets()
	if len(secrets) == 0 || len(secrets[0]) == 0 {
		return agent.Again, errors.New("relay: there is no secret to sign a callback with")
	}
	address := strings.TrimRight(d.options.CallbackURL, "/") + "/" + url.PathEscape(t.Key)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return agent.Refused, errors.New("relay: the callback's address cannot be made")
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "xiaoqu-sync")
	req.Header.Set(signatureHeader, sign(secrets[0], time.Now(), body))
	resp, err := d.client.Do(req)
	if err != nil {
		return agent.Again, fmt.Errorf("relay: no answer to a callback: %w", inner(err))
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil && resp.StatusCode != http.StatusOK {
		return agent.Again, fmt.Errorf("relay: a callback's answer was cut short: %w", inner(err))
	}
	return judge(resp.StatusCode, codeOf(text), time.Since(e.At) < noteTime)
}

// inner leaves out the address, which a url.Error repeats.
func inner(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		return outer.Err
	}
	return err
}

// render makes an event's body.
func (d *Door) render(t agent.Task, e agent.Event) ([]byte, error) {
	out := event{RSP: version, OrderID: t.Key, EventID: e.ID, OccurredAt: e.At.Unix()}
	switch e.Kind {
	case agent.EventProposal:
		out.Type = "proposal.add"
		for _, p := range proposals(t.Proposals) {
			if p.ID == e.Ref {
				out.Proposal = &p
			}
		}
		if out.Proposal == nil {
			return nil, errors.New("relay: an event tells of a proposal that its task has not")
		}
	case agent.EventCancelFailed:
		out.Type, out.Reason = "cancel_failed", "the task could not be taken back any more"
	default:
		end := d.end(answer{order: t.Key}, t)
		out.Type, out.Output, out.Error = end.Status, end.Output, end.Error
	}
	body, err := json.Marshal(out)
	switch {
	case err != nil:
		return nil, errors.New("relay: an event has no JSON")
	case len(body) > maxBody:
		return nil, fmt.Errorf("relay: an event has %d bytes, and Relay takes %d", len(body), maxBody)
	}
	return body, nil
}

// judge says what an answer means for the event. Why is in the protocol's words; a
// code is told only if it looks like one.
func judge(status int, code string, early bool) (agent.Verdict, error) {
	if status == http.StatusOK {
		return agent.Delivered, nil
	}
	err := fmt.Errorf("relay: the callback was answered with HTTP %d %s", status, code)
	switch {
	case status == http.StatusUnprocessableEntity && code != "proposal_mismatch":
		// The order's state may be why. Relay may not have noted yet what it was
		// answered; later than that only a choice, or a poll, makes a difference.
		if early {
			return agent.Again, err
		}
		if code == "selection_required" {
			return agent.Waiting, err
		}
		return agent.Refused, err
	case status >= 500, status < 300,
		status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests:
		return agent.Again, err
	default: // a redirect too: the address is wrong
		return agent.Refused, err
	}
}

var codeLike = regexp.MustCompile(`^[a-z_]{1,40}$`)

// codeOf is error.code of an answer's body, or nothing.
func codeOf(body []byte) string {
	var a struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &a) != nil || !codeLike.MatchString(a.Error.Code) {
		return ""
	}
	return a.Error.Code
}
