package store_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent/store"
)

func TestATokenOpensUntilItIsRevokedOrExpires(t *testing.T) {
	f := setUp(t)
	secret := must(f.AddToken(t.Context(), "crm", []string{"read", "sync.run"}, time.Hour))(t)
	forever := must(f.AddToken(t.Context(), "cron", nil, 0))(t)
	if len(secret) != len("xqa_")+43 || !strings.HasPrefix(secret, "xqa_") || secret == forever {
		t.Errorf("%d characters", len(secret))
	}
	opens := func(secret string) string {
		t.Helper()
		name, scopes, ok, err := f.Token(t.Context(), secret)
		if err != nil || ok != (name != "") {
			t.Fatal(ok, err)
		}
		return strings.Join(append([]string{name}, scopes...), " ")
	}
	if got := opens(secret); got != "crm read sync.run" {
		t.Error(got)
	}
	if got := opens(forever); got != "cron" {
		t.Error(got)
	}
	for _, wrong := range []string{"", "crm", secret + "x", secret[:10], strings.Repeat("x", 100000), "\x00"} {
		if got := opens(wrong); got != "" {
			t.Error(got)
		}
	}
	all := must(f.Tokens(t.Context()))(t)
	want := []store.TokenInfo{{Name: "crm", Scopes: []string{"read", "sync.run"}}, {Name: "cron", Scopes: []string{}}}
	if len(all) != 2 || all[0].ExpiresAt == nil || all[1].ExpiresAt != nil || all[0].CreatedAt.IsZero() {
		t.Fatalf("%+v", all)
	}
	for i := range all {
		all[i].CreatedAt, all[i].ExpiresAt = time.Time{}, nil
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
	if value[bool](t, f, "select exists (select from xiaoqu_sync.agent_tokens k where strpos(k::text, $1) > 0)", secret[4:]) {
		t.Error("a token is stored")
	}
	f.exec(t, "update xiaoqu_sync.agent_tokens set expires_at = now() where name = 'crm'")
	if got := opens(secret); got != "" {
		t.Errorf("expired: %s", got)
	}
	for _, want := range []bool{true, false} {
		if got := must(f.RevokeToken(t.Context(), "cron"))(t); got != want {
			t.Errorf("revoked %v, want %v", got, want)
		}
	}
	if got := opens(forever); got != "" {
		t.Errorf("revoked: %s", got)
	}
}

func TestATokensNameIsItsOwn(t *testing.T) {
	f := setUp(t)
	must(f.AddToken(t.Context(), "crm", nil, 0))(t)
	if _, err := f.AddToken(t.Context(), "crm", nil, 0); !errors.Is(err, store.ErrTokenExists) {
		t.Error(err)
	}
	for _, name := range []string{"", "a b", "名", strings.Repeat("a", 65), "a\x00"} {
		if _, err := f.AddToken(t.Context(), name, nil, 0); !errors.Is(err, store.ErrTokenName) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestACodeBindsOneUser(t *testing.T) {
	f := setUp(t)
	code := must(f.AddCode(t.Context(), "account-7", "张伟", time.Hour))(t)
	if !regexp.MustCompile(`^([0-9A-HJKMNP-TV-Z]{4}-){3}[0-9A-HJKMNP-TV-Z]{4}$`).MatchString(code) {
		t.Error(code)
	}
	redeem := func(code, uid string) string {
		t.Helper()
		ref, display, ok, err := f.Redeem(t.Context(), code, uid)
		if err != nil || ok != (ref != "") {
			t.Fatal(ok, err)
		}
		return ref + display
	}
	for _, wrong := range []string{"", "0000-0000-0000-0000", code[:14], strings.Repeat("A", 100000)} {
		if got := redeem(wrong, "u1"); got != "" {
			t.Error(got)
		}
	}
	if got := redeem(code, ""); got != "" {
		t.Errorf("nobody: %s", got)
	}
	// As people type it.
	typed := " " + strings.NewReplacer("-", " ", "0", "o", "1", "l").Replace(strings.ToLower(code))
	for _, as := range []string{typed, code} { // the second time an answer was lost
		if got := redeem(as, "u1"); got != "account-7张伟" {
			t.Errorf("%q gives %q", as, got)
		}
	}
	if got := redeem(code, "u2"); got != "" {
		t.Errorf("somebody else: %s", got)
	}
	f.exec(t, "update xiaoqu_sync.agent_codes set expires_at = now()")
	if got := redeem(code, "u1"); got != "" {
		t.Errorf("expired: %s", got)
	}
}
