package sync_test

import (
	"errors"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

func TestRowsThatAreGoneAreFetchedAgain(t *testing.T) {
	for name, damage := range map[string]string{
		"table emptied":  "truncate xiaoqu.users",
		"table dropped":  "drop table xiaoqu.users cascade",
		"schema dropped": "drop schema xiaoqu cascade",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.xiaoqu.Seed(25, 0, 0)
			w.mustRun(t, "users")
			w.read(t, damage)
			if _, err := w.mirror.Migrate(t.Context(), all, false); err != nil {
				t.Fatal(err)
			}
			if o := w.mustRun(t, "users")["users"]; o.Mode != "first" || o.Counts.Inserted != 25 {
				t.Errorf("the run after: %+v", o)
			}
			w.equal(t, "users")
			if n := w.count(t, "select min(change_seq) from xiaoqu.users"); n != 26 {
				t.Errorf("change_seq began again at %d: a reader's cursor would miss the rows", n)
			}
		})
	}
}

func TestAMirrorMovedInMidRoundIsAFailureNotASuccess(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(45, 0, 0)
	w.watch = func(p sync.Progress) {
		if p.Pages == 2 {
			w.read(t, "update xiaoqu_sync.state set epoch = epoch + 100")
		}
	}
	o := w.run(t.Context(), "users")["users"]
	var e *mirror.Error
	if o.Result != sync.Failed || !errors.As(o.Err, &e) || e.Kind != mirror.KindFenced {
		t.Fatalf("%s, %v", o.Result, o.Err)
	}
	w.watch = nil
	w.mustRun(t, "users")
	w.equal(t, "users")
}

func TestThePageLimitFindsItsWayBackUp(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(60, 0, 0)
	w.limit = 16
	w.maxBytes = 4000 // room for some twelve records
	w.client = w.connect(t)
	o := w.mustRun(t, "users")["users"]
	w.equal(t, "users")
	if o.Retries == 0 {
		t.Error("no page was too large")
	}
	if limits := w.limits(); limits[1] != 8 || limits[2] != 16 {
		t.Errorf("limits asked for: %v", limits)
	}
}

func TestASettingOfTheDatabaseDoesNotBreakARun(t *testing.T) {
	for _, setting := range []string{
		"datestyle = 'German'", "datestyle = 'SQL, DMY'", "standard_conforming_strings = off", "timezone = 'America/Caracas'",
		"bytea_output = 'escape'", "intervalstyle = 'sql_standard'", "extra_float_digits = 0", "search_path = ''",
		"default_transaction_isolation = 'serializable'", "lc_messages = 'C'",
	} {
		t.Run(setting, func(t *testing.T) {
			w := newWorld(t)
			w.xiaoqu.Seed(5, 0, 0)
			w.read(t, "do $$begin execute format('alter database %I set "+quoted(setting)+"', current_database()); end$$")
			w.reopen(t)
			w.mustRun(t, "users")
			w.xiaoqu.Delete("users", w.xiaoqu.IDs("users")[0])
			w.mustRun(t, "users")
			w.equal(t, "users")
			if _, err := w.mirror.Status(t.Context(), all); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestARemoteThatRateLimitsOneResourceLeavesTheOthersAlone(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(5, 5, 5)
	w.xiaoqu.Inject(remotetest.Fault{
		Match: remotetest.OnPage("users", 1), Times: 1,
		Do: remotetest.Fail(remotetest.Failure{Place: remotetest.HTTPTop, Code: remotetest.RateLimited, RetryAfter: "1"}),
	})
	by := w.mustRun(t, all...)
	if by["users"].Retries != 1 || by["contracts"].Seconds >= by["users"].Seconds {
		t.Errorf("users %+v\ncontracts %+v", by["users"], by["contracts"])
	}
	w.equal(t, all...)
}
