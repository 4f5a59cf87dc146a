package vaulttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// StandIn starts a stand-in: as much of Vault's documented HTTP API as the program
// and these tests use, so that tests need no real server.
func StandIn(t testing.TB) *Server {
	t.Helper()
	b := &backend{
		secrets: map[string][]version{}, tokens: map[string]*grant{"root": {policies: "root"}},
		wrapped: map[string]map[string]any{}, secretIDs: map[string]bool{},
	}
	server := httptest.NewServer(b)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return newServer(t, server.URL, "root", "key")
}

type backend struct {
	mu        sync.Mutex
	sealed    bool
	serial    int
	secrets   map[string][]version // by whole path
	tokens    map[string]*grant
	role      grant // of sync, as AppRole configures it
	wrapped   map[string]map[string]any
	secretIDs map[string]bool
}

type version struct {
	data    any
	deleted string // when
}

// grant is a token, or what a role gives.
type grant struct {
	policies     string
	ttl, max     time.Duration
	issued, ends time.Time // zero: never ends
}

func (g *grant) alive() bool { return g.ends.IsZero() || time.Now().Before(g.ends) }

func (g *grant) prolong() {
	if g.ttl == 0 {
		return
	}
	g.ends = time.Now().Add(g.ttl)
	if last := g.issued.Add(g.max); g.max > 0 && g.ends.After(last) {
		g.ends = last
	}
}

func (g *grant) left() int {
	if g.ends.IsZero() {
		return 0
	}
	return int(time.Until(g.ends).Round(time.Second).Seconds())
}

// fault is an answer that is no success.
type fault struct {
	status int
	words  string
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body) // GET has none
	answer, f := b.answer(r, strings.TrimPrefix(r.URL.Path, "/v1/"), body)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case f.status != 0:
		w.WriteHeader(f.status)
		words := []string{}
		if f.words != "" {
			words = append(words, f.words)
		}
		if answer == nil { // what is deleted has both a status and its metadata
			answer = map[string]any{"errors": words}
		}
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (b *backend) answer(r *http.Request, path string, body map[string]any) (map[string]any, fault) {
	if path == "sys/unseal" {
		b.sealed = false
		return map[string]any{"sealed": false}, fault{}
	}
	if b.sealed {
		return nil, fault{http.StatusServiceUnavailable, "Vault is sealed"}
	}
	if path == "auth/approle/login" {
		if body["role_id"] != "role-of-sync" || !b.secretIDs[text(body["secret_id"])] {
			return nil, fault{http.StatusBadRequest, "invalid role or secret ID"}
		}
		return b.issue(), fault{}
	}
	token := r.Header.Get("X-Vault-Token")
	if path == "sys/wrapping/unwrap" {
		return b.unwrap(token)
	}
	g := b.tokens[token]
	if g == nil || !g.alive() {
		return nil, fault{http.StatusForbidden, "permission denied"}
	}
	switch {
	case path == "auth/token/lookup-self":
		return data(map[string]any{"ttl": g.left(), "renewable": g.ttl > 0}), fault{}
	case path == "auth/token/renew-self":
		g.prolong()
		return map[string]any{"auth": authOf(token, g)}, fault{}
	case path == "auth/token/revoke-self":
		delete(b.tokens, token)
		return nil, fault{}
	case g.policies != "root" && !permitted(g, path):
		return nil, fault{http.StatusForbidden, "1 error occurred:\n\t* permission denied\n\n"}
	case strings.HasPrefix(path, "secret/"), strings.HasPrefix(path, "old/"):
		return b.kv(r.Method, path, body)
	}
	return b.administer(r, path, body)
}

func permitted(g *grant, path string) bool {
	return g.policies == "sync" && (strings.HasPrefix(path, "secret/data/xiaoqu/") || strings.HasPrefix(path, "old/xiaoqu/") ||
		strings.HasPrefix(path, "sys/internal/ui/mounts/"))
}

