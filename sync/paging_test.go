package sync_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// TestAPageThatBreaksTheContractMovesNothing spoils the second of three pages.
func TestAPageThatBreaksTheContractMovesNothing(t *testing.T) {
	says := map[remotetest.PageFault]string{
		remotetest.NoCursor: "next_cursor is missing", remotetest.NoToken: "next_sync_token is missing",
		remotetest.TokenAndCursor: "both next_cursor and next_sync_token", remotetest.NeitherNor: "missing",
		remotetest.SameCursor: "cursor of the request itself", remotetest.OtherSnapshot: "snapshot changed",
		remotetest.NoList: "no list of records", remotetest.NullList: "no list of records",
		remotetest.ListOfNumbers: "no list of records", remotetest.TwoLists: "several lists",
	}
	w := newWorld(t, func(o *remotetest.Options) { o.Strict = false })
	w.xiaoqu.Seed(25, 0, 0)
	for fault, says := range says {
		t.Run(string(fault), func(t *testing.T) {
			w.reset(t)
			page := 2
			if fault == remotetest.NoToken {
				page = 3
			}
			w.xiaoqu.Inject(remotetest.Fault{Match: remotetest.OnPage("users", page), Do: remotetest.Mangle(fault)})
			o := w.run(t.Context(), "users")["users"]
			var e *remote.Error
			if !errors.As(o.Err, &e) || e.Code != remote.Malformed || !strings.Contains(e.Message, says) || e.RequestID == "" {
				t.Fatalf("%s, %v", o.Result, o.Err)
			}
			state := w.read(t, "select pages, sync_token, live_rows from xiaoqu_sync.state where resource = 'users'")[0]
			if want := fmt.Sprint(page - 1); state[0] != want || state[1] != "" || state[2] != want+"0" {
				t.Errorf("the state moved: %v", state)
			}
			w.xiaoqu.ClearFaults()
			w.mustRun(t, "users")
			w.equal(t, "users")
		})
	}
}

