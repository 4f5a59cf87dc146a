package sync_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// bursting is a remote whose client has a mistake that one resource meets.
type bursting struct{ sync.Source }

func (b bursting) Changes(ctx context.Context, q remote.Query) (*remote.Page, error) {
	if q.Resource == "users" && q.Cursor != "" {
		panic("a mistake of ours")
	}
	return b.Source.Changes(ctx, q)
}

func TestAPanicIsAResourcesOwnFailure(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(25, 5, 5)
	e := sync.NewEngine(bursting{w.client}, w.mirror, sync.Options{
		TimeZone: time.UTC, Limit: 10, Clean: func(s string) string { return s }, Logger: w.log, Holder: mirror.Holder{Host: "test"},
	})
	for _, o := range e.Sync(t.Context(), all) {
		switch {
		case o.Resource != "users" && o.Result != sync.Synced:
			t.Errorf("%s: %s, %v", o.Resource, o.Result, o.Err)
		case o.Resource == "users" && (o.Result != sync.Failed || o.Pages != 1 || !strings.Contains(o.Err.Error(), "panic")):
			t.Errorf("users: %s after %d pages, %v", o.Result, o.Pages, o.Err)
		}
	}
	w.mustRun(t, all...)
	w.equal(t, all...)
}
