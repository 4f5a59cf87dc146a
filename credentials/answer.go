package credentials

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// answer is what ensure may say. Contract §3.2 names the field token; gateways
// wrap it in data, and put a code of §5 (or a number) at the top or in error.
type answer struct {
	Token json.RawMessage `json:"token"`
	Code  json.RawMessage `json:"code"`
	Data  json.RawMessage `json:"data"`
	Error json.RawMessage `json:"error"`
}

// judge turns an answer into a token or a named failure. No text of the remote
// gets into the failure but a code that the contract knows.
func (r request) judge(resp *http.Response, body []byte) (Secret, error) {
	var a answer
	readable := json.Unmarshal(body, &a) == nil
	status, code := resp.StatusCode, a.code()
	if success(status) {
		// An envelope that says HTTP 200 and {"code": 401} means the latter.
		if number, err := strconv.Atoi(string(a.Code)); err == nil && number >= 400 && number < 600 {
			status = number
		}
	}
	failure := r.refusal(status, code)
	if failure == nil && !readable {
		failure = r.fail(Malformed, "the answer is not JSON ("+verdict(status, code)+"): is base_url right?", nil)
	}
	if failure == nil {
		token, fault := a.token()
		if fault == "" {
			return token, nil
		}
		failure = r.fail(Malformed, fault, nil)
	}
	failure.Status, failure.Code = status, code
	if failure.passing() {
		failure.RetryAfter = retryAfter(resp.Header.Get("Retry-After"))
	}
	return Secret{}, failure
}

// refusal names the failure that status and code speak of; nil for none.
func (r request) refusal(status int, code string) *Error {
	said := verdict(status, code)
	switch {
	case status == http.StatusTooManyRequests || code == "RATE_LIMITED":
		return r.fail(Limited, "the remote limits the rate: "+said, nil)
	case status == http.StatusUnauthorized || status == http.StatusForbidden ||
		code == "UNAUTHENTICATED" || code == "PERMISSION_DENIED":
		if r.op == opPersonal {
			return r.fail(Refused, "the service key or the person was refused: "+said, nil)
		}
		return r.fail(Refused, "the service key was refused: "+said+"; was it rotated or revoked in Xiaoqu's admin console?", nil)
	case status == http.StatusBadRequest || status == http.StatusUnprocessableEntity || code == "INVALID_ARGUMENT":
		return r.fail(Refused, "the request was refused: "+said+"; is service_name right?", nil)
	case status >= 500 || status == http.StatusRequestTimeout:
		return r.fail(Unreachable, "the remote failed: "+said, nil)
	case status >= 300 && status < 400:
		return r.fail(Malformed, "the remote redirects ("+said+"), and the key is not taken elsewhere: is base_url right?", nil)
	case !success(status) || code != "":
		return r.fail(Malformed, "unexpected answer "+said+": is base_url right?", nil)
	}
	return nil
}

func success(status int) bool { return status >= 200 && status < 300 }

// code finds a code of contract §5 in the two places where it may stand.
func (a answer) code() string {
	var nested answer
	_ = json.Unmarshal(a.Error, &nested) // not an object: then it has no code
	for _, raw := range []json.RawMessage{a.Code, nested.Code} {
		var code string
		if json.Unmarshal(raw, &code) == nil && slices.Contains(contractCodes(), code) {
			return code
		}
	}
	return ""
}

func contractCodes() []string {
	return []string{"UNAUTHENTICATED", "PERMISSION_DENIED", "RATE_LIMITED", "SYNC_CURSOR_EXPIRED", "INVALID_ARGUMENT"}
}

// token takes the token out, or says what is wrong with it.
func (a answer) token() (token Secret, fault string) {
	raw := a.Token
	if absent(raw) {
		var nested answer
		_ = json.Unmarshal(a.Data, &nested) // not an object: then it has no token
		raw = nested.Token
	}
	if absent(raw) {
		return Secret{}, "the answer holds no token"
	}
	var value string
	if json.Unmarshal(raw, &value) != nil {
		return Secret{}, "the token in the answer is not a string"
	}
	what, _ := unfit(value)
	switch {
	case value == "":
		return Secret{}, "the token in the answer is empty"
	case strings.HasPrefix(value, keyPrefix):
		return Secret{}, "the answer holds a service key (" + keyPrefix + ") where a token is wanted"
	case !strings.HasPrefix(value, tokenPrefix) || value == tokenPrefix:
		return Secret{}, "the token in the answer does not begin with " + tokenPrefix
	case len(value) > maxSecret:
		return Secret{}, "the token in the answer is too long"
	case what != "":
		return Secret{}, "the token in the answer holds " + what
	}
	return NewSecret(value), ""
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// retryAfter reads seconds or a date (RFC 9110 §10.2.3), at most maxWait; what
// is past or makes no sense counts as nothing.
func retryAfter(header string) time.Duration {
	header = strings.TrimSpace(header)
	wait := time.Duration(0)
	if seconds, err := strconv.ParseUint(header, 10, 64); err == nil {
		wait = time.Duration(min(seconds, 3600)) * time.Second // no overflow
	} else if at, err := http.ParseTime(header); err == nil {
		wait = time.Until(at)
	}
	return min(max(wait, 0), maxWait)
}
