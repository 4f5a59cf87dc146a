package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// doors is a process with all doors open.
type doors struct {
	*process
	url, token string
}

func (c *cli) doors(t *testing.T, token string) doors {
	t.Helper()
	address := freeAddress(t)
	p := c.launch(t, exec.Command(build(t), "agent", "serve", "--config", c.lookup("XIAOQU_CONFIG_FOR_TEST")), "XIAOQU_AGENTS_LISTEN="+address, "XIAOQU_LOG_LEVEL=info")
	d := doors{process: p, url: "http://" + address, token: token}
	eventually(t, "the doors are open", func() bool {
		res, err := http.Get(d.url + "/healthz")
		if err != nil {
			return false
		}
		defer func() { _ = res.Body.Close() }()
		return res.StatusCode == http.StatusOK
	})
	return d
}

// token makes one for the HTTP door.
func (c *cli) token(t *testing.T, scope string) string {
	t.Helper()
	var made struct{ Token string }
	if err := json.Unmarshal(c.agent(t, "token", "add", "test", "--scope", scope).envelope(t).Data, &made); err != nil || made.Token == "" {
		t.Fatalf("no token: %v", err)
	}
	return made.Token
}

func (d doors) call(t *testing.T, method, path, body string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestDoorsAreOpenUntilASignal(t *testing.T) {
	t.Parallel()
	c := withAgents(t, agent.Writing()...)
	d := c.doors(t, c.token(t, "read"))
	if status, text := d.call(t, "POST", "/api/v1/capabilities/mirror.freshness", "{}"); status != 200 || !strings.Contains(text, `"live_rows":150`) {
		t.Errorf("%d %s", status, text)
	}
	if strings.Contains(d.log.String(), "agents cannot read") {
		t.Errorf("the reader's role can read:\n%s", d.log)
	}
	if status, text := d.call(t, "POST", "/relay", `{"type":"ping"}`); status != 401 {
		t.Errorf("an envelope without a signature: %d %s", status, text)
	}
	if status, text := d.call(t, "GET", "/artifacts/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ""); status != 404 {
		t.Errorf("a document that is not there: %d %s", status, text)
	}
	exit, took := d.stop(t, syscall.SIGTERM)
	if exit != 143 || took > 10*time.Second {
		t.Errorf("exit %d after %v", exit, took)
	}
	for _, canary := range []string{"canary", d.token} {
		if strings.Contains(d.log.String(), canary) {
			t.Errorf("%q is in the log:\n%s", canary, d.log)
		}
	}
}

// A process that dies at a task leaves it to the next one, which ends it once.
func TestATaskOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	c := withAgents(t, agent.Writing()...)
	c.xiaoqu.Inject(remotetest.Fault{Times: -1, Do: remotetest.Fail(remotetest.Failure{Code: remotetest.RateLimited, RetryAfter: "20"})})
	first := c.doors(t, c.token(t, "sync.run"))
	begin := func(d doors) string {
		_, text := d.call(t, "POST", "/api/v1/capabilities/sync.run", `{"resources":["users"]}`, "Idempotency-Key", "once")
		return text
	}
	begun := begin(first)
	first.logs(t, "waiting to ask again", 1)
	_ = first.Process.Kill()
	<-first.ended
	c.xiaoqu.ClearFaults()
	c.xiaoqu.Put("users", "neu", `{"name":"新"}`)
	second := c.doors(t, first.token)
	var task struct{ Data struct{ ID string } }
	if err := json.Unmarshal([]byte(begun), &task); err != nil || task.Data.ID == "" {
		t.Fatal(begun)
	}
	eventually(t, "the task completes", func() bool {
		_, text := second.call(t, "GET", "/api/v1/tasks/"+task.Data.ID, "")
		return strings.Contains(text, `"state":"completed"`)
	})
	if again := begin(second); !strings.Contains(again, `"inserted":1`) {
		t.Errorf("the same key: %s", again)
	}
	if n := c.read(t, "select count(*) from xiaoqu_sync.agent_tasks"); n[0][0] != "1" {
		t.Errorf("%s tasks", n[0][0])
	}
}

// Who breaks a call off does not want it done by whoever opens the doors next.
func TestACallThatIsBrokenOffIsNotDoneLater(t *testing.T) {
	t.Parallel()
	c := withAgents(t, agent.Writing()...)
	c.xiaoqu.Inject(remotetest.Fault{Times: -1, Do: remotetest.Fail(remotetest.Failure{Code: remotetest.RateLimited, RetryAfter: "20"})})
	p := c.launch(t, exec.Command(build(t), "agent", "call", "sync.run", "--input", `{"resources":["users"]}`, "--config", c.lookup("XIAOQU_CONFIG_FOR_TEST")), "XIAOQU_LOG_LEVEL=info")
	p.logs(t, "waiting to ask again", 1)
	if exit, took := p.stop(t, syscall.SIGINT); exit != 130 || took > 10*time.Second {
		t.Errorf("exit %d after %v", exit, took)
	}
	if state := c.read(t, "select state from xiaoqu_sync.agent_tasks"); len(state) != 1 || state[0][0] != "cancelled" {
		t.Errorf("the task is %v", state)
	}
}
