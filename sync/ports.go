package sync

import (
	"context"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// Source is the remote as the engine needs it. *remote.Client is one.
// Its methods return *remote.Error for every refusal of the remote; an error
// of another type is not the remote's and is never retried here.
type Source interface {
	// Identity says who the token belongs to (contract §6, last paragraph).
	Identity(ctx context.Context) (remote.Identity, error)
	// Tools lists the tools that the token may call (contract §4.1).
	Tools(ctx context.Context) ([]string, error)
	// Changes fetches one page (contract §6). The caller owns the page.
	Changes(ctx context.Context, q remote.Query) (*remote.Page, error)
	// Renew replaces the token of that generation, once for all callers.
	Renew(ctx context.Context, generation int) error
}

// Mirror is all of the mirror that the engine needs, by the part that needs
// it. *mirror.Mirror is one. Its errors are *mirror.Error, *mirror.FuseError
// and *mirror.HeldError.
type Mirror interface {
	Desk
	Ledger
	Stager
	Merger
}

// Desk is where a run signs in and out.
type Desk interface {
	// Lease takes the resource, or returns *mirror.HeldError.
	Lease(ctx context.Context, resource string, h mirror.Holder) (*mirror.Lease, error)
	// BeginRun opens a run and closes those that a crash left open.
	BeginRun(ctx context.Context, r mirror.Run) (int64, error)
	// EndRun closes it with its outcome and counters.
	EndRun(ctx context.Context, r mirror.Run) error
	// Ages tells how long ago each resource's last complete round ended; one
	// that never had one is not in it.
	Ages(ctx context.Context, resources []string) (map[string]time.Duration, error)
	// Tenant is the tenant that the mirror was filled from, "" when unknown.
	Tenant(ctx context.Context) (string, error)
}

// Ledger is where a resource stands.
type Ledger interface {
	// Checkpoint reads it.
	Checkpoint(ctx context.Context, resource string) (mirror.Checkpoint, error)
	// Adopt notes the tenant that the mirror is filled from, before its first row.
	Adopt(ctx context.Context, before mirror.Checkpoint, tenant string) (mirror.Checkpoint, error)
	// Commit writes a step's rows and its checkpoint in one transaction.
	Commit(ctx context.Context, s mirror.Step) (mirror.Checkpoint, mirror.Counts, error)
	// Restart turns a resource to rebuild, durably.
	Restart(ctx context.Context, before mirror.Checkpoint, reason string, keepToken bool) (mirror.Checkpoint, error)
	// Resume turns it back to its increments, where the remote still knows it.
	Resume(ctx context.Context, before mirror.Checkpoint) (mirror.Checkpoint, error)
}

// Stager keeps a full pass out of the readers' sight.
type Stager interface {
	// Pass reads the pass that is there.
	Pass(ctx context.Context, resource string) (p mirror.Pass, found bool, err error)
	// BeginPass empties staging and begins one.
	BeginPass(ctx context.Context, base mirror.Checkpoint, purpose mirror.Purpose, reason string) (mirror.Pass, error)
	// Stage writes a page and the pass's position in one transaction.
	Stage(ctx context.Context, s mirror.StageStep) (mirror.Pass, mirror.Counts, error)
	// DropPass forgets it.
	DropPass(ctx context.Context, resource string) error
}

// Merger sets a full pass against the readers' table.
type Merger interface {
	// Compare says what a merge would do.
	Compare(ctx context.Context, before mirror.Checkpoint, p mirror.Pass) (mirror.Difference, error)
	// Merge does it, in one transaction.
	Merge(ctx context.Context, before mirror.Checkpoint, p mirror.Pass, r mirror.Ruling) (mirror.Checkpoint, mirror.Counts, error)
	// Explain notes ids whose differences the next increment explains.
	Explain(ctx context.Context, p mirror.Pass, b *mirror.Batch) error
	// Verified notes what a verification found, and drops its pass.
	Verified(ctx context.Context, p mirror.Pass, d mirror.Difference) error
}
