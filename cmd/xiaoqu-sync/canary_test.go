package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials/vault/vaulttest"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// mine is an operator all of whose secrets are canaries, and all that was ever
// written where somebody could read it.
type mine struct {
	*cli
	vault    *vaulttest.Server
	secrets  map[string]string // canary by what it is
	mobiles  []string
	searched map[string]*strings.Builder // text by place
}

// newMine puts the key and the database's login into Vault, where a token in a
// file leads. None of the canaries but the key and the token has a telling shape:
// only who was told of them can take them out.
func newMine(t *testing.T) *mine {
	t.Helper()
	m := &mine{cli: newCLI(t), vault: vaulttest.StandIn(t), searched: map[string]*strings.Builder{}}
	m.mobiles = []string{"13812345678", "138-1234-5679", "139 1234 5670", "+8613912345671"}
	m.secrets = map[string]string{
		"service key": "xqok-canaryKEY0123456789", "Vault token": "s.canaryVAULT0123456789",
		"database password": "canary/PASSWORD&0123456789", "secret id": "canary-SECRETID-0123456789",
	}
	m.xiaoqu.RotateKey(m.secrets["service key"])
	m.secrets["access token"] = m.exchange(t)
	m.xiaoqu.Seed(3, 3, 3)
	m.xiaoqu.PutRaw("users", "odd", `{"name":"no id `+m.mobiles[0]+`"}`)

	user := databaseName(t, m.url) + "_canary"
	m.read(t, fmt.Sprintf("create role %s superuser login password '%s'", user, m.secrets["database password"]))
	t.Cleanup(func() {
		for _, sql := range []string{"reassign owned by " + user + " to current_user", "drop owned by " + user, "drop role " + user} {
			if _, _, err := localpg.Query(context.Background(), m.url, sql); err != nil {
				t.Error(err)
			}
		}
	})
	m.vault.Put(t, "xiaoqu/prod", map[string]any{"open_key": m.secrets["service key"] + "\n"})
	m.vault.Put(t, "xiaoqu/db", map[string]any{"username": user, "password": m.secrets["database password"]})
	m.vault.Call(t, http.MethodPost, "auth/token/create", map[string]any{"id": m.secrets["Vault token"], "policies": []string{"sync"}})
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(m.secrets["Vault token"]), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"XIAOQU_OPEN_KEY": "", "XIAOQU_CREDENTIALS_SOURCE": "vault", "XIAOQU_VAULT_PATH": "xiaoqu/prod",
		"XIAOQU_VAULT_AUTH": "token_file", "XIAOQU_VAULT_TOKEN_FILE": path, "XIAOQU_VAULT_WAIT": "1s", "VAULT_ADDR": m.vault.URL,
		"XIAOQU_DATABASE_URL": withoutLogin(t, m.url), "XIAOQU_DATABASE_VAULT_PATH": "secret/data/xiaoqu/db",
		"XIAOQU_LOG_LEVEL": "debug",
	} {
		m.set(name, value)
	}
	return m
}

