package main

import (
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// A fault of the wire that passes costs a line in the log; one that stays ends the run with its name. The rows that were
// there before stay, and the next run brings the rest.
func TestAFaultOfTheWireHasItsLineAndItsExitCode(t *testing.T) {
	const (
		waiting = "the remote did not answer; waiting to ask again"
		once    = 1
		always  = -1
	)
	limited := remotetest.Failure{Place: remotetest.HTTPTop, Code: remotetest.RateLimited, RetryAfter: "1"}
	refused := remotetest.Failure{Place: remotetest.HTTPTop, Code: remotetest.Unauthenticated}
	for _, c := range []struct {
		name  string
		do    remotetest.Effect
		times int
		exit  int
		code  string
		says  []string
	}{
		{"502 with HTML", remotetest.HTML(502), once, exitDone, "", []string{waiting, "UNREACHABLE", "HTTP 502 text/html"}},
		{"202 to a call", remotetest.Answer(remotetest.Reply{Status: 202}), once, exitDone, "", []string{waiting, "UNREACHABLE", "an empty answer"}},
		{"a reset before the headers", remotetest.Cut(remotetest.BeforeHeaders, remotetest.Reset), once, exitDone, "", []string{waiting, "UNREACHABLE"}},
		{"a cut in a character", remotetest.Cut(remotetest.MidRune, remotetest.EOF), once, exitDone, "", []string{waiting, "UNREACHABLE"}},
		{"a clean end in the JSON", remotetest.Cut(remotetest.MidData, remotetest.Clean), once, exitDone, "", []string{waiting, "MALFORMED", "the stream ended in the middle of its JSON"}},
		{"an empty stream", remotetest.SSE(""), once, exitDone, "", []string{waiting, "the stream ended before the answer"}},
		{"headers and then nothing", remotetest.Hang(true), once, exitDone, "", []string{waiting, "no answer within 2s"}},
		{"429", remotetest.Fail(limited), once, exitDone, "", []string{waiting, "RATE_LIMITED"}},
		{"401", remotetest.Fail(refused), once, exitDone, "", []string{"the remote refused the token; asking for a new one"}},
		{"401 for ever", remotetest.Fail(refused), always, exitCredentials, "UNAUTHENTICATED", []string{"asking for a new one"}},
		{"a redirect", remotetest.Redirect("http://localhost:1/mcp"), always, exitContract, "MALFORMED", []string{"a redirect to localhost:1 was refused"}},
		{"a page to log in", remotetest.HTML(200), always, exitContract, "MALFORMED", []string{"HTTP 200 text/html in place of a JSON-RPC response"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := newCLI(t)
			n.set("XIAOQU_REQUEST_TIMEOUT", "2s")
			n.xiaoqu.Seed(5, 0, 0)
			n.must(t, "sync", "users")
			n.xiaoqu.Seed(5, 0, 0)
			n.xiaoqu.Inject(remotetest.Fault{Match: remotetest.OnPage("users", 0), Times: c.times, Do: c.do})
			r := n.run(t, "sync", "users", "--output", "json")
			if w := r.envelope(t); r.exit != c.exit || w.Error.Code != c.code {
				t.Errorf("exit %d: %s", r.exit, r.out)
			}
			for _, text := range c.says {
				if !strings.Contains(r.err, text) {
					t.Errorf("no %q in\n%s", text, r.err)
				}
			}
			n.xiaoqu.ClearFaults()
			n.must(t, "sync", "users")
			n.equal(t, "users")
		})
	}
}
