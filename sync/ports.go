package sync

import (
	"context"

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

// Ledger is the mirror's bookkeeping as a round needs it.
// *mirror.Mirror is one. Its errors are *mirror.Error.
type Ledger interface {
	// Checkpoint reads where a resource stands.
	Checkpoint(ctx context.Context, resource string) (mirror.Checkpoint, error)
	// Commit writes a step's rows and its checkpoint in one transaction.
	Commit(ctx context.Context, s mirror.Step) (mirror.Checkpoint, mirror.Counts, error)
	// Adopt notes the tenant that the mirror is filled from, before its first row.
	Adopt(ctx context.Context, before mirror.Checkpoint, tenant string) (mirror.Checkpoint, error)
	// Restart turns a resource to rebuild, durably.
	Restart(ctx context.Context, before mirror.Checkpoint, reason string) (mirror.Checkpoint, error)
}

// Desk is where a run signs in and out. *mirror.Mirror is one.
type Desk interface {
	// Lease takes the resource, or returns *mirror.HeldError.
	Lease(ctx context.Context, resource string, h mirror.Holder) (*mirror.Lease, error)
	// BeginRun opens a run and closes those that a crash left open.
	BeginRun(ctx context.Context, r mirror.Run) (int64, error)
	// EndRun closes it with its outcome and counters.
	EndRun(ctx context.Context, r mirror.Run) error
	// Tenant is the tenant that the mirror was filled from, "" when unknown.
	Tenant(ctx context.Context) (string, error)
}
