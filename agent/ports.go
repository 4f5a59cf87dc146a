package agent

import (
	"context"
	"encoding/json"
	"time"
)

// Mirror is what the catalogue reads. Records come from the readers' views with
// the reader's role. Its errors are *Failure where the caller can do something.
type Mirror interface {
	Status(ctx context.Context, resources []string) ([]Status, error)
	Freshness(ctx context.Context, resources []string) ([]Freshness, error)
	// Record reads one row of a view; ok is false when there is no live one.
	Record(ctx context.Context, resource, id string) (r Record, ok bool, err error)
	// Search reads rows in the order of ids.
	Search(ctx context.Context, q Query) ([]Record, error)
	// Changes reads what has a change_seq above after, in its order, tombstones
	// too.
	Changes(ctx context.Context, resource string, after int64, limit int) ([]Record, error)
	Quarantine(ctx context.Context, resource string, after int64, limit int) ([]Quarantined, error)
}

// Worker does what makes the mirror change. A lease that somebody else holds is a
// *Failure of class Busy.
type Worker interface {
	Work(ctx context.Context, job Job) (Report, error)
}

// Job is work for the worker.
type Job struct {
	Kind      JobKind
	Resources []string
	Plan      string    // of Apply and Resolve: the plan, or the held rebuild, that is meant
	Choice    Choice    // of Resolve
	Since     time.Time // when the task first began: what ended after it was this task's
}

// JobKind is what is to be done.
type JobKind string

// The jobs, each named as the capability that asks for it.
const (
	JobSync    JobKind = "sync.run"
	JobVerify  JobKind = "verify.run"
	JobPlan    JobKind = "rebuild.plan"
	JobApply   JobKind = "rebuild.apply"
	JobResolve JobKind = "rebuild.resolve"
)

// Choice is what becomes of a rebuild that the deletion fuse holds.
type Choice string

// AcceptAll applies all differences; WithoutDeletes applies them but for the
// deletions; Abort drops the rebuild and goes on with increments.
const (
	AcceptAll      Choice = "accept_all"
	WithoutDeletes Choice = "without_deletes"
	Abort          Choice = "abort"
)

// Report is what a job did.
type Report struct {
	Resources []ResourceReport `json:"resources"`
}

// ResourceReport is one resource's part. Counts are of rows.
type ResourceReport struct {
	Resource   string      `json:"resource"`
	Outcome    string      `json:"outcome"` // done, held, busy, failed, drift, planned
	Inserted   int64       `json:"inserted"`
	Updated    int64       `json:"updated"`
	Deleted    int64       `json:"deleted"`
	Unchanged  int64       `json:"unchanged"`
	Pages      int64       `json:"pages"`
	Difference *Difference `json:"difference,omitempty"` // of verify, a plan, a held rebuild
	Plan       string      `json:"plan,omitempty"`       // names a plan for rebuild.apply
	Code       string      `json:"code,omitempty"`       // why not
	Message    string      `json:"message,omitempty"`
	RequestID  string      `json:"request_id,omitempty"`
}

// Difference is what would have to change for the mirror to be as the remote.
type Difference struct {
	Inserts int64    `json:"inserts"`
	Updates int64    `json:"updates"`
	Deletes int64    `json:"deletes"`
	Sample  []string `json:"sample"`         // ids among the deletions
	Plan    string   `json:"plan,omitempty"` // of a held rebuild: its name, for rebuild.resolve
}

// Status is how a resource's mirror stands.
type Status struct {
	Resource    string     `json:"resource"`
	Phase       string     `json:"phase"`
	LiveRows    int64      `json:"live_rows"`
	DeletedRows int64      `json:"deleted_rows"`
	ChangeSeq   int64      `json:"change_seq"`
	Quarantined int64      `json:"quarantined"`
	LastSuccess *time.Time `json:"last_success_at"`
	LastError   *LastError `json:"last_error"`
	Working     bool       `json:"working"` // somebody holds the lease
	// Held is what a rebuild that the deletion fuse holds would change.
	Held *Difference `json:"held"`
}

// LastError is why the last run failed.
type LastError struct {
	Code      string    `json:"code"`
	Message   string    `json:"message"`
	RequestID string    `json:"request_id"`
	At        time.Time `json:"at"`
}

// Freshness is as of when a resource's data is.
type Freshness struct {
	Resource    string     `json:"resource"`
	Phase       string     `json:"phase"`
	DataCutoff  *time.Time `json:"data_cutoff_at"`
	LastSuccess *time.Time `json:"last_success_at"`
	AgeSeconds  *int64     `json:"age_seconds"` // null: never complete
	LiveRows    int64      `json:"live_rows"`
	DeletedRows int64      `json:"deleted_rows"`
	Held        bool       `json:"held"`
}

// Record is a row of the readers' views. Record and Columns are null for a
// tombstone among changes.
type Record struct {
	ID         string          `json:"id"`
	ChangeSeq  int64           `json:"change_seq"`
	ModifyTime *time.Time      `json:"modify_time"`
	DeletedAt  *time.Time      `json:"deleted_at"`
	SyncedAt   time.Time       `json:"synced_at"`
	Columns    json.RawMessage `json:"columns"` // the typed columns by name
	Record     json.RawMessage `json:"record"`
	// Omitted: the record is larger than an answer may be. It is set by this package.
	Omitted bool `json:"omitted"`
}

// Query is a search. The names in it are of columns that Options.Resources has.
type Query struct {
	Resource string
	Filters  []Filter
	AfterID  string // "" from the beginning
	Limit    int
}

// Filter is one condition; all must hold. Value is the JSON of a text, a number,
// a boolean; with In, of a list of them.
type Filter struct {
	Column string          `json:"column"`
	Op     Op              `json:"op"`
	Value  json.RawMessage `json:"value"`
}

// Op compares a column with a value.
type Op string

// The comparisons, each of which SQL has.
const (
	Equal   Op = "eq"
	Less    Op = "lt"
	AtMost  Op = "lte"
	More    Op = "gt"
	AtLeast Op = "gte"
	In      Op = "in"
	IsNull  Op = "is_null"
)

// Quarantined is a record that could not be mirrored as it came, without the record.
type Quarantined struct {
	ID        int64     `json:"id"`
	Resource  string    `json:"resource"`
	Kind      string    `json:"kind"`
	Reason    string    `json:"reason"`
	RecordID  string    `json:"record_id"`
	Bytes     int64     `json:"bytes"`
	Seen      int64     `json:"seen"`
	LastSeen  time.Time `json:"last_seen_at"`
	RequestID string    `json:"request_id"`
}

// Resource is what the catalogue knows of a mirrored resource.
type Resource struct {
	Name    string
	Columns []Column // typed, by configuration
}

// Column is a typed column: text, numeric, integer, boolean, timestamptz, date or
// text[] (mirror/views).
type Column struct {
	Name, Type string
}
