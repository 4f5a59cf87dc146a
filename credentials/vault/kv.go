package vault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/vault/api"
	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
)

// Key is the service key in a KV engine of Vault, version 1 or 2. It is a
// credentials.Store: Vault is asked whenever the key is.
type Key struct {
	client *Client
	mount  string
	path   string
	field  string

	mu      sync.Mutex
	engine  int // version of the KV engine, 0 before it is known
	seen    credentials.Secret
	version string
	note    string
}

// Key gives the source of the key that is in the field of the secret at path,
// in the KV engine mounted at mount.
func (c *Client) Key(mount, path, field string) *Key {
	return &Key{client: c, mount: strings.Trim(mount, "/"), path: strings.Trim(path, "/"), field: field}
}

// Place says where the key is, as an operator would call it.
func (k *Key) Place() string {
	return fmt.Sprintf("the field %s of %s in Vault at %s", k.field, path.Join(k.mount, k.path), k.client.o.Address)
}

// Note tells what had to be trimmed off the key that was read last, "" when
// nothing was.
func (k *Key) Note() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.note
}

// Key reads the key.
func (k *Key) Key(ctx context.Context) (credentials.Secret, error) {
	key, _, err := k.Current(ctx)
	return key, err
}

// Current reads the key and the version of the secret, "" in a KV engine of
// version 1. The error is *credentials.Error: StoreDown, StoreRefused, or BadKey
// for what is no key; or the context's.
func (k *Key) Current(ctx context.Context) (credentials.Secret, string, error) {
	var secret *api.KVSecret
	err := k.client.ask(ctx, path.Join(k.mount, k.path), func(ctx context.Context, client *api.Client) error {
		engine, err := k.engineOf(ctx, client)
		if err != nil {
			return err
		}
		if engine == 1 {
			secret, err = client.KVv1(k.mount).Get(ctx, k.path)
			return err
		}
		secret, err = client.KVv2(k.mount).Get(ctx, k.path)
		return err
	})
	if err != nil {
		return credentials.Secret{}, "", err
	}
	return k.open(secret)
}

// engineOf tells the engine's version, as Vault's own command line finds it. A
// token that may not ask is in a world of version 2.
func (k *Key) engineOf(ctx context.Context, client *api.Client) (int, error) {
	k.mu.Lock()
	known := k.engine
	k.mu.Unlock()
	if known > 0 {
		return known, nil
	}
	engine := 2
	secret, err := client.Logical().ReadWithContext(ctx, "sys/internal/ui/mounts/"+path.Join(k.mount, k.path))
	if err != nil && !refused(k.client.fail("", err)) {
		return 0, err
	}
	if err == nil && secret != nil {
		options, _ := secret.Data["options"].(map[string]any)
		if version, _ := options["version"].(string); version != "2" {
			engine = 1
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.engine = engine
	}
	return engine, nil
}

// open takes the key out of the secret. A version that was deleted comes without
// an error and without data.
func (k *Key) open(secret *api.KVSecret) (credentials.Secret, string, error) {
	version := ""
	if m := secret.VersionMetadata; m != nil {
		version = strconv.Itoa(m.Version)
		switch {
		case m.Destroyed:
			return credentials.Secret{}, "", refusal("version %s of %s was destroyed: write the key again", version, k.Place())
		case !m.DeletionTime.IsZero() && secret.Data == nil:
			return credentials.Secret{}, "", refusal("version %s of %s was deleted on %s: `vault kv undelete -mount=%s -versions=%s %s` brings it back, or write the key again",
				version, k.Place(), m.DeletionTime.UTC().Format("2006-01-02 15:04:05Z"), k.mount, version, k.path)
		}
	}
	value, ok := secret.Data[k.field]
	if !ok {
		return credentials.Secret{}, "", refusal("there is no field of that name: %s; the secret has %d others", k.Place(), len(secret.Data))
	}
	raw, ok := value.(string)
	if !ok {
		return credentials.Secret{}, "", refusal("%s is not a text", k.Place())
	}
	k.client.o.OnSecret(raw)
	key, note, err := credentials.ParseKey(raw, k.Place())
	if err != nil {
		return credentials.Secret{}, "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen, k.version, k.note = key, version, note
	return key, version, nil
}

// Watch looks at the key from time to time, until ctx ends, and calls changed when
// it is another than the one that was read last.
func (k *Key) Watch(ctx context.Context, every time.Duration, changed func(ctx context.Context, version string)) {
	for wait(ctx, time.Duration(float64(every)*(0.9+0.2*rand.Float64())), nil) {
		k.mu.Lock()
		before := k.seen
		k.mu.Unlock()
		key, version, err := k.Current(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			k.client.o.Logger.Debug("the key could not be looked at", zap.Error(err))
		case err == nil && !before.IsZero() && before.Reveal() != key.Reveal():
			k.client.o.Logger.Info("Vault holds a new service key", zap.String("key_version", version))
			changed(ctx, version)
		}
	}
}
