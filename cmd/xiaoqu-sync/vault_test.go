package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials/vault/vaulttest"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// inVault moves an operator's service key into Vault, to which the program logs in
// by AppRole. What is set after it wins.
func (c *cli) inVault(t testing.TB, v *vaulttest.Server) {
	t.Helper()
	v.Put(t, "xiaoqu/prod", map[string]any{"open_key": c.xiaoqu.Key()})
	for name, value := range map[string]string{
		"XIAOQU_OPEN_KEY": "", "XIAOQU_CREDENTIALS_SOURCE": "vault", "XIAOQU_VAULT_PATH": "xiaoqu/prod", "XIAOQU_VAULT_AUTH": "approle",
		"XIAOQU_VAULT_ROLE_ID": v.AppRole(t, time.Hour, time.Hour), "XIAOQU_VAULT_SECRET_ID": v.SecretID(t),
		"XIAOQU_VAULT_WAIT": "1s", "VAULT_ADDR": v.URL,
	} {
		c.set(name, value)
	}
}

// onPage runs f once, when the page of users is asked for.
func (c *cli) onPage(page int, f func()) {
	var done atomic.Bool
	c.xiaoqu.OnCall(func(call remotetest.Call) {
		if remotetest.OnPage("users", page)(call) && !done.Swap(true) {
			f()
		}
	})
}

func TestRotationInMidRunIsUnnoticed(t *testing.T) {
	const pages = 40
	vaulttest.Each(t, func(t *testing.T, v *vaulttest.Server) {
		c := newCLI(t)
		c.inVault(t, v)
		c.xiaoqu.Seed(pages*200, 0, 0)
		var rotated, written atomic.Bool
		c.xiaoqu.OnCall(func(call remotetest.Call) {
			switch {
			// Page 10: the old key dies, and with it what it brought.
			case remotetest.OnPage("users", 10)(call) && !rotated.Swap(true):
				c.xiaoqu.RotateKey("xqok-rotated")
			// Page 12: the operator has written the new key to Vault.
			case remotetest.OnPage("users", 12)(call) && !written.Swap(true):
				v.Put(t, "xiaoqu/prod", map[string]any{"open_key": "xqok-rotated"})
				c.xiaoqu.RevokeTokens()
			}
		})
		c.rotationWentWell(t, pages, 2)
	})
}

func TestRotationThatKillsTheTokenIsWaitedFor(t *testing.T) {
	const pages = 40
	vaulttest.Each(t, func(t *testing.T, v *vaulttest.Server) {
		c := newCLI(t)
		c.inVault(t, v)
		c.xiaoqu.Seed(pages*200, 0, 0)
		c.onPage(10, func() {
			c.xiaoqu.RotateKey("xqok-rotated")
			c.xiaoqu.RevokeTokens()
			time.AfterFunc(1500*time.Millisecond, func() { v.Put(t, "xiaoqu/prod", map[string]any{"open_key": "xqok-rotated"}) })
		})
		c.rotationWentWell(t, pages, 3)
	})
}

// rotationWentWell syncs users and expects what a rotation must leave.
func (c *cli) rotationWentWell(t *testing.T, pages, ensures int) {
	t.Helper()
	r := c.must(t, "sync", "users", "--output", "json", "--log-level", "info")
	stats := c.xiaoqu.Stats()
	if stats.Ensures > ensures {
		t.Errorf("%d exchanges, at most %d are needed", stats.Ensures, ensures)
	}
	if got := stats.Pages["users"]; got > pages+1 {
		t.Errorf("%d pages were fetched for %d", got, pages)
	}
	if n := c.read(t, "select count(*) from xiaoqu.users_live")[0][0]; n != "8000" {
		t.Errorf("%s rows", n)
	}
	if !strings.Contains(r.err, "the service key was rotated") || !strings.Contains(r.err, `"key_version": "2"`) {
		t.Errorf("the log does not speak of the rotation:\n%s", r.err)
	}
	if status := c.must(t, "status", "users", "--output", "json").out; !strings.Contains(status, `"key_version": "2"`) {
		t.Errorf("status does not name the key's version:\n%s", status)
	}
	if check := c.must(t, "check", "--output", "json").out; !strings.Contains(check, `"key_version": "2"`) {
		t.Errorf("check does not name the key's version:\n%s", check)
	}
	if strings.Contains(r.out+r.err, "xqok-rotated") {
		t.Error("the key got out")
	}
}

func TestVaultSealedForAWholeRunDoesNotEndIt(t *testing.T) {
	vaulttest.Each(t, func(t *testing.T, v *vaulttest.Server) {
		c := newCLI(t)
		c.inVault(t, v)
		c.xiaoqu.Seed(1000, 0, 0)
		c.onPage(1, func() {
			v.Seal(t)
			c.xiaoqu.RevokeTokens() // so that the key is wanted
		})
		r := c.must(t, "sync", "users", "--output", "json")
		for _, want := range []string{"what was in memory served", v.URL} {
			if !strings.Contains(r.out, want) {
				t.Errorf("no warning that says %q:\n%s", want, r.out)
			}
		}
		if !strings.Contains(r.err, "the key in memory goes on serving") {
			t.Errorf("the log does not say it:\n%s", r.err)
		}
	})
}

