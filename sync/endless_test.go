package sync_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// TestARoundThatGetsNowhereEnds holds for circles of cursors and for fresh
// cursors without end that bring nothing new.
func TestARoundThatGetsNowhereEnds(t *testing.T) {
	for name, c := range map[string]struct {
		do   remotetest.Effect
		says string
	}{
		"a circle of two":   {remotetest.Cycle(2), "already used"},
		"a circle of fifty": {remotetest.Cycle(50), "already used"},
		"fresh cursors":     {remotetest.Endless(), "no new record"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *remotetest.Options) { o.Strict = false })
			w.xiaoqu.Seed(520, 0, 0) // more pages than the longest circle
			w.xiaoqu.Inject(remotetest.Fault{Match: remotetest.OnTool("users.changes.list", 0), Times: -1, Do: c.do})
			o := w.run(t.Context(), "users")["users"]
			var e *remote.Error
			if o.Result != sync.Failed || !errors.As(o.Err, &e) || e.Code != remote.Malformed || !strings.Contains(e.Message, c.says) {
				t.Errorf("%s, %v", o.Result, o.Err)
			}
			if token := w.read(t, "select sync_token from xiaoqu_sync.state"); token[0][0] != "" {
				t.Error("the token moved")
			}
		})
	}
}
