package alert

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// Class is a kind of event.
type Class string

// The classes of events.
const (
	Halt        Class = "halt"        // a resource's run failed, and trying again will not help
	Credentials Class = "credentials" // the service key is refused, or cannot be one
	Held        Class = "held"        // the deletion fuse holds a rebuild
	Stale       Class = "stale"       // the data is older than it may be
	Drift       Class = "drift"       // a verification found differences that no change explains
	Recovered   Class = "recovered"   // one of the above is over
	trial       Class = "test"        // somebody tries the targets out
)

// Classes are those that a target may ask for.
func Classes() []Class { return []Class{Halt, Credentials, Held, Stale, Drift, Recovered} }

// Cause is what the caller makes of the error in an outcome.
type Cause struct {
	Code        string // the error's one name
	RequestID   string // of the remote's answer, "" when there is none
	Credentials bool   // the service key is to blame
	// Passing means: nobody need act, the next run may succeed. What does not pass
	// shows when the data gets old.
	Passing bool
}

// condition is a class of trouble that a resource has.
type condition struct {
	resource string
	class    Class
}

// state is what became of a condition; the zero value says that it is over.
type state struct {
	on                      bool
	code, detail, requestID string
}

// read says what an outcome means for the conditions of its resource. Those it
// says nothing about stay as they are.
func read(o sync.Outcome, judge func(error) Cause) map[condition]state {
	found := map[condition]state{}
	for _, class := range ended(o) {
		found[condition{o.Resource, class}] = state{}
	}
	if o.Err == nil || sync.NotApplicable(o.Err) || errors.Is(o.Err, mirror.ErrMoved) {
		return found // the last two are mistakes of somebody who sits there and reads the answer
	}
	c := judge(o.Err)
	s := state{on: true, code: c.Code, requestID: cmp.Or(c.RequestID, o.RequestID)}
	class := Halt
	switch {
	case o.Result == sync.Held:
		class = Held
		if d := o.Difference; d != nil {
			s.detail = fmt.Sprintf("%d/%d", d.Deletes(), d.Live)
		}
	case o.Result == sync.Drifted:
		class = Drift
		if d := o.Difference; d != nil {
			s.detail = fmt.Sprint(d.Inserted + d.Updated + d.Revived + d.Deletes())
		}
	case o.Result != sync.Failed || c.Passing && !c.Credentials:
		return found
	case c.Credentials:
		class = Credentials
	}
	found[condition{o.Resource, class}] = s
	return found
}

// ended are the conditions that an outcome shows to be over. A round says nothing
// about rows that nobody changed since, so only a verification or a rebuild ends a
// drift.
func ended(o sync.Outcome) []Class {
	switch o.Result {
	case sync.Synced:
		switch o.Mode {
		case "apply", "accept": // the remote was not asked
			return []Class{Held, Drift}
		case "rebuild":
			return []Class{Halt, Credentials, Held, Drift}
		}
		return []Class{Halt, Credentials, Held}
	case sync.Verified:
		return []Class{Credentials, Drift}
	case sync.Drifted, sync.Planned:
		return []Class{Credentials}
	case sync.Aborted:
		return []Class{Held}
	}
	return nil
}

// wants tells whether a target with this list of classes is told of one; an empty
// list is all of them.
func wants(events []Class, c Class) bool { return len(events) == 0 || slices.Contains(events, c) }