func TestAListThatIsAnythingElseIsRefused(t *testing.T) {
	w := newWorld(t, func(o *remotetest.Options) { o.Strict = false })
	w.xiaoqu.Seed(5, 0, 0)
	for _, list := range []string{`"text"`, `{"id":"x"}`, `7`, `true`, `[[]]`, `["id"]`} {
		w.xiaoqu.Inject(remotetest.Fault{Do: remotetest.Mutate(func(p *remotetest.Page) { p.List = json.RawMessage(list) }), Match: remotetest.OnPage("users", 1)})
		o := w.run(t.Context(), "users")["users"]
		var e *remote.Error
		if !errors.As(o.Err, &e) || e.Code != remote.Malformed {
			t.Errorf("%s: %s, %v", list, o.Result, o.Err)
		}
	}
	if n := w.count(t, "select count(*) from xiaoqu.users"); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func TestAnEmptyOrShortPageInTheMiddleIsNotTheEnd(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(25, 0, 0)
	w.xiaoqu.Inject(remotetest.Fault{Match: remotetest.OnPage("users", 2), Do: remotetest.Mutate(func(p *remotetest.Page) {
		again := p.FreshCursor(1) // the page comes after the empty one
		p.Records, p.NextCursor = nil, &again
	})})
	w.xiaoqu.Inject(remotetest.Fault{Match: remotetest.OnPage("users", 3), Do: remotetest.Mutate(func(p *remotetest.Page) {
		again := p.FreshCursor(2)
		p.Records, p.NextCursor = p.Records[:1], &again
		p.HasMore, p.NextSyncToken = true, nil
	})})
	o := w.mustRun(t, "users")["users"]
	w.equal(t, "users")
	if o.Pages != 5 || o.Counts.Inserted != 25 {
		t.Errorf("%+v", o)
	}
}

func TestAFullLastPageIsTheEnd(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(20, 0, 0)
	if o := w.mustRun(t, "users")["users"]; o.Pages != 2 {
		t.Errorf("%d pages", o.Pages)
	}
	w.equal(t, "users")
}

func TestAThousandRowsOfOneModifyTimeAllCome(t *testing.T) {
	w := newWorld(t)
	w.limit = 200
	w.xiaoqu.FreezeClock(true)
	w.xiaoqu.Seed(0, 0, 1000)
	if o := w.mustRun(t, "contracts")["contracts"]; o.Pages != 5 {
		t.Errorf("%d pages", o.Pages)
	}
	w.equal(t, "contracts")
}

func TestTheFirstPageOfAFirstSyncDoesNotPassForAllOfIt(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(25, 0, 0)
	w.stopAfter(t, 1, (*sync.Engine).Sync)
	if n := w.count(t, "select count(*) from xiaoqu.freshness where resource = 'users' and phase = 'first' and last_success_at is null and live_rows = 10"); n != 1 {
		t.Errorf("freshness: %v", w.read(t, "select * from xiaoqu.freshness"))
	}
	w.mustRun(t, "users")
	w.equal(t, "users")
}

func TestADamagedTokenEndsInAClearErrorOrARebuild(t *testing.T) {
	w := newWorld(t, func(o *remotetest.Options) { o.Strict = false })
	w.xiaoqu.Seed(25, 0, 0)
	for _, damage := range []string{"sync_token = 'nonsense'", "sync_token = sync_token || 'x'", "cursor = 'nonsense', pages = 1"} {
		w.reset(t)
		w.mustRun(t, "users")
		w.read(t, "update xiaoqu_sync.state set "+damage)
		o := w.run(t.Context(), "users")["users"]
		var e *remote.Error
		if o.Err != nil && !errors.As(o.Err, &e) {
			t.Errorf("%s: %v", damage, o.Err)
		}
		if o.Err != nil {
			for _, o := range w.task(t.Context(), (*sync.Engine).Rebuild, "users") {
				if o.Err != nil {
					t.Errorf("%s: a rebuild does not mend it: %v", damage, o.Err)
				}
			}
		}
		w.equal(t, "users")
	}
}

func TestALimitThatTheRemoteCutsIsLoggedAndCounted(t *testing.T) {
	w := newWorld(t, func(o *remotetest.Options) { o.MaxLimit = 5 })
	w.xiaoqu.Seed(25, 0, 0)
	core, logged := observer.New(zap.WarnLevel)
	w.log = zap.New(core)
	o := w.mustRun(t, "users")["users"]
	notices := logged.FilterMessage("the remote sent a notice")
	if o.Pages != 5 || o.Notices != 5 || notices.Len() != 5 || notices.All()[0].ContextMap()["request_id"] == "" {
		t.Errorf("%+v, %v", o, notices.All())
	}
	if n := w.count(t, "select notices from xiaoqu_sync.runs"); n != 5 {
		t.Errorf("%d in the run log", n)
	}
	w.equal(t, "users")
}

// TestFieldsMayChangeTheirTypeAndComeAndGo puts one record after the other in every shape.
func TestFieldsMayChangeTheirTypeAndComeAndGo(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(0, 0, 1)
	id := w.xiaoqu.IDs("contracts")[0]
	for _, fields := range []string{`{"fee":1}`, `{"fee":"1"}`, `{"fee":{"amount":1}}`, `{"fee":[1]}`, `{"fee":null,"new":true}`, `{"version":"x","status":{}}`, `{"version":7.50}`} {
		w.xiaoqu.Edit("contracts", id, fields)
		w.mustRun(t, "contracts")
		w.equal(t, "contracts")
	}
}

func TestARecordNestedBeyondEveryDecoderIsQuarantinedAlone(t *testing.T) {
	w := newWorld(t)
	w.xiaoqu.Seed(5, 0, 0)
	deep := func(id string, levels int) {
		w.xiaoqu.PutRaw("users", id, `{"id":"`+id+`","x":`+strings.Repeat("[", levels)+strings.Repeat("]", levels)+`}`)
	}
	deep("stored", 500)
	deep("d600", 600)
	deep("d1200", 1200)    // more than encoding/json takes
	deep("d20000", 20_000) // more than jsontext takes
	if o := w.mustRun(t, "users")["users"]; o.Counts.Quarantined != 3 || o.Counts.Inserted != 6 {
		t.Errorf("%+v", o.Counts)
	}
	if n := w.count(t, "select count(*) from xiaoqu_sync.quarantine where reason = 'nested too deeply' and record_id like 'd%' and octet_length(raw) = raw_length"); n != 3 {
		t.Errorf("quarantine: %v", w.read(t, "select record_id, reason from xiaoqu_sync.quarantine"))
	}
	for _, o := range w.task(t.Context(), (*sync.Engine).Rebuild, "users") {
		if o.Err != nil || o.Counts.Deleted > 0 {
			t.Errorf("%+v, %v", o.Counts, o.Err)
		}
	}
}

// fat is a user of about so many bytes.
func fat(id string, size int) string {
	return fmt.Sprintf(`{"id":%q,"note":%q}`, id, strings.Repeat("胖", size/3))
}

func TestFatRecordsAndPagesLand(t *testing.T) {
	w := newWorld(t)
	w.limit = 200
	for i := range 200 {
		w.xiaoqu.PutRaw("users", fmt.Sprintf("u%03d", i), fat(fmt.Sprintf("u%03d", i), 100<<10)) // a line of 20 MB
	}
	w.xiaoqu.PutRaw("properties", "p", fat("p", 5<<20))
	w.mustRun(t, "users", "properties")
	if n := w.count(t, "select count(*) from xiaoqu.users where length(record->>'note') = 34133"); n != 200 {
		t.Errorf("%d of 200 users", n)
	}
	if n := w.count(t, "select length(record->>'note') from xiaoqu.properties"); n != 5<<20/3 {
		t.Errorf("%d characters", n)
	}
	if limits := w.limits(); slices.Contains(limits, 100) {
		t.Errorf("a page within the limit was cut: %v", limits)
	}
}
