package remotetest

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
)

// grant is what an access token stands for.
type grant struct {
	subject  string
	mobile   string // of a personal token
	scope    string
	personal bool
}

type ensureRequest struct {
	ScopeCode     string `json:"scopeCode"`
	PrincipalType string `json:"principalType"`
	ServiceName   string `json:"serviceName"`
	Mobile        string `json:"mobile"`
}

// ensure gives the token of a subject: the same one for the same subject, until
// it is revoked (contract §3.2).
func (x *exchange) ensure() Reply {
	s := x.srv
	if x.r.Method != http.MethodPost {
		return Reply{Status: http.StatusMethodNotAllowed, Header: map[string]string{"Allow": "POST"}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if subtle.ConstantTimeCompare([]byte(x.r.Header.Get("X-Open-Key")), []byte(s.openKey)) != 1 {
		return x.refuse(Failure{Place: HTTPTop, Code: Unauthenticated, Message: "service key unknown or rotated"})
	}
	var q ensureRequest
	if err := json.Unmarshal(x.body, &q); err != nil {
		return x.refuse(Failure{Place: HTTPTop, Code: InvalidArgument, Message: "body is not a JSON object"})
	}
	g, problem := subjectOf(q)
	if problem != "" {
		return x.refuse(Failure{Place: HTTPTop, Code: InvalidArgument, Message: problem})
	}
	if s.deactivated[g.mobile] {
		return x.refuse(Failure{Place: HTTPTop, Code: Unauthenticated, Message: "this person is deactivated"})
	}
	token := s.accessToken(g.subject)
	s.grants[token] = g
	return jsonReply(http.StatusOK, fmt.Appendf(nil, `{"token":%q,"principalType":%q}`, token, principalOf(g)))
}

func subjectOf(q ensureRequest) (grant, string) {
	switch {
	case q.Mobile != "" && q.ServiceName != "":
		return grant{}, "mobile and serviceName exclude each other"
	case q.Mobile != "":
		return grant{subject: "user:" + q.Mobile, mobile: q.Mobile, scope: "personal", personal: true}, ""
	case q.PrincipalType != "service":
		return grant{}, "principalType must be service"
	case q.ServiceName == "":
		return grant{}, "serviceName is missing"
	case q.ScopeCode == "":
		return grant{}, "scopeCode is missing"
	}
	return grant{subject: "service:" + q.ScopeCode + ":" + q.ServiceName, scope: q.ScopeCode}, ""
}

func principalOf(g grant) string {
	if g.personal {
		return "user_delegated"
	}
	return "tenant_service"
}

// accessToken derives the token of a subject; after a revocation it is another.
func (s *Server) accessToken(subject string) string {
	mac := hmac.New(sha256.New, s.key)
	fmt.Fprintf(mac, "access %d %s", s.epoch, subject)
	return "xqak-" + hex.EncodeToString(mac.Sum(nil)[:20])
}

// ensureBegins counts an exchange of the key for a token, and notes a second
// one for the same subject that comes before the first is over.
func (s *Server) ensureBegins(body []byte) {
	s.stats.Ensures++
	subject := ensureSubject(body)
	s.ensuring[subject]++
	if s.ensuring[subject] > 1 {
		s.breach("ensure: two calls in parallel for one subject")
	}
}

func (s *Server) ensureEnds(body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ensuring[ensureSubject(body)]--
}

func ensureSubject(body []byte) string {
	var q ensureRequest
	if json.Unmarshal(body, &q) != nil {
		return ""
	}
	g, _ := subjectOf(q)
	return g.subject
}
