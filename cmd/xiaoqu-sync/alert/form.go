package alert

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// SignatureHeader carries the signature of a plain event:
// t=UNIX-SECONDS,v1=hex(HMAC-SHA256(secret, t + "." + body)).
const SignatureHeader = "X-Xiaoqu-Signature"

// maxContent is the most that WeCom takes as the text of a message, in bytes; the
// others take more.
const maxContent = 4096

// request is an event as a target wants it.
type request struct {
	url    string // with a signature, when it goes there
	body   []byte
	header map[string]string
}

// form writes an event for its target, signed as of now.
func (a *Alerter) form(t *target, e Event, now time.Time) (request, error) {
	r := request{url: t.url.String(), header: map[string]string{}}
	var message any = e
	secret := t.secret.Reveal()
	switch t.kind {
	case WeCom:
		message = map[string]any{"msgtype": "markdown", "markdown": map[string]string{"content": cut(a.markdown(e, "\n"), maxContent)}}
	case DingTalk:
		message = map[string]any{"msgtype": "markdown", "markdown": map[string]string{"title": e.Title, "text": a.markdown(e, "\n\n")}}
		if secret != "" {
			r.url = dingTalkURL(t, secret, now)
		}
	case Feishu:
		message = a.post(e, secret, now)
	case JSON:
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(message); err != nil {
		return request{}, fmt.Errorf("alert: write event: %w", err)
	}
	r.body = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if t.kind == JSON && secret != "" {
		at := strconv.FormatInt(now.Unix(), 10)
		r.header[SignatureHeader] = "t=" + at + ",v1=" + hex.EncodeToString(sum(secret, at+"."+string(r.body)))
	}
	return r, nil
}

func sum(key, text string) []byte {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	return h.Sum(nil)
}

// dingTalkURL adds timestamp, in milliseconds, and sign, the HMAC of timestamp,
// line feed and secret under the secret.
func dingTalkURL(t *target, secret string, now time.Time) string {
	at := strconv.FormatInt(now.UnixMilli(), 10)
	u := *t.url
	q := u.Query()
	q.Set("timestamp", at)
	q.Set("sign", base64.StdEncoding.EncodeToString(sum(secret, at+"\n"+secret)))
	u.RawQuery = q.Encode()
	return u.String()
}

// post is Feishu's rich text. Its signature is the other way round: the HMAC of
// nothing, under timestamp (in seconds), line feed and secret.
func (a *Alerter) post(e Event, secret string, now time.Time) map[string]any {
	type span struct {
		Tag  string `json:"tag"`
		Text string `json:"text"`
	}
	var paragraphs [][]span
	for _, l := range a.lines(e) {
		paragraphs = append(paragraphs, []span{{"text", l.label + a.texts.colon + l.value}})
	}
	content := map[string]any{"title": e.Title, "content": paragraphs}
	message := map[string]any{"msg_type": "post", "content": map[string]any{"post": map[string]any{a.texts.feishu: content}}}
	if secret != "" {
		at := strconv.FormatInt(now.Unix(), 10)
		message["timestamp"], message["sign"] = at, base64.StdEncoding.EncodeToString(sum(at+"\n"+secret, ""))
	}
	return message
}

// line is one line of a robot's message.
type line struct{ label, value string }

func (a *Alerter) lines(e Event) []line {
	l := a.texts.labels
	lines := []line{{l.what, e.What}, {l.meaning, e.Meaning}, {l.next, e.Next}}
	add := func(label, value string) {
		if value != "" {
			lines = append(lines, line{label, plain(value)})
		}
	}
	add(l.code, e.Code)
	add(l.request, e.RequestID)
	if e.Class != trial {
		add(l.since, a.clock(e.Since))
	}
	add(l.host, e.Host)
	// The word that a robot with a keyword can be set to.
	add(l.from, joined("xiaoqu-sync", e.ID))
	return lines
}

// markdown is what WeCom and DingTalk both show: a heading, bold, line by line.
func (a *Alerter) markdown(e Event, lineBreak string) string {
	var b strings.Builder
	b.WriteString("### " + e.Title + lineBreak)
	for _, l := range a.lines(e) {
		b.WriteString("**" + l.label + "**" + a.texts.colon + l.value + lineBreak)
	}
	return strings.TrimSuffix(b.String(), lineBreak)
}

// cut bounds a text in bytes, at the end of a character.
func cut(s string, size int) string {
	if len(s) <= size {
		return s
	}
	s = s[:size-len("…")]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}
