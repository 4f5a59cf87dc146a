package remotetest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

func TestEnsureIsIdempotentPerSubject(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{Strict: true})
	one := tokenOf(t, s, serviceBody)
	if !strings.HasPrefix(one, "xqak-") || tokenOf(t, s, serviceBody) != one {
		t.Error("the same subject has another token")
	}
	others := []string{
		one,
		tokenOf(t, s, `{"scopeCode":"sync","principalType":"service","serviceName":"erp"}`),
		tokenOf(t, s, `{"mobile":"13800001111"}`),
		tokenOf(t, s, `{"mobile":"13800002222"}`),
	}
	slices.Sort(others)
	if len(slices.Compact(others)) != 4 {
		t.Errorf("subjects share a token")
	}
	if n := s.Stats().Ensures; n != 5 {
		t.Errorf("%d calls counted", n)
	}
}

func TestEnsureRefuses(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	for name, tc := range map[string]struct {
		key, body string
		status    int
		code      string
	}{
		"wrong key":       {"xqok-wrong", serviceBody, 401, remotetest.Unauthenticated},
		"no key":          {"", serviceBody, 401, remotetest.Unauthenticated},
		"garbage":         {s.Key(), `x`, 400, remotetest.InvalidArgument},
		"no service name": {s.Key(), `{"scopeCode":"sync","principalType":"service"}`, 400, remotetest.InvalidArgument},
		"no scope":        {s.Key(), `{"principalType":"service","serviceName":"crm"}`, 400, remotetest.InvalidArgument},
		"other principal": {s.Key(), `{"scopeCode":"sync","principalType":"user","serviceName":"crm"}`, 400, remotetest.InvalidArgument},
		"both":            {s.Key(), `{"mobile":"13800001111","serviceName":"crm"}`, 400, remotetest.InvalidArgument},
	} {
		status, body := ensure(t, s, tc.key, tc.body)
		if status != tc.status || !strings.Contains(body, `"code":"`+tc.code+`"`) || strings.Contains(body, "xqok-") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

func TestRotationRevocationDeactivation(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{OpenKey: "xqok-old"})
	c := connect(t, s)
	s.RotateKey("xqok-new")
	if status, _ := ensure(t, s, "xqok-old", serviceBody); status != 401 {
		t.Errorf("the old key still works: %d", status)
	}
	if tokenOf(t, s, serviceBody) != c.token || s.Key() != "xqok-new" {
		t.Error("rotation changed the token")
	}
	s.RevokeTokens()
	if a := c.call("integration.context.get", `{}`); a.status != 401 || !strings.Contains(a.body, remotetest.Unauthenticated) {
		t.Errorf("revoked token: %d %s", a.status, a.body)
	}
	next := tokenOf(t, s, serviceBody)
	if next == c.token {
		t.Error("ensure gives the revoked token")
	}
	c.token = next
	if a := c.call("integration.context.get", `{}`); a.envelope.Data == nil {
		t.Errorf("new token in the old session: %d %s", a.status, a.body)
	}
	c.token = tokenOf(t, s, `{"mobile":"13800001111"}`)
	s.Deactivate("13800001111")
	if a := c.call("integration.context.get", `{}`); a.status != 401 {
		t.Errorf("deactivated person: %d", a.status)
	}
	if status, _ := ensure(t, s, s.Key(), `{"mobile":"13800001111"}`); status != 401 {
		t.Errorf("deactivated person gets a token: %d", status)
	}
}

func TestOtherScopeSeesNoChangesTools(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	c := connect(t, s)
	c.token = tokenOf(t, s, `{"scopeCode":"query","principalType":"service","serviceName":"crm"}`)
	if a := c.rpc("tools/list", `{}`); len(a.rpc.Result.Tools) != 1 {
		t.Errorf("tools: %v", toolNames(a))
	}
	if a := c.call("users.changes.list", `{}`); a.envelope.Error.Code != remotetest.PermissionDenied {
		t.Errorf("call: %s", a.body)
	}
}

func TestEnsureInParallelIsABreach(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	arrived, release := make(chan bool), make(chan bool)
	s.OnCall(func(remotetest.Call) {
		arrived <- true
		<-release
	})
	done := make(chan int)
	bodies := []string{serviceBody, serviceBody, `{"mobile":"13800001111"}`}
	key := s.Key()
	for _, body := range bodies {
		go func() {
			req := must(http.NewRequest(http.MethodPost, s.URL()+"/api/open/token/ensure", strings.NewReader(body)))
			req.Header.Set("X-Open-Key", key)
			req.Header.Set("Content-Type", "application/json")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				done <- 0
				return
			}
			_ = resp.Body.Close()
			done <- resp.StatusCode
		}()
	}
	for range bodies {
		<-arrived
	}
	close(release)
	for range bodies {
		if status := <-done; status != 200 {
			t.Errorf("status %d", status)
		}
	}
	if b := s.Breaches(); len(b) != 1 || !strings.Contains(b[0], "parallel") {
		t.Errorf("breaches: %q", b)
	}
}

func TestPersonalTokenSeesAPart(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	s.Seed(20, 0, 0)
	c := connect(t, s)
	c.token = tokenOf(t, s, `{"mobile":"13800001111"}`)
	got, _, _ := c.drain("users", nil, 0)
	if len(got) == 0 || len(got) >= 20 {
		t.Errorf("%d of 20 rows", len(got))
	}
}
