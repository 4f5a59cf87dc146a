package vaulttest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is one Vault, unsealed, with a KV engine of version 2 at secret.
type Server struct {
	URL string // of the proxy: what the program under test is given

	backend   string
	root      string // token that may do everything
	unsealKey string

	mu     sync.Mutex
	seen   []string
	fault  func(http.ResponseWriter, *http.Request) bool
	client http.Client
}

// Each runs test against the stand-in and, where it is built, the real server,
// beside the other tests: most of their time is waiting.
func Each(t *testing.T, test func(*testing.T, *Server)) {
	t.Helper()
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *Server{"stand-in": StandIn, "real": Real} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

func newServer(t testing.TB, backend, root, unsealKey string) *Server {
	t.Helper()
	target, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{backend: backend, root: root, unsealKey: unsealKey, client: http.Client{Timeout: 30 * time.Second}}
	through := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/v1/"))
		fault := s.fault
		s.mu.Unlock()
		if fault == nil || !fault(w, r) {
			through.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	s.URL = front.URL
	return s
}

// Root is a token that may do everything.
func (s *Server) Root() string { return s.root }

// Fault is asked before every request of the program under test; true means that
// it has answered. nil ends the trouble.
func (s *Server) Fault(fault func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// Answer is a fault that answers every request below a path in the same way.
func Answer(path string, status int, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/v1/"+path) {
			return false
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return true
	}
}

// Count tells how many requests of the program under test began so: "GET secret/".
func (s *Server) Count(prefix string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, request := range s.seen {
		if strings.HasPrefix(request, prefix) {
			n++
		}
	}
	return n
}

// Call does one request as root, past the proxy and its faults. It gives data, or
// the whole answer when there is no data.
func (s *Server) Call(t testing.TB, method, path string, body map[string]any) map[string]any {
	t.Helper()
	return s.do(t, method, path, body, nil)
}

func (s *Server) do(t testing.TB, method, path string, body map[string]any, header http.Header) map[string]any {
	t.Helper()
	payload, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.backend+"/v1/"+path, bytes.NewReader(payload))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("X-Vault-Token", s.root)
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s: HTTP %d %s %v", method, path, resp.StatusCode, text, err)
	}
	var answer map[string]any
	if len(text) > 0 {
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatal(err)
		}
	}
	if data, ok := answer["data"].(map[string]any); ok {
		return data
	}
	return answer
}

// Put writes a new version of a secret of the KV engine.
func (s *Server) Put(t testing.TB, path string, data map[string]any) {
	t.Helper()
	s.Call(t, http.MethodPost, "secret/data/"+path, map[string]any{"data": data})
}

// Seal seals the server.
func (s *Server) Seal(t testing.TB) {
	t.Helper()
	s.Call(t, http.MethodPut, "sys/seal", nil)
}

// Unseal unseals it.
func (s *Server) Unseal(t testing.TB) {
	t.Helper()
	s.Call(t, http.MethodPut, "sys/unseal", map[string]any{"key": s.unsealKey})
}

// AppRole makes the role sync, whose tokens last ttl and, renewed, at most
// maxTTL, and may read the secrets below secret/xiaoqu and database/creds. It
// gives the role id.
func (s *Server) AppRole(t testing.TB, ttl, maxTTL time.Duration) string {
	t.Helper()
	s.Call(t, http.MethodPut, "sys/policies/acl/sync", map[string]any{"policy": Policy})
	s.Call(t, http.MethodPost, "sys/auth/approle", map[string]any{"type": "approle"})
	s.Call(t, http.MethodPost, "auth/approle/role/sync", map[string]any{
		"token_policies": "sync", "token_ttl": ttl.String(), "token_max_ttl": maxTTL.String(),
	})
	id, _ := s.Call(t, http.MethodGet, "auth/approle/role/sync/role-id", nil)["role_id"].(string)
	return id
}

// Policy is what the program needs and no more.
const Policy = `path "secret/data/xiaoqu/*" { capabilities = ["read"] }
path "old/xiaoqu/*" { capabilities = ["read"] }
path "database/creds/xiaoqu" { capabilities = ["read"] }
`

// SecretID issues a secret id of the role.
func (s *Server) SecretID(t testing.TB) string {
	t.Helper()
	id, _ := s.Call(t, http.MethodPost, "auth/approle/role/sync/secret-id", nil)["secret_id"].(string)
	return id
}

// WrappedSecretID issues a secret id and gives the token that unwraps it once.
func (s *Server) WrappedSecretID(t testing.TB) string {
	t.Helper()
	answer := s.do(t, http.MethodPost, "auth/approle/role/sync/secret-id", nil, http.Header{"X-Vault-Wrap-Ttl": {"60s"}})
	wrap, _ := answer["wrap_info"].(map[string]any)
	token, _ := wrap["token"].(string)
	return token
}
