package remote_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

func TestEveryCallIsObservedOnce(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	sim, c := simulate(t, remotetest.Options{}, func(o *remote.Options) {
		o.Observe = func(tool string, code remote.Code, took time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if took <= 0 {
				t.Errorf("%s took %v", tool, took)
			}
			seen[tool+" "+string(code)]++
		}
	})
	sim.Inject(remotetest.Fault{
		Match: remotetest.OnTool("users.changes.list", 1),
		Do:    remotetest.Fail(remotetest.Failure{Code: remotetest.RateLimited}),
	})
	ask := func(ctx context.Context) { _, _ = c.Changes(ctx, remote.Query{Resource: "users"}) }
	if _, err := c.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Identity(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask(t.Context())
	ask(t.Context())
	stopped, stop := context.WithCancel(t.Context())
	stop()
	ask(stopped)
	want := map[string]int{
		"initialize ": 1, "tools/list ": 1, "integration.context.get ": 1,
		"users.changes.list RATE_LIMITED": 1, "users.changes.list ": 1,
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}
