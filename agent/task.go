package agent

import (
	"context"
	"encoding/json"
	"time"
)

// State is where a task stands.
type State string

// A task is Accepted, then Running; a task that lets a person choose stands at
// Choosing between its proposals and the choice, and is Accepted again after it.
// Completed, Failed and Cancelled are final.
const (
	Accepted  State = "accepted"
	Running   State = "running"
	Choosing  State = "choosing"
	Completed State = "completed"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Final reports whether the task will not change any more.
func (s State) Final() bool { return s == Completed || s == Failed || s == Cancelled }

// Task is a call that is done once, as PostgreSQL holds it.
type Task struct {
	ID         string // unguessable
	Door, Key  string // unique together
	Caller     string
	Capability string
	Input      json.RawMessage
	ReplyTo    json.RawMessage
	State      State
	Choose     bool // gathers proposals first
	Proposals  []Proposal
	Chosen     string // a proposal's id
	Result     *Result
	Failure    *Failure
	Links      []Link // of the result's documents; secrets of one artifact each
	Attempt    int    // how often it was claimed
	CreatedAt  time.Time
	StartedAt  *time.Time // of the first attempt
	EndedAt    *time.Time
}

// Link is where a document can be read for a while.
type Link struct {
	Token     string    `json:"token"` // unguessable
	Title     string    `json:"title"`
	Name      string    `json:"name"`
	Type      string    `json:"type"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256"`
	ExpiresAt time.Time `json:"expires_at"`
}

// EventKind is what an event tells.
type EventKind string

// What a task's platform may want to hear.
const (
	EventProposal     EventKind = "proposal"
	EventCompleted    EventKind = "completed"
	EventFailed       EventKind = "failed"
	EventCancelFailed EventKind = "cancel_failed"
)

// Event is one thing to tell the platform that a task came from. Its ID stays the
// same over retries.
type Event struct {
	ID       string
	Task     string
	Kind     EventKind
	Ref      string // a proposal's id
	At       time.Time
	Attempts int
}

// Verdict is what became of an attempt to deliver an event.
type Verdict string

// Delivered: it was taken. Again: the same again later. Waiting: not before the
// task has changed. Refused: never again, a person must look.
const (
	Delivered Verdict = "delivered"
	Again     Verdict = "again"
	Waiting   Verdict = "waiting"
	Refused   Verdict = "refused"
)

// Courier carries events to a platform. The error says why it was not taken; it
// holds no secret, and nothing of the event's content.
type Courier interface {
	Deliver(ctx context.Context, t Task, e Event) (Verdict, error)
}

// Outcome is how an attempt at a task ends, for Tasks.Finish.
type Outcome struct {
	State     State // Choosing or a final one
	Result    *Result
	Failure   *Failure
	Proposals []Proposal
	Tell      bool          // write the events that tell of it
	Keep      time.Duration // how long the documents can be read
}

// Tasks keeps tasks in PostgreSQL. Every change is one short transaction.
type Tasks interface {
	// Begin makes the task unless its door and key have one, which it returns with
	// fresh false. A task that is made to run at once is claimed for hold; another
	// waits for Claim.
	Begin(ctx context.Context, t Task, claim bool, hold time.Duration) (made Task, fresh bool, err error)
	// Claim takes the oldest task that nobody works on, for hold; nil when there is
	// none. A task whose claim ran out counts as nobody's. It is one of the capabilities
	// that are named, or one that was due for so long that nobody may do it any more.
	Claim(ctx context.Context, able []string, hold time.Duration) (*Task, error)
	// Hold prolongs the claim; false when it was lost, or the task was cancelled.
	Hold(ctx context.Context, t Task, hold time.Duration) (bool, error)
	// Finish ends this attempt and writes its events; false when the claim was lost.
	Finish(ctx context.Context, t Task, o Outcome) (bool, error)
	// Postpone gives the claim back: the task is due again after wait.
	Postpone(ctx context.Context, t Task, wait time.Duration) error
	// Forget removes a task that ended in a way that must not be kept.
	Forget(ctx context.Context, t Task) error
	// Task reads one by its id, ByKey by door and key; nil when there is none.
	Task(ctx context.Context, id string) (*Task, error)
	ByKey(ctx context.Context, door, key string) (*Task, error)
	// Cancel ends a task that nobody works on; it returns the task as it then is.
	Cancel(ctx context.Context, id string) (*Task, error)
	// Sweep removes tasks that ended longer ago than keep, and documents that expired.
	Sweep(ctx context.Context, keep time.Duration) (int64, error)
	// Choose notes the choice once, and lets the task run on; the task as it then is.
	Choose(ctx context.Context, id, proposal string) (*Task, error)
}

// Outbox keeps the events until they are delivered.
type Outbox interface {
	// ClaimEvent takes the oldest that is due for one of the doors, with its task;
	// nil when there is none. Events of one task come one after the other.
	ClaimEvent(ctx context.Context, doors []string, hold time.Duration) (*Event, *Task, error)
	// SettleEvent notes the verdict; after Again it is due after wait.
	SettleEvent(ctx context.Context, e Event, v Verdict, wait time.Duration, why string) error
}
