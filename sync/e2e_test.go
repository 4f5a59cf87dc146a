package sync_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

func TestFirstSyncThenIncrement(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(45, 30, 20)
	first := w.mustRun(t, all...)
	w.equal(t, all...)
	if o := first["users"]; o.Mode != "first" || o.Counts.Inserted != 45 || o.Pages < 5 {
		t.Errorf("first run of users: %+v", o)
	}

	ids := w.xiaoqu.IDs("users")
	w.xiaoqu.Edit("users", ids[0], `{"name":"改名","balance":12345678901234567890.1230}`)
	w.xiaoqu.Delete("users", ids[1])
	w.xiaoqu.Put("users", "9007199254740993", `{"name":"新"}`)
	second := w.mustRun(t, all...)
	w.equal(t, all...)
	want := mirror.Counts{Received: 3, Inserted: 1, Updated: 1, Deleted: 1}
	if o := second["users"]; o.Mode != "incremental" || o.Counts != want || o.Pages != 1 {
		t.Errorf("second run of users: %+v, want %+v", o, want)
	}
	if o := second["contracts"]; o.Counts != (mirror.Counts{}) {
		t.Errorf("contracts had no change: %+v", o)
	}
	if n := w.count(t, "select count(*) from xiaoqu.users where deleted_at is not null"); n != 1 {
		t.Errorf("%d tombstones, want 1", n)
	}
}

func TestARevivedRecordIsLiveAgain(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(3, 0, 0)
	id := w.xiaoqu.IDs("users")[0]
	w.mustRun(t, "users")
	w.xiaoqu.Delete("users", id)
	w.mustRun(t, "users")
	if n := w.count(t, "select count(*) from xiaoqu.users_live"); n != 2 {
		t.Fatalf("%d live after the deletion, want 2", n)
	}
	w.xiaoqu.Revive("users", id)
	o := w.mustRun(t, "users")["users"]
	if o.Counts.Revived != 1 {
		t.Errorf("counts %+v, want one revived", o.Counts)
	}
	w.equal(t, "users")
}

func TestAStoppedRunGoesOnWhereItStood(t *testing.T) {
	const pages = 6
	for stop := 1; stop < pages; stop++ {
		t.Run(fmt.Sprintf("after page %d", stop), func(t *testing.T) {
			w := newWorld(t)
			w.xiaoqu.Seed(pages*10-5, 0, 0)
			ctx, cancel := context.WithCancel(t.Context())
			w.watch = func(p sync.Progress) {
				if p.Pages == int64(stop) {
					cancel()
				}
			}
			o := w.run(ctx, "users")["users"]
			if o.Result != sync.Interrupted || o.Pages != int64(stop) {
				t.Fatalf("first run: %+v, %v", o, o.Err)
			}
			if n := w.count(t, "select count(*) from xiaoqu.freshness where last_success_at is not null and resource = 'users'"); n != 0 {
				t.Fatal("a stopped first sync passes for complete")
			}
			w.watch = nil
			w.xiaoqu.Put("users", "1", `{"name":"changed while we were away"}`)
			if o = w.mustRun(t, "users")["users"]; o.Mode != "resumed" {
				t.Errorf("mode %s, want resumed", o.Mode)
			}
			if fetched := w.xiaoqu.Stats().Pages["users"]; fetched > pages+2 {
				t.Errorf("%d pages fetched for %d", fetched, pages)
			}
			w.mustRun(t, "users")
			w.equal(t, "users")
		})
	}
}

func TestOfTwoRunsAtOnceOneStepsAside(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(30, 0, 0)
	inside, finish := make(chan struct{}), make(chan struct{})
	w.watch = func(p sync.Progress) {
		if p.Pages == 1 {
			close(inside)
			<-finish
		}
	}
	done := make(chan sync.Outcome)
	go func() { done <- w.run(context.WithoutCancel(t.Context()), "users")["users"] }()
	select {
	case <-inside:
	case o := <-done:
		t.Fatalf("the first run ended: %+v, %v", o, o.Err)
	}
	other := *w
	other.watch = nil
	o := other.run(t.Context(), "users")["users"]
	close(finish)
	if o.Result != sync.SteppedAside || o.Err != nil || o.Holder == nil || o.Holder.Host != "test" {
		t.Errorf("the second run: %+v, %v", o, o.Err)
	}
	if o := <-done; o.Result != sync.Synced {
		t.Errorf("the first run: %+v, %v", o, o.Err)
	}
	w.equal(t, "users")
}

func TestWhoMayNotScan(t *testing.T) {
	cases := map[string]struct {
		context remotetest.Context
		reason  string
	}{
		"a personal token":         {remotetest.Context{PrincipalType: "user_delegated"}, sync.ReasonPrincipal},
		"no capability":            {remotetest.Context{Capability: json.RawMessage(`["QUERY"]`)}, sync.ReasonCapability},
		"a capability like ours":   {remotetest.Context{Capability: json.RawMessage(`["ASYNC","SYNC_READONLY"]`)}, sync.ReasonCapability},
		"a capability as one text": {remotetest.Context{CapabilityKey: "capability", Capability: json.RawMessage(`"ASYNC"`)}, sync.ReasonCapability},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.xiaoqu.Seed(3, 3, 3)
			w.xiaoqu.SetContext(c.context)
			for _, o := range w.run(t.Context(), all...) {
				var r *sync.Refusal
				if !errors.As(o.Err, &r) || r.Reason != c.reason {
					t.Errorf("%s: %v, want %s", o.Resource, o.Err, c.reason)
				}
			}
			if p := w.xiaoqu.Stats().Pages; len(p) != 0 {
				t.Errorf("it scanned all the same: %v", p)
			}
			if n := w.count(t, "select count(*) from xiaoqu.users"); n != 0 {
				t.Errorf("the mirror was touched: %d rows", n)
			}
		})
	}
}