func TestVaultThatIsAbsentAtTheStartIsAnExitThatMayBeRetried(t *testing.T) {
	c := newCLI(t)
	c.inVault(t, vaulttest.StandIn(t))
	c.set("VAULT_ADDR", "http://127.0.0.1:1")
	for _, args := range []string{"sync", "check"} {
		r := c.run(t, args, "--output", "json")
		w := r.envelope(t)
		if r.exit != exitBackend || w.Error.Code != "VAULT_UNREACHABLE" || !w.Error.Retryable {
			t.Errorf("%s: exit %d: %s", args, r.exit, r.out)
		}
		for _, want := range []string{"http://127.0.0.1:1", "connection refused", "after waiting"} {
			if !strings.Contains(w.Error.Message, want) {
				t.Errorf("%s: %q does not say %q", args, w.Error.Message, want)
			}
		}
	}
}

func TestVaultThatRefusesIsAnExitForAPerson(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*testing.T, *cli, *vaulttest.Server)
		exit  int
		says  string
	}{
		"nothing there": {func(_ *testing.T, c *cli, _ *vaulttest.Server) { c.set("XIAOQU_VAULT_PATH", "xiaoqu/none") }, exitCredentials, "there is nothing at secret/xiaoqu/none"},
		"no right":      {func(_ *testing.T, c *cli, _ *vaulttest.Server) { c.set("XIAOQU_VAULT_PATH", "other") }, exitCredentials, "HTTP 403"},
		"no such login": {func(_ *testing.T, c *cli, _ *vaulttest.Server) { c.set("XIAOQU_VAULT_SECRET_ID", "canary-secret-id") }, exitCredentials, "HTTP 400"},
		"no address":    {func(_ *testing.T, c *cli, _ *vaulttest.Server) { c.set("VAULT_ADDR", "") }, exitUsage, "VAULT_ADDR is not set"},
		"a key that is a token": {func(t *testing.T, _ *cli, v *vaulttest.Server) {
			v.Put(t, "xiaoqu/prod", map[string]any{"open_key": "xqak-canary"})
		}, exitUsage, "access token"},
		"a variable that would lead elsewhere": {func(_ *testing.T, c *cli, _ *vaulttest.Server) {
			c.set("VAULT_AGENT_ADDR", "http://127.0.0.1:1")
			c.set("XIAOQU_VAULT_PATH", "other")
		}, exitCredentials, "VAULT_AGENT_ADDR"},
	} {
		t.Run(name, func(t *testing.T) {
			v := vaulttest.StandIn(t)
			c := newCLI(t)
			c.inVault(t, v)
			test.spoil(t, c, v)
			r := c.run(t, "sync")
			if r.exit != test.exit || !strings.Contains(r.err, test.says) {
				t.Errorf("exit %d, want %d, saying %q:\n%s", r.exit, test.exit, test.says, r.err)
			}
			if strings.Contains(r.out+r.err, "canary") {
				t.Errorf("a secret got out:\n%s", r.err)
			}
		})
	}
}

func TestKeyOfAFileAndOfSystemdIsUsed(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(3, 3, 3)
	dir := t.TempDir()
	path := filepath.Join(dir, "xiaoqu-open-key")
	if err := os.WriteFile(path, []byte(c.xiaoqu.Key()+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.set("XIAOQU_OPEN_KEY", "")
	c.set("CREDENTIALS_DIRECTORY", dir)
	for _, source := range [][2]string{{"file", path}, {"systemd", "xiaoqu-open-key"}} {
		c.set("XIAOQU_CREDENTIALS_SOURCE", source[0])
		c.set("XIAOQU_CREDENTIALS_FILE", source[1])
		r := c.must(t, "sync")
		for _, want := range []string{"a newline around the key was trimmed", "chmod o-rwx"} {
			if !strings.Contains(r.err, want) {
				t.Errorf("%s: no warning %q:\n%s", source[0], want, r.err)
			}
		}
		c.must(t, "check")
		c.must(t, "config", "validate")
	}
	c.set("XIAOQU_CREDENTIALS_FILE", "nothing")
	if r := c.run(t, "sync"); r.exit != exitUsage || !strings.Contains(r.err, "no such file") {
		t.Errorf("exit %d: %s", r.exit, r.err)
	}
}

func TestLoginOfTheDatabaseComesFromVault(t *testing.T) {
	t.Parallel()
	v := vaulttest.Real(t)
	c := newCLI(t)
	c.inVault(t, v)
	c.xiaoqu.Seed(10*200, 200, 200)
	owner := c.url
	member := "m_" + databaseName(t, owner)
	c.read(t, "create role "+member)
	c.read(t, "grant all on database "+databaseName(t, owner)+" to "+member)
	v.Lend(t, owner, member, 3*time.Second, 6*time.Second)
	c.set("XIAOQU_DATABASE_URL", withoutLogin(t, owner))
	c.set("XIAOQU_DATABASE_VAULT_PATH", "database/creds/xiaoqu")
	c.xiaoqu.PageDelay(time.Second) // longer than a login lasts
	c.must(t, "sync", "--log-level", "info")
	if n := v.Count("GET database/creds/"); n < 2 {
		t.Errorf("%d logins of the database for a run that outlasts one", n)
	}
	c.must(t, "status")
	if owners := c.read(t, "select distinct tableowner from pg_tables where schemaname like 'xiaoqu%'"); len(owners) != 1 || owners[0][0] != member {
		t.Errorf("the tables belong to %v", owners)
	}
	v.Call(t, http.MethodPut, "sys/leases/revoke-prefix/database/creds/xiaoqu", nil)
	if left := c.read(t, "select count(*) from pg_roles where rolname like 'v-%"+"xiaoqu-%'")[0][0]; left != "0" {
		t.Errorf("%s logins are left", left)
	}
	c.read(t, "drop owned by "+member)
	c.read(t, "drop role "+member)
}

func databaseName(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

func withoutLogin(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = nil
	return u.String()
}
