package vaulttest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

// Lend mounts the database engine over the database at address, whose user may
// make roles. The role xiaoqu gives logins that are members of member and act as
// it; they last ttl and, renewed, at most maxTTL. The real server only.
func (s *Server) Lend(t testing.TB, address, member string, ttl, maxTTL time.Duration) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	template := "postgresql://{{username}}:{{password}}@" + u.Host + u.Path + "?" + u.RawQuery
	s.Call(t, http.MethodPost, "sys/mounts/database", map[string]any{"type": "database"})
	s.Call(t, http.MethodPost, "database/config/mirror", map[string]any{
		"plugin_name": "postgresql-database-plugin", "allowed_roles": "xiaoqu",
		"connection_url": template, "username": u.User.Username(), "password": password,
	})
	s.Call(t, http.MethodPost, "database/roles/xiaoqu", map[string]any{
		"db_name": "mirror", "default_ttl": ttl.String(), "max_ttl": maxTTL.String(),
		"creation_statements": []string{
			`create role "{{name}}" login password '{{password}}' valid until '{{expiration}}' in role ` + member,
			`alter role "{{name}}" set role ` + member,
		},
		"revocation_statements": []string{`drop role if exists "{{name}}"`},
	})
}

// Kubernetes sets up the login of the service account xiaoqu-sync in the namespace
// crm, as the role sync, against a stand-in of the cluster's TokenReview, and gives
// a token of that account and one of another. The real server only.
func (s *Server) Kubernetes(t testing.TB) (token, other string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	token, other = accountToken(t, key, "xiaoqu-sync"), accountToken(t, key, "other")
	cluster := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review(w, r, map[string]string{token: "xiaoqu-sync", other: "other"})
	}))
	t.Cleanup(cluster.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cluster.Certificate().Raw})
	s.Call(t, http.MethodPut, "sys/policies/acl/sync", map[string]any{"policy": Policy})
	s.Call(t, http.MethodPost, "sys/auth/kubernetes", map[string]any{"type": "kubernetes"})
	s.Call(t, http.MethodPost, "auth/kubernetes/config", map[string]any{
		"kubernetes_host": cluster.URL, "kubernetes_ca_cert": string(authority), "disable_local_ca_jwt": true, "token_reviewer_jwt": token,
	})
	s.Call(t, http.MethodPost, "auth/kubernetes/role/sync", map[string]any{
		"bound_service_account_names": "xiaoqu-sync", "bound_service_account_namespaces": "crm", "audience": "vault",
		"token_policies": "sync", "token_ttl": "1h",
	})
	return token, other
}

// review answers as the cluster does that knows these accounts' tokens.
func review(w http.ResponseWriter, r *http.Request, accounts map[string]string) {
	var asked struct {
		Spec struct {
			Token     string   `json:"token"`
			Audiences []string `json:"audiences"`
		} `json:"spec"`
	}
	_ = json.NewDecoder(r.Body).Decode(&asked) // a token that is not there is not authenticated
	account, known := accounts[asked.Spec.Token]
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1",
		"status": map[string]any{"authenticated": known, "audiences": asked.Spec.Audiences, "user": map[string]any{
			"username": "system:serviceaccount:crm:" + account, "uid": "u-" + account, "groups": []string{"system:serviceaccounts"},
		}},
	})
}

func accountToken(t testing.TB, key *rsa.PrivateKey, account string) string {
	t.Helper()
	now := time.Now()
	claims, err := json.Marshal(map[string]any{
		"iss": "https://kubernetes.default.svc", "aud": []string{"vault"}, "sub": "system:serviceaccount:crm:" + account,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"kubernetes.io": map[string]any{"namespace": "crm", "serviceaccount": map[string]any{"name": account, "uid": "u-" + account}},
	})
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"RS256","typ":"JWT","kid":"1"}`)) + "." + encode(claims)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + encode(signature)
}