func TestAnotherTenantIsRefusedAlsoForANewResource(t *testing.T) {
	for _, form := range []remotetest.TenantForm{remotetest.TenantSnake, remotetest.TenantCamel, remotetest.TenantNested} {
		t.Run(string(form), func(t *testing.T) {
			w := newWorld(t)
			w.xiaoqu.Seed(3, 3, 3)
			w.xiaoqu.SetContext(remotetest.Context{Tenant: json.RawMessage(`1001`), TenantForm: form})
			w.mustRun(t, "users")
			w.xiaoqu.SetContext(remotetest.Context{Tenant: json.RawMessage(`"1002"`), TenantForm: form})
			for _, o := range w.run(t.Context(), all...) {
				var r *sync.Refusal
				if !errors.As(o.Err, &r) || r.Reason != sync.ReasonTenant {
					t.Errorf("%s: %v, want %s", o.Resource, o.Err, sync.ReasonTenant)
				}
			}
		})
	}
}

func TestAMissingToolFailsItsResourceAlone(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(3, 3, 3)
	w.xiaoqu.HideTool("contracts.changes.list")
	by := w.run(t.Context(), all...)
	var r *sync.Refusal
	if !errors.As(by["contracts"].Err, &r) || r.Reason != sync.ReasonTool {
		t.Errorf("contracts: %v", by["contracts"].Err)
	}
	if by["users"].Result != sync.Synced || by["properties"].Result != sync.Synced {
		t.Errorf("the others: %+v", by)
	}
}

func TestAFourthResourceIsDataNotCode(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Put("payments", "1", `{"amount":0.10}`)
	w.mustRun(t, "payments")
	w.equal(t, "payments")
}

func TestEveryCodeInEveryPlaceIsJudgedAlike(t *testing.T) {
	want := map[string]remote.Code{ // of those that end a run
		remotetest.PermissionDenied: remote.PermissionDenied,
		remotetest.InvalidArgument:  remote.InvalidArgument,
	}
	for code, wanted := range want {
		for _, place := range remotetest.Places() {
			if place == remotetest.HTTPBare {
				continue // it carries no code
			}
			t.Run(code+" in "+string(place), func(t *testing.T) {
				w := newWorld(t)
				w.xiaoqu.Seed(25, 0, 0)
				w.xiaoqu.Inject(remotetest.Fault{
					Match: remotetest.OnPage("users", 2), Times: -1,
					Do: remotetest.Fail(remotetest.Failure{Place: place, Code: code}),
				})
				o := w.run(t.Context(), "users")["users"]
				var e *remote.Error
				if !errors.As(o.Err, &e) || e.Code != wanted || o.Pages != 1 {
					t.Errorf("%v after %d pages, want %s after 1", o.Err, o.Pages, wanted)
				}
			})
		}
	}
}

func TestATokenRevokedInMidRoundIsRenewedOnceForAll(t *testing.T) {
	for _, place := range remotetest.Places() {
		t.Run(string(place), func(t *testing.T) {
			w := newWorld(t, func(o *remotetest.Options) { o.Variants.AuthErrors = place })
			w.xiaoqu.Seed(45, 45, 45)
			w.xiaoqu.OnCall(onceAtPage("users", 3, w.xiaoqu.RevokeTokens))
			w.mustRun(t, all...)
			w.equal(t, all...)
			if n := w.xiaoqu.Stats().Ensures; n != 2 {
				t.Errorf("%d ensure calls, want 2", n)
			}
		})
	}
}

func TestASessionLostInMidRoundIsMadeAnew(t *testing.T) {
	for _, with400 := range []bool{false, true} {
		t.Run(fmt.Sprintf("400: %v", with400), func(t *testing.T) {
			w := newWorld(t, func(o *remotetest.Options) { o.Strict = false; o.Variants.LostSession400 = with400 })
			w.xiaoqu.Seed(45, 45, 45)
			w.xiaoqu.OnCall(onceAtPage("users", 3, w.xiaoqu.DropSessions))
			w.mustRun(t, all...)
			w.equal(t, all...)
			if n := w.xiaoqu.Stats().Handshakes; n != 2 {
				t.Errorf("%d handshakes, want 2", n)
			}
		})
	}
}

// onceAtPage calls f when the resource's nth page is asked for, the first time.
func onceAtPage(resource string, n int, f func()) func(remotetest.Call) {
	seen := make(chan int, 1)
	seen <- 0
	return func(c remotetest.Call) {
		if c.Tool != resource+".changes.list" {
			return
		}
		k := <-seen + 1
		seen <- k
		if k == n {
			f()
		}
	}
}
