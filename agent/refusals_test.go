package agent_test

import (
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// A platform that gives its first answer for ever hears a refusal again even when
// the call would be taken by now; others mend the input under the same key.
func TestARefusalIsKeptForWhoWantsItKept(t *testing.T) {
	h := newHouse(t)
	h.put(t, 1, "1", `{}`)
	off := h.service(t, func(o *agent.Options) { o.Allow = nil })
	on := h.service(t, func(o *agent.Options) { o.Allow = []string{"sync.run"} })
	for _, keep := range []bool{true, false} {
		key := map[bool]string{true: "kept ", false: "mended "}[keep]
		say := func(s *agent.Service, capability, input, key string) (agent.Answer, error) {
			c := call(capability, input, key)
			c.KeepRefusals, c.ReplyTo = keep, []byte(`{}`)
			return s.Do(t.Context(), c)
		}
		_, err := say(off, "records_get", `{"resource":"contracts"}`, key+"input")
		failure(t, err, agent.Invalid, "invalid_input")
		_, err = say(off, "sync_run", `{}`, key+"switched on")
		failure(t, err, agent.NotFound, "unknown_capability")
		task, err := say(on, "sync_run", `{}`, key+"switched off")
		if err != nil {
			t.Fatal(err)
		}

		_, mended := say(off, "records_get", getOne, key+"input")
		a, switchedOn := say(on, "sync_run", `{}`, key+"switched on")
		still, switchedOff := say(off, "sync_run", `{}`, key+"switched off")
		if !keep {
			if mended != nil || switchedOn != nil {
				t.Errorf("not taken later: %v, %v", mended, switchedOn)
			}
			failure(t, switchedOff, agent.NotFound, "unknown_capability")
			continue
		}
		failure(t, mended, agent.Invalid, "key_reused")
		failure(t, switchedOn, agent.NotFound, "unknown_capability")
		if a.Task == nil || a.Task.ReplyTo != nil {
			t.Errorf("somebody would be told of the end of what was refused: %+v", a.Task)
		}
		if switchedOff != nil || still.Task == nil || still.Task.ID != task.Task.ID {
			t.Errorf("a task that was taken is not known any more: %v", switchedOff)
		}
	}
}