// exchange asks for the service's token, as the program does: it is the same for
// the same subject (contract §3.2).
func (m *mine) exchange(t *testing.T) string {
	t.Helper()
	body := strings.NewReader(`{"scopeCode":"sync","principalType":"service","serviceName":"crm"}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.xiaoqu.URL()+"/api/open/token/ensure", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Open-Key", m.xiaoqu.Key())
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Token string }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Token == "" {
		t.Fatalf("no token: %v", err)
	}
	return answer.Token
}

// echo is one text with the mobile numbers, the key, the token and further secrets
// that the program was given, as a careless server would repeat them. Nobody can
// take out what he was never told, so each scenario names what it knows.
func (m *mine) echo(known ...string) string {
	texts := slices.Clone(m.mobiles)
	for _, what := range append(known, "service key", "access token") {
		texts = append(texts, m.secrets[what])
	}
	return strings.Join(texts, " / ")
}

func (m *mine) wrote(place, text string) {
	if m.searched[place] == nil {
		m.searched[place] = &strings.Builder{}
	}
	m.searched[place].WriteString(text)
}

// do runs a verb in both forms.
func (m *mine) do(t *testing.T, args string) {
	t.Helper()
	for _, form := range []string{"text", "json"} {
		r := m.run(t, append(strings.Fields(args), "--output", form, "--log-format", form)...)
		m.wrote("standard output, "+form, r.out)
		m.wrote("standard error, log as "+form, r.err)
	}
}

// dump adds every table of the two schemas, row by row as text.
func (m *mine) dump(t *testing.T) {
	t.Helper()
	for _, table := range m.read(t, "select format('%I.%I', schemaname, tablename) from pg_tables where schemaname in ('xiaoqu', 'xiaoqu_sync')") {
		for _, row := range m.read(t, "select r::text from "+table[0]+" r") {
			m.wrote("table "+table[0], row[0]+"\n")
		}
	}
}

// holdsRecords tells the places where people's numbers belong: they are the data.
func holdsRecords(place string) bool {
	return strings.HasPrefix(place, "table xiaoqu.") || place == "table xiaoqu_sync.quarantine" || strings.Contains(place, "stage")
}

// search looks for every canary in every place, and says where it looked.
func (m *mine) search(t *testing.T) {
	t.Helper()
	redacted := false
	for _, place := range slices.Sorted(maps.Keys(m.searched)) {
		text := m.searched[place].String()
		t.Logf("searched: %s (%d bytes, %d redactions)", place, len(text), strings.Count(text, "[redacted]"))
		redacted = redacted || strings.Contains(text, "[redacted]")
		for what, canary := range m.secrets {
			for _, form := range []string{canary, url.QueryEscape(canary), strings.ReplaceAll(canary, "&", `\u0026`)} {
				if at := strings.Index(text, form); at >= 0 {
					t.Errorf("the %s is in %s: …%s…", what, place, text[max(0, at-80):min(len(text), at+60)])
				}
			}
		}
		for _, mobile := range m.mobiles {
			if strings.Contains(text, mobile) && !holdsRecords(place) {
				t.Errorf("the mobile number %s is in %s", mobile, place)
			}
		}
	}
	if !redacted {
		t.Error("nothing was redacted: the test looks in the wrong places")
	}
}

func TestCanariesAreNowhere(t *testing.T) {
	m := newMine(t)
	m.peaceful(t)
	m.remoteTrouble(t)
	m.vaultTrouble(t)
	m.panics(t)
	m.process(t)
	m.dump(t)
	m.search(t)
}

// peaceful runs every verb where all is well.
func (m *mine) peaceful(t *testing.T) {
	t.Helper()
	for _, args := range []string{
		"check", "migrate --dry-run", "migrate", "sync", "sync --strict", "status", "check", "rebuild users --dry-run",
		"rebuild users --abort", "rebuild users", "verify", "purge --older-than 90d", "config validate", "config show",
		"quarantine list", "quarantine replay", "config schema", "version", "--help", "token --help",
	} {
		m.do(t, args)
	}
	r := m.run(t, "token", "personal", m.mobiles[0]) // whose output is the token
	m.wrote("standard error, log as text", r.err)
}

// remoteTrouble has the remote echo all that it was ever told.
func (m *mine) remoteTrouble(t *testing.T) {
	t.Helper()
	all := m.echo("Vault token", "database password")
	page, ensure := remotetest.OnTool("users.changes.list", 0), remotetest.OnKind("ensure", 0)
	for _, fault := range []remotetest.Fault{
		{Match: page, Do: remotetest.Fail(remotetest.Failure{Code: remotetest.InvalidArgument, Message: all})},
		{Match: page, Do: remotetest.Fail(remotetest.Failure{Code: remotetest.PermissionDenied, Message: all})},
		{Match: page, Do: remotetest.Answer(remotetest.Reply{Status: 400, Body: []byte(all)})},
		{Match: page, Do: remotetest.Answer(remotetest.Reply{Body: []byte("data: " + all + "\n\n")})},
		{Match: page, Do: remotetest.Redirect("http://127.0.0.1:1/" + url.PathEscape(all))},
		{Match: ensure, Do: remotetest.Answer(remotetest.Reply{Status: 401, Body: []byte(all)})},
		{Match: ensure, Do: remotetest.Answer(remotetest.Reply{Status: 400, Header: map[string]string{"X-Request-Id": all}, Body: []byte(`{"message":"` + all + `"}`)})},
		{Match: ensure, Do: remotetest.Redirect("http://127.0.0.1:1/" + url.PathEscape(all))},
	} {
		fault.Times = -1
		m.xiaoqu.Inject(fault)
		m.do(t, "check")
		if !fault.Match(remotetest.Call{Kind: "ensure"}) { // where sync would wait for a new key
			m.do(t, "sync users")
			m.do(t, "rebuild users")
		}
		m.xiaoqu.ClearFaults()
	}
	m.xiaoqu.SetContext(remotetest.Context{PrincipalType: all})
	m.do(t, "sync")
	m.do(t, "check")
	m.do(t, "status")
	m.xiaoqu.SetContext(remotetest.Context{})
}

// vaultTrouble has Vault echo it, and gives it wrong things.
func (m *mine) vaultTrouble(t *testing.T) {
	t.Helper()
	before := slices.Clone(m.env)
	refuse := func(path string, status int, known string) {
		words, err := json.Marshal(map[string]any{"errors": []string{m.echo(known)}})
		if err != nil {
			t.Fatal(err)
		}
		m.vault.Fault(vaulttest.Answer(path, status, string(words)))
	}
	for _, path := range []string{"secret/", "sys/"} {
		refuse(path, 403, "Vault token")
		m.do(t, "check")
		m.do(t, "status")
	}
	m.set("XIAOQU_VAULT_AUTH", "approle")
	m.set("XIAOQU_VAULT_ROLE_ID", "role")
	m.set("XIAOQU_VAULT_SECRET_ID", m.secrets["secret id"])
	refuse("auth/", 400, "secret id")
	m.do(t, "sync")
	m.vault.Fault(nil)
	m.env = before
	// The login of the database, refused.
	m.vault.Put(t, "xiaoqu/db", map[string]any{"username": "nobody", "password": m.secrets["database password"]})
	m.do(t, "status")
	m.set("XIAOQU_DATABASE_VAULT_PATH", "")
	m.set("XIAOQU_DATABASE_URL", "postgres://nobody:"+url.QueryEscape(m.secrets["database password"])+"@127.0.0.1:1/x")
	for _, args := range []string{"status", "sync", "config show", "config validate"} {
		m.do(t, args)
	}
	// Secrets where they don't belong.
	m.env = append(slices.Clone(before), "XIAOQU_LOG_LEVEL="+m.secrets["service key"], "XIAOQU_BASE_URL=https://u:"+url.QueryEscape(m.secrets["database password"])+"@h")
	m.do(t, "config show")
	m.env = before
}

// panicky is a remote whose pages are a bug.
type panicky struct {
	*remote.Client
	text string
}

func (p panicky) Changes(context.Context, remote.Query) (*remote.Page, error) {
	panic(errors.New(p.text))
}

// panics has bugs quote everything: in a run, and in a verb itself.
func (m *mine) panics(t *testing.T) {
	t.Helper()
	m.vaultHasTheLogin(t)
	for _, form := range []outputMode{outputText, outputJSON} {
		var out, errOut strings.Builder
		p := newProgram(m.env, &out, &errOut)
		p.output = form
		p.finish(guarded(func() error {
			cfg, err := p.load(config.Input{})
			if err != nil {
				return err
			}
			a, err := p.open(t.Context(), cfg)
			if err != nil {
				return err
			}
			defer a.close()
			client, err := a.remote(t.Context(), 0)
			if err != nil {
				return err
			}
			report, err := a.run(t.Context(), panicky{client, m.echo("Vault token", "database password")}, []string{"users"}, 0, (*sync.Engine).Sync)
			if err != nil {
				return err
			}
			err = report.err(false)
			if !strings.Contains(fmt.Sprint(err), "panic") {
				t.Errorf("no panic: %v", err)
			}
			p.finish(err)
			panic(m.echo("Vault token", "database password"))
		}))
		if !strings.Contains(out.String()+errOut.String(), "panics(") {
			t.Errorf("there is no stack in\n%s%s", out.String(), errOut.String())
		}
		m.wrote("panic, "+string(form)+" and log", out.String()+errOut.String())
	}
	m.do(t, "status")
}

func (m *mine) vaultHasTheLogin(t *testing.T) {
	t.Helper()
	m.vault.Put(t, "xiaoqu/db", map[string]any{"username": databaseName(t, m.url) + "_canary", "password": m.secrets["database password"]})
}

// process looks at the real program from outside, as others on the machine can.
func (m *mine) process(t *testing.T) {
	t.Helper()
	m.xiaoqu.PageDelay(time.Second)
	asked := make(chan struct{}, 100)
	m.xiaoqu.OnCall(func(remotetest.Call) { asked <- struct{}{} })
	cmd := m.start(t, build(t), "rebuild", "users")
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	select {
	case <-asked:
	case <-time.After(30 * time.Second):
		t.Fatal("the program asks nothing")
	}
	for _, name := range []string{"cmdline", "environ"} {
		path := fmt.Sprintf("/proc/%d/%s", cmd.Process.Pid, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Skipf("%s can't be read here: %v", path, err)
		}
		m.wrote("/proc/PID/"+name, string(text))
	}
}
