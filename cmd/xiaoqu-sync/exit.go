package main

import (
	"context"
	"errors"
	"slices"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// The exit codes are a public contract: README and every verb's help print
// this table.
const (
	exitDone        = 0
	exitInternal    = 1
	exitUsage       = 2
	exitBackend     = 3
	exitCredentials = 4
	exitRefused     = 5
	exitContract    = 6
	exitRemote      = 7
	exitHeld        = 8
	exitQuarantined = 9
	exitSchema      = 10
	exitSignal      = 128 // plus the signal's number: 130, 143
)

// exitTable is the table as help prints it.
const exitTable = `Exit codes:
  0         done; also: another run holds the lease and this one stepped aside
  1         internal error
  2         usage or configuration
  3         PostgreSQL or Vault not reachable (retry)
  4         credentials refused: a person must act
  5         the remote refuses us: permission, personal token, no SYNC
            capability, another tenant, missing tool
  6         the remote broke the contract
  7         the remote is unreachable or rate-limits to the end (retry)
  8         a rebuild is held by the deletion fuse
  9         done, with quarantined records (only with --strict)
  10        the database schema does not fit this binary
  130, 143  interrupted (retry)
`

// failure is an error as a person or a machine is told about it.
type failure struct {
	exit        int
	code        string
	message     string
	retryable   bool
	suggestions []string
	requestID   string
	details     any
}

// usageError is a mistake in the command line itself.
type usageError struct{ err error }

func (u usageError) Error() string { return u.err.Error() }
func (u usageError) Unwrap() error { return u.err }

// classify is the only place that turns an error into an exit code.
func classify(err error) failure {
	f := failure{exit: exitInternal, code: "INTERNAL", message: err.Error()}
	var (
		stop     interruption
		usage    usageError
		problems config.Problems
		run      *runError
		strict   quarantinedError
		unfit    checkError
		unheard  unheardError
		refused  agentError
	)
	switch {
	case errors.As(err, &run):
		return run.failure()
	case errors.As(err, &unfit):
		return unfit.failure()
	case errors.As(err, &refused):
		return refused.failure()
	case errors.As(err, &unheard):
		return unheard.failure()
	case errors.As(err, &stop):
		f.exit, f.code, f.retryable = exitSignal+int(stop.signal), "INTERRUPTED", true
	case errors.As(err, &problems):
		f.exit, f.code, f.details = exitUsage, "CONFIG_INVALID", problems
	case errors.As(err, &usage):
		f.exit, f.code = exitUsage, "USAGE"
		f.suggestions = []string{"xiaoqu-sync help, or the verb with --help"}
	case errors.As(err, &strict):
		f.exit, f.code, f.details = exitQuarantined, "QUARANTINED", strict.report
	case ofTask(&f, err), ofRoom(&f, err):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f.code, f.retryable = "INTERRUPTED", true
	}
	return f
}

// ofTask names what a task could not do although every room worked.
func ofTask(f *failure, err error) bool {
	var (
		refusal *sync.Refusal
		fuse    *mirror.FuseError
		lease   *mirror.HeldError
	)
	switch {
	case errors.As(err, &refusal):
		f.exit, f.code, f.requestID = exitRefused, refusal.Reason, refusal.RequestID
		f.suggestions = []string{refusal.Hint}
	case errors.As(err, &fuse), errors.Is(err, sync.ErrHeld):
		f.exit, f.code = exitHeld, "REBUILD_HELD"
		f.suggestions = []string{
			"look at what it would delete: xiaoqu-sync status",
			"xiaoqu-sync rebuild RESOURCE --accept-deletes, if that is right; --without-deletes, --abort or another rebuild, if not",
		}
	case errors.Is(err, sync.ErrDrift):
		f.exit, f.code = exitContract, "DRIFT"
		f.suggestions = []string{"xiaoqu-sync rebuild RESOURCE makes it equal; keep the report for Xiaoqu's support"}
	case errors.Is(err, mirror.ErrStagingLost):
		f.exit, f.code, f.retryable = exitBackend, "STAGING_LOST", true
		f.suggestions = []string{"xiaoqu-sync rebuild RESOURCE reads everything again; readers keep the rows they have"}
	case errors.Is(err, mirror.ErrMoved):
		f.exit, f.code = exitUsage, "PLAN_OUTDATED"
		f.suggestions = []string{"make the dry run again: the mirror has changed since"}
	case errors.Is(err, sync.ErrOtherPass):
		f.exit, f.code = exitUsage, "PLAN_GONE"
		f.suggestions = []string{"xiaoqu-sync status says what is staged now"}
	case sync.NotApplicable(err):
		f.exit, f.code = exitUsage, "NOT_APPLICABLE"
		f.suggestions = []string{insteadOf(err)}
	case errors.As(err, &lease):
		f.exit, f.code, f.retryable = exitBackend, "BUSY", true
		f.suggestions = []string{"wait for the other run to end"}
	case errors.Is(err, sync.ErrLeaseLost):
		f.exit, f.code, f.retryable = exitBackend, "LEASE_LOST", true
		f.suggestions = []string{"nothing is lost: the other worker goes on at the last whole page; xiaoqu-sync status names it"}
	default:
		return false
	}
	return true
}

// insteadOf is what can be done where a request does not fit what is there.
func insteadOf(err error) string {
	switch {
	case errors.Is(err, sync.ErrNothingPlanned):
		return "make one: xiaoqu-sync rebuild RESOURCE --dry-run"
	case errors.Is(err, sync.ErrNothingHeld):
		return "xiaoqu-sync status says what is held; to read everything again: xiaoqu-sync rebuild RESOURCE"
	case errors.Is(err, sync.ErrNeverSynced):
		return "xiaoqu-sync sync, then verify"
	case errors.Is(err, sync.ErrUnderWay):
		return "xiaoqu-sync status shows it; xiaoqu-sync rebuild RESOURCE --abort drops it"
	default:
		return "xiaoqu-sync status"
	}
}

// ofRoom takes over the names that the rooms below gave their errors.
func ofRoom(f *failure, err error) bool {
	var (
		key       *credentials.Error
		remoteErr *remote.Error
		database  *mirror.Error
	)
	switch {
	case errors.As(err, &key):
		ofCredentials(f, key)
	case errors.As(err, &database):
		ofDatabase(f, database)
	case errors.As(err, &remoteErr):
		ofRemote(f, remoteErr)
	default:
		return false
	}
	return true
}

func ofCredentials(f *failure, e *credentials.Error) {
	f.code = e.Name()
	switch e.Kind {
	case credentials.BadKey:
		f.exit = exitUsage
		f.suggestions = []string{"give the service key (xqok-…) from the Xiaoqu admin console where credentials.source says: in XIAOQU_OPEN_KEY, in a file, or in Vault"}
	case credentials.Refused:
		f.exit = exitCredentials
		f.suggestions = []string{"check in the Xiaoqu admin console that the service key is neither rotated nor revoked, and set the current one"}
	case credentials.Unreachable, credentials.Limited:
		f.exit, f.retryable = exitRemote, true
		f.suggestions = []string{"check base_url and the network between here and there"}
	case credentials.StoreDown:
		f.exit, f.retryable = exitBackend, true
		f.suggestions = []string{"check that Vault runs and is unsealed, and the network between here and VAULT_ADDR"}
	case credentials.StoreRefused:
		f.exit = exitCredentials
		f.suggestions = []string{"check the login, the policy and the path in Vault: docs/operations.md has the commands"}
	case credentials.Malformed:
		f.exit = exitContract
		f.suggestions = []string{"check base_url: the token exchange did not answer as the contract says"}
	}
}

func ofDatabase(f *failure, e *mirror.Error) {
	if e.Hint != "" {
		f.suggestions = []string{e.Hint}
	}
	f.code = e.Name()
	switch e.Kind {
	case mirror.KindConfig, mirror.KindDenied:
		f.exit = exitUsage
	case mirror.KindUnreachable, mirror.KindTransient, mirror.KindFenced:
		f.exit, f.retryable = exitBackend, true
	case mirror.KindSchema:
		f.exit = exitSchema
	default: // a bug: internal
	}
}

func ofRemote(f *failure, e *remote.Error) {
	f.code, f.requestID = string(e.Code), e.RequestID
	switch e.Code {
	case remote.Unauthenticated:
		f.exit = exitCredentials
		f.suggestions = []string{"the remote refuses a fresh token too: check in the Xiaoqu admin console that the service is active"}
	case remote.PermissionDenied:
		f.exit = exitRefused
		f.suggestions = []string{"ask the Xiaoqu administrator to add the tool to the scope of this service"}
	case remote.RateLimited, remote.Unreachable, remote.SessionLost:
		f.exit, f.retryable = exitRemote, true
		f.suggestions = []string{"nothing is lost: the next run goes on at the last whole page"}
	case remote.CursorExpired:
		f.exit = exitContract
		f.suggestions = []string{"readers keep the rows they have; the next sync begins the rebuild again"}
	default:
		f.exit = exitContract
		f.suggestions = []string{"the mirror stands at the last whole page; give the request id to Xiaoqu's support"}
	}
}

// passes tells the codes in the run log that a later run may cure.
func passes(code string) bool {
	switch code {
	case "BUSY", "RATE_LIMITED", "UNREACHABLE", "SESSION_LOST", "DATABASE_UNREACHABLE", "SUPERSEDED", "LEASE_LOST", "STAGING_LOST", "VAULT_UNREACHABLE", "INTERRUPTED":
		return true
	default:
		return false
	}
}

// worst picks the failure that names a run of several resources: the first of
// this order that occurred.
func worst(fs []failure) failure {
	order := []int{exitInternal, exitCredentials, exitRefused, exitContract, exitHeld, exitBackend, exitRemote, exitQuarantined}
	rank := func(f failure) int {
		if i := slices.Index(order, f.exit); i >= 0 {
			return i
		}
		return -1 // usage, schema and signals concern the run as a whole
	}
	return slices.MinFunc(fs, func(a, b failure) int { return rank(a) - rank(b) })
}
