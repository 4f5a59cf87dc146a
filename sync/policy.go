package sync

import (
	"errors"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// verdict is what to do about an error.
type verdict int

const (
	halt       verdict = iota // give up on this resource; the others go on
	retry                     // wait, then the same call again
	newSession                // the same call at once: the client shakes hands again
	renew                     // a new token for all resources, then the same call once
	rebuild                   // the remote forgot our token: the full pass
	smaller                   // the same call with a smaller limit
)

// tried is what was already done about one call.
type tried struct {
	waits    int // retries after a wait
	sessions int // new sessions
	renewed  bool
	cutShort bool // a cut answer was already asked for again
	limit    int  // the limit of the call, 0 when it has none
}

const (
	// maxWaits bounds the retries of one call: 1+2+4+8+16+32+60 s.
	maxWaits = 7
	// maxSessions bounds new handshakes for one call. A session lost more
	// often is a remote in trouble, and is waited for like one.
	maxSessions = 3
	// maxCommitWaits bounds the retries of one step of the mirror's: 0.1+0.2 … +51.2+60 s,
	// enough for a failover.
	maxCommitWaits = 11
)

// judge is the table of verdicts on the remote's errors (contract §5).
func judge(err error, t tried) verdict {
	var e *remote.Error
	if !errors.As(err, &e) {
		return halt // our own stop, or the credentials' last word
	}
	switch e.Code {
	case remote.RateLimited, remote.Unreachable:
		return retryWithin(t)
	case remote.SessionLost:
		if t.sessions < maxSessions {
			return newSession
		}
		return retryWithin(t)
	case remote.Unauthenticated:
		if !t.renewed {
			return renew
		}
	case remote.CursorExpired:
		return rebuild
	case remote.Malformed:
		if e.TooLarge && t.limit > 1 {
			return smaller
		}
		if e.CutShort && !t.cutShort {
			return retry
		}
	case remote.PermissionDenied, remote.InvalidArgument:
	}
	return halt
}

func retryWithin(t tried) verdict {
	if t.waits < maxWaits {
		return retry
	}
	return halt
}

// judgeCommit is the table of verdicts on the database's errors. Only what
// time can heal is tried again; a statement that the server refused for what
// it contains never is.
func judgeCommit(err error, t tried) verdict {
	var e *mirror.Error
	if !errors.As(err, &e) {
		return halt
	}
	switch e.Kind {
	case mirror.KindTransient, mirror.KindUnreachable:
		if t.waits < maxCommitWaits {
			return retry
		}
	default:
	}
	return halt
}
