package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials/vault"
)

const (
	// keyVariable is where the service key is, unless credentials.source says
	// otherwise.
	keyVariable = "XIAOQU_OPEN_KEY"
	// keyPoll is how often Vault is asked whether it holds a new key.
	keyPoll = time.Minute
)

// openVault makes the client of Vault, where something is to be read from it, and
// fetches the database's login if it is there.
func (a *app) openVault(ctx context.Context) error {
	if !a.config.NeedsVault() {
		return nil
	}
	for _, kv := range a.program.env {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "VAULT_") && !slices.Contains(vaultVariables(), name) {
			a.log.Warn("this variable of Vault's is not honoured", zap.String("variable", name), zap.Strings("honoured", vaultVariables()))
		}
	}
	var err error
	if a.vault, err = vault.New(a.vaultOptions()); err != nil {
		return err
	}
	a.beside(ctx, a.vault.Keep)
	if path := a.config.Database.VaultPath; path != "" {
		a.login = a.vault.Database(path, a.config.Database.VaultField)
		_, _, err = a.login.Login(ctx)
	}
	return err
}

// vaultVariables are those of Vault's own that count here. The others could send
// secrets elsewhere, or trust anybody.
func vaultVariables() []string {
	return []string{"VAULT_ADDR", "VAULT_TOKEN", "VAULT_NAMESPACE", "VAULT_CACERT"}
}

func (a *app) vaultOptions() vault.Options {
	variable := func(name string) string {
		value, _ := a.program.lookup(name)
		return strings.TrimSpace(value)
	}
	v := a.config.Credentials.Vault
	return vault.Options{
		Address: variable("VAULT_ADDR"), Namespace: variable("VAULT_NAMESPACE"), CACert: variable("VAULT_CACERT"),
		Auth: v.Auth, Token: credentials.NewSecret(variable("VAULT_TOKEN")), TokenFile: v.TokenFile,
		RoleID: v.RoleID, SecretID: credentials.NewSecret(variable(config.SecretIDVariable)), SecretIDFile: v.SecretIDFile,
		Role: v.Role, Wait: v.Wait,
		Logger: a.log.Named("vault"), OnSecret: func(s string) { a.program.redactor.Add(s) },
	}
}

// keySource is where the configuration says that the service key is. Vault is
// nil where it is not to be asked.
func (p *program) keySource(cfg *config.Config, v *vault.Client) credentials.KeySource {
	c := cfg.Credentials
	switch c.Source {
	case config.SourceFile:
		return credentials.FromFile(c.File)
	case config.SourceSystemd:
		return credentials.FromSystemd(p.lookup, c.File)
	case config.SourceVault:
		return v.Key(c.Vault.Mount, c.Vault.Path, c.Vault.Field)
	default:
		return credentials.FromEnv(p.lookup, keyVariable)
	}
}

// openTokens makes the token service and reads the key.
func (a *app) openTokens(ctx context.Context, grace time.Duration) error {
	keys := a.program.keySource(a.config, a.vault)
	tokens, err := credentials.New(credentials.Options{
		BaseURL: a.config.BaseURL, ServiceName: a.config.ServiceName,
		Keys: keys, Grace: grace,
		Logger: a.log.Named("credentials"), OnSecret: func(s string) { a.program.redactor.Add(s) },
	})
	if err != nil {
		return err
	}
	if err := tokens.Ready(ctx); err != nil {
		return err
	}
	a.tokens = tokens
	if noted, ok := keys.(interface{ Note() string }); ok && noted.Note() != "" {
		a.log.Warn("the service key", zap.String("source", a.config.Credentials.Source), zap.String("note", noted.Note()))
	}
	a.log.Info("service key read", zap.String("source", a.config.Credentials.Source), zap.String("key_version", tokens.KeyVersion()))
	if watched, ok := keys.(*vault.Key); ok {
		a.beside(ctx, func(ctx context.Context) { watched.Watch(ctx, keyPoll, a.keyChanged) })
	}
	return nil
}

// keyChanged goes over to a new key before the remote asks for it.
func (a *app) keyChanged(ctx context.Context, version string) {
	if err := a.tokens.KeyChanged(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("the new service key brings no token; the old token goes on serving", zap.String("key_version", version), zap.Error(err))
	}
}

// keyVersion is the version of the key in use, "" when there is none to tell.
func (a *app) keyVersion() string {
	if a.tokens == nil {
		return ""
	}
	return a.tokens.KeyVersion()
}

// vaultTrouble is a remark on a Vault that was down when it was asked last.
func (a *app) vaultTrouble() []string {
	if a.vault == nil {
		return nil
	}
	h := a.vault.Health()
	if h.Up || h.Since.IsZero() {
		return nil
	}
	return []string{fmt.Sprintf("Vault does not answer as it should since %s, and what was in memory served: %s", clock(&h.Since), h.Reason)}
}
