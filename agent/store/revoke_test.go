package store_test

import (
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// Who revokes a token because it was stolen does not want its last wish done.
func TestWhatATokenAskedForEndsWithIt(t *testing.T) {
	f := setUp(t)
	for _, name := range []string{"stolen", "other"} {
		must(f.AddToken(t.Context(), name, []string{"*"}, time.Hour))(t)
	}
	begin := func(key, door, caller string) {
		task := newTask(key)
		task.Door, task.Caller = door, caller
		f.begun(t, task)
	}
	begin("runs", "api", "stolen")
	f.claimed(t)
	begin("waits", "api", "stolen")
	begin("of another", "api", "other")
	begin("of a platform", "relay", "stolen")
	if !must(f.RevokeToken(t.Context(), "stolen"))(t) {
		t.Fatal("there is no such token")
	}
	want := map[string]agent.State{"runs": agent.Running, "waits": agent.Cancelled, "of another": agent.Accepted, "of a platform": agent.Accepted}
	for key, state := range want {
		if got := value[string](t, f, "select state from xiaoqu_sync.agent_tasks where key = $1", key); got != string(state) {
			t.Errorf("what %s is %s, want %s", key, got, state)
		}
	}
}
