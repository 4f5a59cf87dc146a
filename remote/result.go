package remote

import (
	"fmt"
	"strings"
	"time"
)

// resultLevels opens a tool result down to the lists and objects inside data:
// result, structuredContent, data, and one more.
const resultLevels = 4

// toolResult is what a tool said when it did not refuse.
type toolResult struct {
	data      node // envelope v2: its data; v1: structuredContent itself (contract §4.2)
	requestID string
	notices   []string
}

// openResult reads a tool's result. A refusal is an error, whichever way it travels in a result.
func (x *exchange) openResult(raw []byte) (toolResult, error) {
	if len(raw) == 0 {
		return toolResult{}, x.short(Malformed, "a response without a result")
	}
	result, err := parse(raw, resultLevels)
	if err != nil {
		return toolResult{}, x.fail(Malformed, "the result is not JSON: "+err.Error())
	}
	if result.present() && !result.isObject() {
		return toolResult{}, x.fail(Malformed, "the result is not an object")
	}
	if isError := result.members["isError"]; string(isError.raw) == "true" {
		return toolResult{}, x.ofReport(extractNode(result, time.Now()), Unreachable)
	}
	body, err := x.structured(result)
	if err != nil {
		return toolResult{}, err
	}
	data := body
	if d := body.members["data"]; d.isObject() {
		data = d
	}
	if refuses(body, data) {
		return toolResult{}, x.ofReport(extractNode(body, time.Now()), Unreachable)
	}
	r := toolResult{data: data, requestID: x.requestID(body, data, result.members["_meta"])}
	if err := x.checkSchema(body, r.requestID); err != nil {
		return toolResult{}, err
	}
	r.notices = x.notices(result, body, data)
	return r, nil
}

// requestID finds the request id (contract §4.2) in the first place that has one, the answer's header last.
func (x *exchange) requestID(places ...node) string {
	for _, n := range places {
		if id, ok := n.first("request_id", "requestId").text(); ok && id != "" {
			return x.clean(id, maxRequestID)
		}
	}
	return x.clean(x.answer.requestID, maxRequestID)
}

// structured gives structuredContent, or the JSON object that a server without it put in the content's text.
func (x *exchange) structured(result node) (node, error) {
	if sc := result.members["structuredContent"]; sc.present() {
		if !sc.isObject() {
			return node{}, x.fail(Malformed, "structuredContent is not an object")
		}
		return sc, nil
	}
	texts := contentTexts(result.members["content"])
	for _, text := range texts {
		if !strings.HasPrefix(strings.TrimSpace(text), "{") {
			continue
		}
		if n, err := parse([]byte(text), resultLevels-1); err == nil {
			return n, nil
		}
	}
	for _, text := range texts {
		if leadingCode(strings.TrimSpace(text)) != "" {
			return node{}, x.ofReport(extract([]byte(text), time.Now()), Unreachable)
		}
	}
	if len(texts) == 0 {
		return node{}, x.short(Malformed, "an empty result: neither structuredContent nor text")
	}
	return node{}, x.fail(Malformed, "the result has no structuredContent and its text is not JSON")
}

// refuses recognises a refusal that calls itself a success: an error, or a code of the contract, where data should be.
func refuses(body, data node) bool {
	if data.first("has_more", "hasMore").present() {
		return false
	}
	for _, n := range []node{body, data} {
		if n.first("error").present() {
			return true
		}
		if code, _ := n.first("code").str(); contractCode(code) != "" {
			return true
		}
	}
	return false
}

// checkSchema accepts envelope 2 and the old form 1, which has no envelope.
func (x *exchange) checkSchema(body node, requestID string) error {
	version, _ := body.first("schema_version", "schemaVersion").text()
	var e *Error
	switch {
	case version == "2" && !body.members["data"].isObject():
		e = x.fail(Malformed, fmt.Sprintf("an envelope without data: it has %s", names(body.names)))
	case version != "" && version != "1" && version != "2":
		e = x.fail(Malformed, fmt.Sprintf("schema_version %s is not known", version))
	default:
		return nil
	}
	e.RequestID = requestID
	return e
}

// maxNotices bounds the notices of one answer.
const maxNotices = 20

// notices collects what the remote wants noticed (contract §4.3), wherever it put it.
func (x *exchange) notices(result, body, data node) []string {
	var found []string
	add := func(text string) {
		if text = x.clean(text, maxMessage); text != "" && len(found) < maxNotices {
			found = append(found, text)
		}
	}
	levels := []node{data, body, result, result.members["_meta"]}
	if string(data.raw) == string(body.raw) {
		levels = levels[1:]
	}
	for _, n := range levels {
		for _, name := range noticeNames() {
			for _, text := range noticeTexts(n.members[name]) {
				add(text)
			}
		}
	}
	for _, text := range contentTexts(result.members["content"]) {
		text = strings.TrimSpace(text)
		if !strings.HasPrefix(text, "{") && strings.Contains(strings.ToLower(text), "notice") {
			add(text)
		}
	}
	return found
}

func noticeNames() []string { return []string{"notice", "notices"} }

// noticeTexts reads a notice: a text, or a list of texts or of objects with a message.
func noticeTexts(n node) []string {
	if !n.present() {
		return nil
	}
	if text, ok := n.text(); ok {
		return []string{text}
	}
	if n.isObject() {
		if opened, err := parse(n.raw, 1); err == nil {
			if text, ok := opened.first("message", "text").str(); ok {
				return []string{text}
			}
		}
		return []string{string(n.raw)}
	}
	list, err := parse(n.raw, 1)
	if err != nil {
		return nil
	}
	var texts []string
	for _, item := range list.items[:min(len(list.items), maxNotices)] {
		if !strings.HasPrefix(string(item), "[") {
			texts = append(texts, noticeTexts(node{raw: []byte(item)})...)
		}
	}
	return texts
}