func (b *backend) issue() map[string]any {
	b.serial++
	token := fmt.Sprintf("hvs.stand-in-token-%d", b.serial)
	g := b.role
	g.issued = time.Now()
	g.prolong()
	b.tokens[token] = &g
	return map[string]any{"auth": authOf(token, &g)}
}

func authOf(token string, g *grant) map[string]any {
	return map[string]any{"client_token": token, "lease_duration": g.left(), "renewable": g.ttl > 0, "policies": []string{g.policies}}
}

func (b *backend) unwrap(token string) (map[string]any, fault) {
	inner, ok := b.wrapped[token]
	if !ok {
		return nil, fault{http.StatusBadRequest, "wrapping token is not valid or does not exist"}
	}
	delete(b.wrapped, token)
	return data(inner), fault{}
}

// kv is an engine of version 2 at secret/data and one of version 1 at old.
func (b *backend) kv(method, path string, body map[string]any) (map[string]any, fault) {
	versions := b.secrets[path]
	first := strings.HasPrefix(path, "old/")
	switch {
	case method == http.MethodDelete && len(versions) > 0:
		versions[len(versions)-1].deleted = time.Now().UTC().Format(time.RFC3339Nano)
		return nil, fault{}
	case method != http.MethodGet && first:
		b.secrets[path] = []version{{data: body}}
		return nil, fault{}
	case method != http.MethodGet:
		b.secrets[path] = append(versions, version{data: body["data"]})
		return data(map[string]any{"version": len(versions) + 1}), fault{}
	case len(versions) == 0:
		return nil, fault{status: http.StatusNotFound}
	}
	last := versions[len(versions)-1]
	if first {
		return map[string]any{"data": last.data}, fault{}
	}
	metadata := map[string]any{"version": len(versions), "created_time": "2026-01-01T00:00:00Z", "deletion_time": last.deleted, "destroyed": false}
	if last.deleted != "" {
		return data(map[string]any{"data": nil, "metadata": metadata}), fault{status: http.StatusNotFound}
	}
	return data(map[string]any{"data": last.data, "metadata": metadata}), fault{}
}

// administer is what tests set up.
func (b *backend) administer(r *http.Request, path string, body map[string]any) (map[string]any, fault) {
	switch {
	case path == "sys/seal":
		b.sealed = true
	case path == "auth/approle/role/sync":
		ttl, _ := time.ParseDuration(text(body["token_ttl"]))
		most, _ := time.ParseDuration(text(body["token_max_ttl"]))
		b.role = grant{policies: text(body["token_policies"]), ttl: ttl, max: most}
	case path == "auth/approle/role/sync/role-id":
		return data(map[string]any{"role_id": "role-of-sync"}), fault{}
	case path == "auth/approle/role/sync/secret-id":
		b.serial++
		id := fmt.Sprintf("secret-id-%d", b.serial)
		b.secretIDs[id] = true
		if r.Header.Get("X-Vault-Wrap-Ttl") == "" {
			return data(map[string]any{"secret_id": id}), fault{}
		}
		token := fmt.Sprintf("hvs.stand-in-wrapping-%d", b.serial)
		b.wrapped[token] = map[string]any{"secret_id": id}
		return map[string]any{"wrap_info": map[string]any{"token": token, "ttl": 60}}, fault{}
	case path == "auth/token/create":
		b.tokens[text(body["id"])] = &grant{policies: "sync"}
	case path == "auth/token/revoke":
		delete(b.tokens, text(body["token"]))
	case strings.HasPrefix(path, "sys/internal/ui/mounts/"):
		kind := "2"
		if strings.HasPrefix(path, "sys/internal/ui/mounts/old/") {
			kind = "1"
		}
		return data(map[string]any{"type": "kv", "options": map[string]any{"version": kind}}), fault{}
	case strings.HasPrefix(path, "sys/"): // mounts, policies, auth methods
	default:
		return nil, fault{status: http.StatusNotFound}
	}
	return nil, fault{}
}

func data(inner map[string]any) map[string]any { return map[string]any{"data": inner} }

func text(v any) string {
	s, _ := v.(string)
	return s
}
