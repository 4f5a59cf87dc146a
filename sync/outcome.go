package sync

import (
	"context"
	"errors"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// Result says in one word how a resource's run ended.
type Result string

// The results of a run.
const (
	Synced       Result = "synced"        // the round ended with its last page
	SteppedAside Result = "stepped_aside" // another worker has the resource
	Planned      Result = "planned"       // a dry run is staged; see Difference
	Aborted      Result = "aborted"       // what was staged is dropped
	Verified     Result = "verified"      // the mirror equals the remote
	Drifted      Result = "drifted"       // it does not; see Difference
	Held         Result = "held"          // the deletion fuse holds a rebuild; see Difference
	Failed       Result = "failed"        // see Err; the checkpoint stands at the last whole page
	Interrupted  Result = "interrupted"   // asked to stop; the next run resumes
)

// Outcome is what a run did to one resource.
type Outcome struct {
	Resource     string         `json:"resource"`
	Result       Result         `json:"result"`
	Mode         string         `json:"mode,omitempty"`   // first, incremental, resumed, rebuild, plan, apply, accept, abort, verify
	Reason       string         `json:"reason,omitempty"` // why the full pass began that a rebuild makes: SYNC_CURSOR_EXPIRED, REQUESTED
	Pages        int64          `json:"pages"`
	Counts       mirror.Counts  `json:"counts"`
	Retries      int64          `json:"retries"`
	Notices      int64          `json:"notices"` // of the remote, on the pages
	Seconds      float64        `json:"seconds"`
	DataCutoffAt *time.Time     `json:"data_cutoff_at,omitempty"` // of a complete round
	RequestID    string         `json:"request_id,omitempty"`     // of the last page or of the failure
	Holder       *mirror.Holder `json:"holder,omitempty"`         // who has it, when stepped aside
	// Difference is what a rebuild held back, a dry run would do, or a
	// verification found.
	Difference *mirror.Difference `json:"difference,omitempty"`
	Staged     time.Time          `json:"-"` // when the full pass began that the run worked on
	Err        error              `json:"-"`
}

// The modes of a run.
const (
	modeFirst       = "first"
	modeIncremental = "incremental"
	modeResumed     = "resumed"
	modeRebuild     = "rebuild"
)

// mode names what a run that starts at cp is about to do.
func mode(cp mirror.Checkpoint) string {
	switch {
	case cp.Phase == mirror.PhaseRebuild:
		return modeRebuild
	case cp.Pages > 0:
		return modeResumed
	case cp.SyncToken == "":
		return modeFirst
	default:
		return modeIncremental
	}
}

// ErrLeaseLost is the cause of a run's end when the database connection that
// held its lease broke and another worker has the resource now.
var ErrLeaseLost = errors.New("sync: the database connection that held the lease broke, and another worker has taken the resource")

// ErrDrift is a verification that found differences which no change explains.
var ErrDrift = errors.New("sync: the mirror differs from the remote, and no change since explains it")

// settle turns the error that ended a task into a result.
func settle(ctx context.Context, err error, t task) Result {
	var fuse *mirror.FuseError
	switch {
	case err == nil:
		return t.result
	case errors.As(err, &fuse), errors.Is(err, ErrHeld):
		return Held
	case errors.Is(err, ErrLeaseLost):
		return Failed
	case ctx.Err() != nil:
		return Interrupted
	default:
		return Failed
	}
}

// codeOf is the name under which an error goes into the run log, and the
// request id that came with it. The rooms below name their own errors.
func codeOf(err error) (code, requestID string) {
	var (
		remoteErr *remote.Error
		refusal   *Refusal
		named     interface {
			error
			Name() string
		}
	)
	switch {
	case errors.As(err, &remoteErr):
		return string(remoteErr.Code), remoteErr.RequestID
	case errors.As(err, &refusal):
		return refusal.Reason, refusal.RequestID
	case errors.Is(err, mirror.ErrMoved):
		return "PLAN_OUTDATED", ""
	case errors.As(err, &named):
		return named.Name(), ""
	case errors.Is(err, ErrHeld), errors.As(err, new(*mirror.FuseError)):
		return "REBUILD_HELD", ""
	case errors.Is(err, ErrDrift):
		return "DRIFT", ""
	case errors.Is(err, mirror.ErrStagingLost):
		return "STAGING_LOST", ""
	case errors.Is(err, ErrLeaseLost):
		return "LEASE_LOST", ""
	default:
		return "INTERNAL", ""
	}
}
