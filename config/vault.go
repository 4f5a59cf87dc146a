package config

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The sources of the service key.
const (
	SourceEnv     = "env"     // XIAOQU_OPEN_KEY
	SourceFile    = "file"    // a mounted file
	SourceSystemd = "systemd" // a credential of the unit (LoadCredential)
	SourceVault   = "vault"
)

// SecretIDVariable holds the secret id of approle, or the token that unwraps it.
// It is not a setting: nothing but the environment takes it.
const SecretIDVariable = "XIAOQU_VAULT_SECRET_ID"

// The ways to log in to Vault.
const (
	authToken      = "token"
	authAppRole    = "approle"
	authKubernetes = "kubernetes"
	authTokenFile  = "token_file"
)

// Credentials says where the service key comes from.
type Credentials struct {
	Source string // one of the Source constants
	File   string // file: its path; systemd: the credential's name
	Vault  Vault
}

// Vault says what to read there and how to log in. Where Vault is and a given
// token come from Vault's own variables.
type Vault struct {
	Mount, Path, Field string // of the service key, in a KV engine
	Auth               string // token, approle, kubernetes or token_file
	RoleID             string // approle
	SecretIDFile       string // approle; the id itself is only ever in XIAOQU_VAULT_SECRET_ID
	Role               string // kubernetes
	TokenFile          string // token_file
	Wait               time.Duration
}

// NeedsVault tells that something is to be read from Vault.
func (c *Config) NeedsVault() bool {
	return c.Credentials.Source == SourceVault || c.Database.VaultPath != ""
}

func keySources() []string { return []string{SourceEnv, SourceFile, SourceSystemd, SourceVault} }

func vaultAuths() []string {
	return []string{authToken, authAppRole, authKubernetes, authTokenFile}
}

var (
	vaultPath  = regexp.MustCompile(`^[A-Za-z0-9_.@-]+(/[A-Za-z0-9_.@-]+)*$`)
	vaultField = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
)

func credentialSettings() []setting {
	return []setting{
		{
			name: "credentials.source", env: true, def: SourceEnv,
			help:   "Where the service key comes from: env reads " + keyVariable + ", file and systemd read credentials.file, vault reads Vault.",
			schema: map[string]any{"enum": keySources()},
			set:    text(func(c *Config) *string { return &c.Credentials.Source }, oneOf(keySources())),
		},
		{
			name: "credentials.file", env: true,
			help: "For file: absolute path of the file that holds the key. For systemd: the credential's name in LoadCredential.",
			set:  text(func(c *Config) *string { return &c.Credentials.File }, anyText),
		},
		{
			name: "database.vault_path", env: true,
			help: "Where Vault holds the database's login: secret/data/NAME, database/static-creds/ROLE or database/creds/ROLE. Empty: database.url has it.",
			set:  text(func(c *Config) *string { return &c.Database.VaultPath }, optional(parseVaultPath)),
		},
		{
			name: "database.vault_field", env: true, def: "password",
			help:   "Field at database.vault_path with the password; the user is in username, if there is one.",
			schema: map[string]any{"pattern": vaultField.String()},
			set:    text(func(c *Config) *string { return &c.Database.VaultField }, parseVaultField),
		},
	}
}

