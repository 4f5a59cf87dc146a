package sync

import (
	"errors"
	"sync/atomic"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// memory is what an engine keeps from one run to the next. A daemon's runs may
// overlap, of different resources.
type memory struct {
	tools   *atomic.Pointer[[]string] // that the remote offered last
	failing chan map[string]string    // resource to the code of its last failure; the map is held by whoever took it
}

func newMemory() memory {
	m := memory{tools: new(atomic.Pointer[[]string]), failing: make(chan map[string]string, 1)}
	m.failing <- map[string]string{}
	return m
}

// known are the tools that were offered; nil when that is to be asked.
func (m memory) known() []string {
	if tools := m.tools.Load(); tools != nil {
		return *tools
	}
	return nil
}

func (m memory) learn(tools []string) { m.tools.Store(&tools) }

// note takes in how a run ended. again tells that the resource's last run
// failed in the same way: nobody has to be told twice as loudly.
func (m memory) note(resource string, r Result, err error) (again bool) {
	var e *remote.Error
	if errors.As(err, &e) && (e.Code == remote.PermissionDenied || e.Code == remote.InvalidArgument) {
		m.tools.Store(nil) // a tool may have gone or changed
	}
	failing := <-m.failing
	defer func() { m.failing <- failing }()
	if r != Failed && r != Held && r != Drifted {
		if r != Interrupted && r != SteppedAside {
			delete(failing, resource)
		}
		return false
	}
	code, _ := codeOf(err)
	again = failing[resource] == code
	failing[resource] = code
	return again
}
