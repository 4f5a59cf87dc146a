package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
)

func TestVaultIsSetByItsVariables(t *testing.T) {
	c := load(t, config.Input{Env: append(environment(),
		"XIAOQU_CREDENTIALS_SOURCE=vault", "XIAOQU_VAULT_MOUNT=kv", "XIAOQU_VAULT_PATH=crm/xiaoqu", "XIAOQU_VAULT_FIELD=key",
		"XIAOQU_VAULT_AUTH=approle", "XIAOQU_VAULT_ROLE_ID=r-1", "XIAOQU_VAULT_SECRET_ID=s3cr3t", "XIAOQU_VAULT_SECRET_ID_FILE=/run/id",
		"XIAOQU_VAULT_ROLE=sync", "XIAOQU_VAULT_TOKEN_FILE=/run/token", "XIAOQU_VAULT_WAIT=5s",
	)})
	want := config.Credentials{Source: "vault", Vault: config.Vault{
		Mount: "kv", Path: "crm/xiaoqu", Field: "key", Auth: "approle", RoleID: "r-1", SecretIDFile: "/run/id",
		Role: "sync", TokenFile: "/run/token", Wait: 5 * time.Second,
	}}
	if diff := cmp.Diff(want, c.Credentials); diff != "" {
		t.Error(diff)
	}
	if len(c.Warnings()) > 0 || !c.NeedsVault() {
		t.Errorf("warnings %v, needs Vault %v", c.Warnings(), c.NeedsVault())
	}
	for _, s := range c.Effective() {
		if strings.Contains(s.Value, "s3cr3t") {
			t.Errorf("%s shows the secret id", s.Name)
		}
	}
}

func TestVaultIsNeededForWhatIsThere(t *testing.T) {
	for name, tt := range map[string]struct {
		env  []string
		want bool
	}{
		"nothing":  {nil, false},
		"key":      {[]string{"XIAOQU_CREDENTIALS_SOURCE=vault", "XIAOQU_VAULT_PATH=x"}, true},
		"database": {[]string{"XIAOQU_DATABASE_VAULT_PATH=database/creds/xiaoqu"}, true},
	} {
		if got := load(t, config.Input{Env: append(environment(), tt.env...)}).NeedsVault(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCredentialSettingsMustGoTogether(t *testing.T) {
	for _, tt := range []struct{ file, want string }{
		{"source: vault", "credentials.vault.path: is missing: credentials.source is vault (set XIAOQU_VAULT_PATH, or credentials.vault.path in the file)"},
		{"source: vault, vault: {path: ''}", "credentials.vault.path: is missing"},
		{"source: file", "credentials.file: is missing: credentials.source is file (set XIAOQU_CREDENTIALS_FILE, or credentials.file in the file)"},
		{"source: systemd", "credentials.file: is missing: credentials.source is systemd (set XIAOQU_CREDENTIALS_FILE, or credentials.file in the file)"},
		{"source: file, file: key", "credentials.file: is not an absolute path (begin it with /)"},
		{"source: systemd, file: /run/key", "credentials.file: is a path (give the credential's name in LoadCredential=NAME:FILE)"},
		{"source: vault, vault: {path: x, auth: approle}", "credentials.vault.role_id: is missing: credentials.vault.auth is approle (set XIAOQU_VAULT_ROLE_ID, or credentials.vault.role_id in the file)"},
		{"source: vault, vault: {path: x, auth: kubernetes}", "credentials.vault.role: is missing: credentials.vault.auth is kubernetes (set XIAOQU_VAULT_ROLE, or credentials.vault.role in the file)"},
		{"source: vault, vault: {path: x, auth: token_file}", "credentials.vault.token_file: is missing: credentials.vault.auth is token_file (set XIAOQU_VAULT_TOKEN_FILE, or credentials.vault.token_file in the file)"},
		{"source: env, vault: {auth: approle}", ""}, // nothing is read from Vault
		{"source: file, file: /run/key", ""},
		{"source: systemd, file: key", ""},
		{"source: vault, vault: {path: x y}", "credentials.vault.path: \"x y\" is not a path in Vault"}, // and not missing as well
	} {
		ps := problems(t, config.Input{File: []byte(minimal + "credentials: {" + tt.file + "}\n")})
		if tt.want == "" && len(ps) > 0 || tt.want != "" && (len(ps) != 1 || !strings.Contains(ps.Error(), tt.want)) {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.file, ps, tt.want)
		}
	}
	in := config.Input{DatabaseOnly: true, Env: append(environment()[2:], "XIAOQU_CREDENTIALS_SOURCE=vault")}
	if ps := problems(t, in); len(ps) > 0 {
		t.Errorf("a verb that needs no key: %v", ps)
	}
}