func vaultSettings() []setting {
	vault := func(c *Config) *Vault { return &c.Credentials.Vault }
	return []setting{
		{
			name: "credentials.vault.mount", variableName: "XIAOQU_VAULT_MOUNT", env: true, def: "secret",
			help:   "Mount of the KV engine, of version 1 or 2.",
			schema: map[string]any{"pattern": vaultPath.String()},
			set:    text(func(c *Config) *string { return &vault(c).Mount }, parseVaultPath),
		},
		{
			name: "credentials.vault.path", variableName: "XIAOQU_VAULT_PATH", env: true,
			help: "Path of the secret below the mount, without data/.",
			set:  text(func(c *Config) *string { return &vault(c).Path }, optional(parseVaultPath)),
		},
		{
			name: "credentials.vault.field", variableName: "XIAOQU_VAULT_FIELD", env: true, def: "open_key",
			help:   "Field of the secret that holds the service key.",
			schema: map[string]any{"pattern": vaultField.String()},
			set:    text(func(c *Config) *string { return &vault(c).Field }, parseVaultField),
		},
		{
			name: "credentials.vault.auth", variableName: "XIAOQU_VAULT_AUTH", env: true, def: authToken,
			help:   "How to log in to Vault.",
			schema: map[string]any{"enum": vaultAuths()},
			set:    text(func(c *Config) *string { return &vault(c).Auth }, oneOf(vaultAuths())),
		},
		{
			name: "credentials.vault.role_id", variableName: "XIAOQU_VAULT_ROLE_ID", env: true,
			help: "For approle: the role id.",
			set:  text(func(c *Config) *string { return &vault(c).RoleID }, anyText),
		},
		{
			name: "credentials.vault.secret_id_file", variableName: "XIAOQU_VAULT_SECRET_ID_FILE", env: true,
			help: "For approle: file with the secret id, or with the token that unwraps it. Or set XIAOQU_VAULT_SECRET_ID.",
			set:  text(func(c *Config) *string { return &vault(c).SecretIDFile }, anyText),
		},
		{
			name: "credentials.vault.role", variableName: "XIAOQU_VAULT_ROLE", env: true,
			help: "For kubernetes: the role.",
			set:  text(func(c *Config) *string { return &vault(c).Role }, anyText),
		},
		{
			name: "credentials.vault.token_file", variableName: "XIAOQU_VAULT_TOKEN_FILE", env: true,
			help: "For token_file: the file that Vault Agent keeps the token in.",
			set:  text(func(c *Config) *string { return &vault(c).TokenFile }, anyText),
		},
		{
			name: "credentials.vault.wait", variableName: "XIAOQU_VAULT_WAIT", env: true, kind: kindDuration, def: "60s",
			help: "How long a start waits for Vault: 1s to 1h.",
			set:  duration(func(c *Config) *time.Duration { return &vault(c).Wait }, time.Second, time.Hour),
		},
	}
}

func parseVaultPath(s string) (string, error) {
	s = strings.Trim(s, "/")
	if len(s) > 512 || !vaultPath.MatchString(s) || slices.Contains(strings.Split(s, "/"), "..") {
		return "", wrong("names between slashes, such as crm/xiaoqu", "%s is not a path in Vault", quote(s))
	}
	return s, nil
}

func parseVaultField(s string) (string, error) {
	if !vaultField.MatchString(s) {
		return "", wrong("such as open_key", "%s is not a field of a secret", quote(s))
	}
	return s, nil
}

func anyText(s string) (string, error) {
	if len(s) > 4096 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", wrong("", "is too long or holds control characters")
	}
	return s, nil
}

func optional(parse func(string) (string, error)) func(string) (string, error) {
	return func(s string) (string, error) {
		if s == "" {
			return s, nil
		}
		return parse(s)
	}
}

// together checks the settings that only make sense with each other.
func (l *loader) together(databaseOnly bool) {
	c := l.cfg
	need := func(name, value, why string) {
		refused := c.tried[name] && c.origins[name] == originDefault // and reported
		if value == "" && !refused {
			hint := "set " + name + " in the file"
			if s, _ := l.setting(name); s.env {
				hint = "set " + s.variable() + ", or " + name + " in the file"
			}
			l.add(place{field: name}, "is missing: "+why, hint)
		}
	}
	if !databaseOnly {
		switch source := c.Credentials.Source; source {
		case SourceVault:
			need("credentials.vault.path", c.Credentials.Vault.Path, "credentials.source is vault")
		case SourceFile, SourceSystemd:
			need("credentials.file", c.Credentials.File, "credentials.source is "+source)
		}
	}
	file, at := c.Credentials.File, place{field: "credentials.file"}
	switch {
	case file == "":
	case c.Credentials.Source == SourceFile && !filepath.IsAbs(file):
		l.add(at, "is not an absolute path", "begin it with /")
	case c.Credentials.Source == SourceSystemd && filepath.Base(file) != file:
		l.add(at, "is a path", "give the credential's name in LoadCredential=NAME:FILE")
	}
	l.agentsTogether(need)
	if !c.NeedsVault() {
		return
	}
	switch c.Credentials.Vault.Auth {
	case authAppRole:
		need("credentials.vault.role_id", c.Credentials.Vault.RoleID, "credentials.vault.auth is approle")
	case authKubernetes:
		need("credentials.vault.role", c.Credentials.Vault.Role, "credentials.vault.auth is kubernetes")
	case authTokenFile:
		need("credentials.vault.token_file", c.Credentials.Vault.TokenFile, "credentials.vault.auth is token_file")
	}
}
