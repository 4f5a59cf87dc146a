package remote

import (
	"strings"
	"time"
)

// report is what a refusal says about itself, wherever it travelled. Its texts are as received: clean them before use.
type report struct {
	code       Code   // one of the contract's five, or ""
	unknown    string // a code that the contract does not have
	message    string
	requestID  string
	retryAfter time.Duration
}

// How far the extractor looks: objects within objects, and texts that hold JSON.
const (
	extractDepth  = 6
	extractLevels = 4
)

// extract reads a refusal out of a text that is JSON or "CODE: text" or anything else. The contract names the codes (§5)
// but not their place, so every place is read: a JSON-RPC error's data and message, structuredContent at its top or
// under "error", the content's texts, an HTTP body.
func extract(text []byte, now time.Time) report {
	x := extractor{now: now}
	x.text(string(text), 0)
	return x.report
}

// extractNode is extract for a value that is parsed already.
func extractNode(n node, now time.Time) report {
	x := extractor{now: now}
	x.object(n, 0)
	return x.report
}

type extractor struct {
	report
	now time.Time
}

// text takes a text's code if it begins with one, and the text as the message unless there is one.
func (x *extractor) text(s string, depth int) {
	s = strings.TrimSpace(s)
	if s == "" || depth > extractDepth {
		return
	}
	if s[0] == '{' {
		if n, err := parse([]byte(s), extractLevels); err == nil {
			x.object(n, depth+1)
			return
		}
	}
	if x.message == "" {
		x.message = s
	}
	if x.code == "" {
		x.code = leadingCode(s)
	}
}

// object prefers what is nearest to the top; among one object's members a code beats a text that begins with one.
func (x *extractor) object(n node, depth int) {
	if depth > extractDepth || !n.isObject() {
		return
	}
	if n.members == nil {
		opened, err := parse(n.raw, extractLevels)
		if err != nil {
			return
		}
		n = opened
	}
	x.fields(n)
	message, _ := n.first("message", "msg", "detail").str()
	if x.message == "" {
		x.message = strings.TrimSpace(message)
	}
	for _, name := range []string{"structuredContent", "error", "data", "details"} {
		m := n.members[name]
		if s, ok := m.str(); ok {
			x.text(s, depth+1)
			continue
		}
		x.object(m, depth+1)
	}
	for _, text := range contentTexts(n.members["content"]) {
		x.text(text, depth+1)
	}
	if x.code == "" {
		x.code = leadingCode(strings.TrimSpace(message))
	}
}

func (x *extractor) fields(n node) {
	if code, ok := n.first("code", "error_code", "errorCode").str(); ok {
		if known := contractCode(code); known != "" {
			if x.code == "" {
				x.code = known
			}
		} else if x.unknown == "" {
			x.unknown = code
		}
	}
	if id, ok := n.first("request_id", "requestId").text(); ok && x.requestID == "" {
		x.requestID = id
	}
	if wait, ok := n.first("retry_after", "retryAfter").text(); ok && x.retryAfter == 0 {
		x.retryAfter = retryAfter(wait, x.now)
	}
}

// contentTexts gives the texts of a tool result's content.
func contentTexts(content node) []string {
	var texts []string
	for _, item := range content.items {
		block, err := parse(item, 1)
		if err != nil {
			continue
		}
		if text, ok := block.members["text"].str(); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// contractCode gives the code when s is one of the five of contract §5, letter for letter.
func contractCode(s string) Code {
	switch code := Code(s); code {
	case Unauthenticated, PermissionDenied, RateLimited, CursorExpired, InvalidArgument:
		return code
	default:
		return ""
	}
}

// leadingCode gives the code that a text begins with as a whole word.
func leadingCode(s string) Code {
	end := strings.IndexFunc(s, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_'
	})
	if end < 0 {
		end = len(s)
	}
	return contractCode(s[:end])
}

// withoutCode removes the code that a message begins with: an error prints its code itself.
func withoutCode(message string, code Code) string {
	if code == "" || leadingCode(message) != code {
		return message
	}
	return strings.TrimLeft(message[len(code):], ":：-, \t")
}
