package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

func TestPersonalTokenGoesIntoAPipe(t *testing.T) {
	const mobile = "13812345678"
	c := newCLI(t)
	c.set("XIAOQU_DATABASE_URL", "postgres://127.0.0.1:1/none") // it needs no database
	c.set("XIAOQU_LOG_LEVEL", "debug")
	token := strings.TrimSpace(c.must(t, "token", "personal", mobile).out)
	if !strings.HasPrefix(token, "xqak-") || strings.Contains(token, "\n") {
		t.Errorf("got %q", token)
	}
	r := c.must(t, "token", "personal", mobile, "--output", "json")
	if !strings.Contains(r.out, `"token": "`+token+`"`) || !strings.Contains(r.out, `"principal_type": "user_delegated"`) {
		t.Errorf("got %s", r.out)
	}
	if strings.Contains(r.err, token) || strings.Contains(r.err, mobile) {
		t.Errorf("the log gives the token or the number away:\n%s", r.err)
	}
	if help := c.must(t, "--help").out; strings.Contains(help, "token ") {
		t.Errorf("the verb is not hidden:\n%s", help)
	}
	c.xiaoqu.Deactivate(mobile)
	if r := c.run(t, "token", "personal", mobile); r.exit != exitCredentials || r.out != "" {
		t.Errorf("a deactivated person: exit %d, %s%s", r.exit, r.out, r.err)
	}
	if r := c.run(t, "token", "personal", "not a number\x00"); r.exit != exitCredentials {
		t.Errorf("no number: exit %d, %s", r.exit, r.err)
	}
}

func TestPersonalTokenIsNotShownWithoutReveal(t *testing.T) {
	hidden, shown := personalToken{Principal: "user_delegated"}, personalToken{Token: "xqak-1", Shown: true}
	for _, form := range []outputMode{outputText, outputJSON} {
		var out bytes.Buffer
		p := newProgram(nil, &out, &out)
		p.output = form
		p.print(hidden)
		if strings.Contains(out.String(), "xqak") || !strings.Contains(out.String(), "shown") && !strings.Contains(out.String(), "--reveal") {
			t.Errorf("got %s", out.String())
		}
		out.Reset()
		p.print(shown)
		if !strings.Contains(out.String(), "xqak-1") {
			t.Errorf("got %s", out.String())
		}
	}
}

func TestPersonalTokenOpensNoSync(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(1, 1, 1)
	c.xiaoqu.SetContext(remotetest.Context{PrincipalType: "user_delegated"})
	if r := c.run(t, "sync"); r.exit != exitRefused {
		t.Errorf("exit %d: %s", r.exit, r.err)
	}
}
