package main

import (
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// TestWhatTheRemoteSaysLeavesNoSecretBehind quotes secrets and mobile numbers
// in every text that the remote can write, and looks everywhere.
func TestWhatTheRemoteSaysLeavesNoSecretBehind(t *testing.T) {
	canaries := []string{"13812345678", "138-1234-5678", "139 1234 5678", "xqak-canary0123456789", "xqok-canary0123456789", "pw12345canary"}
	text := "no " + strings.Join(canaries[:5], " / ") + " postgres://u:pw12345canary@h/d"
	prepare := map[string]func(*cli){
		"an error's message": func(c *cli) {
			c.xiaoqu.Inject(remotetest.Fault{
				Match: remotetest.OnTool("users.changes.list", 1), Times: -1,
				Do: remotetest.Fail(remotetest.Failure{Code: remotetest.InvalidArgument, Message: text}),
			})
		},
		"the principal's type": func(c *cli) { c.xiaoqu.SetContext(remotetest.Context{PrincipalType: text}) },
	}
	for name, spoil := range prepare {
		t.Run(name, func(t *testing.T) {
			c := newCLI(t)
			c.set("XIAOQU_LOG_LEVEL", "debug")
			c.xiaoqu.Seed(3, 3, 3)
			spoil(c)
			var seen strings.Builder
			for _, args := range []string{"sync", "sync --output json", "status", "status --output json", "check", "check --output json"} {
				r := c.run(t, strings.Fields(args)...)
				seen.WriteString(r.out + r.err)
			}
			for _, row := range c.read(t, "select r::text from xiaoqu_sync.runs r union all select s::text from xiaoqu_sync.state s") {
				seen.WriteString(row[0])
			}
			for _, canary := range append(canaries, c.xiaoqu.Key()) {
				if strings.Contains(seen.String(), canary) {
					t.Errorf("%s got out", canary)
				}
			}
			if !strings.Contains(seen.String(), "[redacted]") {
				t.Error("nothing was redacted: the test looks in the wrong place")
			}
		})
	}
}
