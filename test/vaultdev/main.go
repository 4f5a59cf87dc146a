// Command vaultdev is an unsealed in-memory Vault on a loopback port, for tests
// only. It is a module of its own, so that the daemon's module graph stays small.
// Standard output gets one line of JSON; it ends with its standard input.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	kubernetes "github.com/hashicorp/vault-plugin-auth-kubernetes"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/builtin/credential/approle"
	"github.com/hashicorp/vault/builtin/logical/database"
	"github.com/hashicorp/vault/helper/namespace"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	postgresql "github.com/hashicorp/vault/plugins/database/postgresql"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

// rootToken is no secret: the server holds what a test put there and listens on
// loopback.
const rootToken = "root"

// registry knows the one plugin that the database engine asks for.
type registry struct{}

func (r registry) Contains(name string, kind consts.PluginType) bool {
	_, ok := r.Get(name, kind)
	return ok
}

func (registry) Get(name string, kind consts.PluginType) (func() (any, error), bool) {
	if kind == consts.PluginTypeDatabase && name == "postgresql-database-plugin" {
		return postgresql.New, true
	}
	return nil, false
}

func (registry) Keys(kind consts.PluginType) []string {
	if kind == consts.PluginTypeDatabase {
		return []string{"postgresql-database-plugin"}
	}
	return nil
}

func (registry) DeprecationStatus(string, consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, true
}

func (registry) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "vaultdev:", err)
		os.Exit(1)
	}
}

func run() error {
	core, key, err := start()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	handler := vaulthttp.Handler.Handler(&vault.HandlerProperties{Core: core, ListenerConfig: &configutil.Listener{
		MaxRequestSize:     vaulthttp.DefaultMaxRequestSize,
		MaxRequestDuration: vault.DefaultMaxRequestDuration,
	}})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	err = json.NewEncoder(os.Stdout).Encode(map[string]string{
		"address": "http://" + listener.Addr().String(), "root_token": rootToken, "unseal_key": hex.EncodeToString(key),
	})
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	select {
	case <-ended:
	case err = <-served:
	}
	return errors.Join(err, server.Close(), core.Shutdown())
}

// start makes the core, unseals it, and mounts a KV engine of version 2 at secret.
func start() (core *vault.Core, unsealKey []byte, err error) {
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Error, Output: os.Stderr})
	storage, err := inmem.NewInmem(nil, logger)
	if err != nil {
		return nil, nil, err
	}
	core, err = vault.NewCore(&vault.CoreConfig{
		Physical:           storage,
		LogicalBackends:    map[string]logical.Factory{"kv": kv.Factory, "database": database.Factory},
		CredentialBackends: map[string]logical.Factory{"approle": approle.Factory, "kubernetes": kubernetes.Factory},
		BuiltinRegistry:    registry{},
		DisableMlock:       true,
		Logger:             logger,
	})
	if err != nil {
		return nil, nil, err
	}
	ctx := namespace.RootContext(context.Background())
	made, err := core.Initialize(ctx, &vault.InitParams{
		BarrierConfig: &vault.SealConfig{SecretShares: 1, SecretThreshold: 1, StoredShares: 1},
	})
	if err != nil {
		return nil, nil, err
	}
	unsealKey = made.SecretShares[0]
	if ok, err := core.Unseal(append([]byte(nil), unsealKey...)); err != nil || !ok {
		return nil, nil, fmt.Errorf("unseal: %v %w", ok, err)
	}
	token := map[string]any{"id": rootToken, "policies": []string{"root"}, "no_parent": true, "no_default_policy": true}
	if err := patiently(func() error { return write(ctx, core, made.RootToken, "auth/token/create", token) }); err != nil {
		return nil, nil, err
	}
	mount := map[string]any{"type": "kv", "options": map[string]string{"version": "2"}}
	if err := write(ctx, core, rootToken, "sys/mounts/secret", mount); err != nil {
		return nil, nil, err
	}
	// The engine upgrades itself behind the answer; it is ready when it can be read.
	return core, unsealKey, patiently(func() error {
		return request(ctx, core, logical.ReadOperation, rootToken, "secret/config", nil)
	})
}

// patiently repeats f while the core finds itself after the unsealing.
func patiently(f func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for attempt := 0; ; attempt++ {
		err := f()
		if err == nil || attempt > 250 {
			return err
		}
		<-tick.C
	}
}

func write(ctx context.Context, core *vault.Core, token, path string, data map[string]any) error {
	return request(ctx, core, logical.UpdateOperation, token, path, data)
}

func request(ctx context.Context, core *vault.Core, operation logical.Operation, token, path string, data map[string]any) error {
	answer, err := core.HandleRequest(ctx, &logical.Request{ID: "dev", Operation: operation, ClientToken: token, Path: path, Data: data})
	if err == nil && answer.IsError() {
		err = answer.Error()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
