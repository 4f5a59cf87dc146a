package sync

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

func TestJudge(t *testing.T) {
	of := func(c remote.Code) error { return fmt.Errorf("wrapped: %w", &remote.Error{Code: c}) }
	cases := []struct {
		name string
		err  error
		t    tried
		want verdict
	}{
		{"rate limited", of(remote.RateLimited), tried{}, retry},
		{"rate limited to the end", of(remote.RateLimited), tried{waits: maxWaits}, halt},
		{"unreachable", of(remote.Unreachable), tried{waits: maxWaits - 1}, retry},
		{"unreachable to the end", of(remote.Unreachable), tried{waits: maxWaits}, halt},
		{"session lost", of(remote.SessionLost), tried{}, newSession},
		{"session lost again and again", of(remote.SessionLost), tried{sessions: maxSessions}, retry},
		{"session lost to the end", of(remote.SessionLost), tried{sessions: maxSessions, waits: maxWaits}, halt},
		{"token refused", of(remote.Unauthenticated), tried{}, renew},
		{"fresh token refused", of(remote.Unauthenticated), tried{renewed: true}, halt},
		{"position expired", of(remote.CursorExpired), tried{}, rebuild},
		{"permission", of(remote.PermissionDenied), tried{}, halt},
		{"argument", of(remote.InvalidArgument), tried{}, halt},
		{"malformed", of(remote.Malformed), tried{}, halt},
		{"cut short", &remote.Error{Code: remote.Malformed, CutShort: true}, tried{}, retry},
		{"cut short twice", &remote.Error{Code: remote.Malformed, CutShort: true}, tried{cutShort: true}, halt},
		{"too large", &remote.Error{Code: remote.Malformed, TooLarge: true}, tried{limit: 200}, smaller},
		{"one record is too large", &remote.Error{Code: remote.Malformed, TooLarge: true}, tried{limit: 1}, halt},
		{"a code of tomorrow", of("SOMETHING_NEW"), tried{}, halt},
		{"not the remote's", errors.New("x"), tried{}, halt},
		{"our own stop", context.Canceled, tried{}, halt},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := judge(c.err, c.t); got != c.want {
				t.Errorf("verdict %d, want %d", got, c.want)
			}
		})
	}
}

func TestJudgeCommit(t *testing.T) {
	cases := map[mirror.Kind]verdict{
		mirror.KindTransient:   retry,
		mirror.KindUnreachable: retry,
		mirror.KindData:        halt,
		mirror.KindDenied:      halt,
		mirror.KindSchema:      halt,
		mirror.KindFenced:      halt,
		mirror.KindConfig:      halt,
		mirror.KindInternal:    halt,
	}
	for kind, want := range cases {
		if got := judgeCommit(&mirror.Error{Kind: kind}, tried{}); got != want {
			t.Errorf("kind %v: verdict %d, want %d", kind, got, want)
		}
	}
	if got := judgeCommit(&mirror.Error{Kind: mirror.KindTransient}, tried{waits: maxCommitWaits}); got != halt {
		t.Errorf("a fault that does not heal: verdict %d, want halt", got)
	}
}
