package mirror_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

const gone = `,"deleted_at":"2026-09-03T00:00:00Z"`

// stageStep makes a page of a full pass out of JSON texts.
func stageStep(p mirror.Pass, last bool, records ...string) mirror.StageStep {
	s := step(p.At, records...)
	out := mirror.StageStep{Before: p, After: s.After, Batch: s.Batch, RunID: s.RunID, Last: last}
	if last {
		out.After.SyncToken, out.After.Cursor, out.After.Pages, out.After.Phase = "t-next", "", 0, mirror.PhaseIncremental
	}
	return out
}

func (f fixture) begin(t testing.TB, purpose mirror.Purpose) mirror.Pass {
	t.Helper()
	p, err := f.BeginPass(t.Context(), f.checkpoint(t), purpose, "REQUESTED")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (f fixture) stage(t testing.TB, p mirror.Pass, last bool, records ...string) mirror.Pass {
	t.Helper()
	p, _, err := f.Stage(t.Context(), stageStep(p, last, records...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// full is a complete pass of these pages.
func (f fixture) full(t testing.TB, purpose mirror.Purpose, pages ...[]string) mirror.Pass {
	t.Helper()
	p := f.begin(t, purpose)
	for i, page := range pages {
		p = f.stage(t, p, i == len(pages)-1, page...)
	}
	return p
}

var lenient = mirror.Ruling{MaxDeleteRatio: 1}

func (f fixture) merge(t testing.TB, p mirror.Pass) mirror.Counts {
	t.Helper()
	_, counts, err := f.Merge(t.Context(), f.checkpoint(t), p, lenient)
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// fates is every row as: id, live or why deleted, when deleted, change_seq.
func (f fixture) fates(t testing.TB) string {
	t.Helper()
	return value[string](t, f, `select coalesce(string_agg(concat_ws(' ', id, coalesce(delete_reason, 'live'),
		case when deleted_at > now() - interval '1 hour' then 'now' else to_char(deleted_at at time zone 'UTC', 'MM-DD') end, change_seq), ', ' order by id), '')
		from xiaoqu.users`)
}

// soundState compares the counters with the table, and staging with what a merge leaves.
func (f fixture) soundState(t testing.TB) {
	t.Helper()
	if got := value[string](t, f, `select concat_ws(' ', s.live_rows - r.live, s.deleted_rows - r.deleted, s.change_seq >= r.seq)
		from xiaoqu_sync.state s, (select count(*) filter (where deleted_at is null) as live, count(*) filter (where deleted_at is not null) as deleted,
			coalesce(max(change_seq), 0) as seq from xiaoqu.users) r where s.resource = 'users'`); got != "0 0 t" {
		t.Errorf("the state's counters are off: %s", got)
	}
}

func TestARebuildResumesAtItsPage(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""), user("b", ""))
	before := f.lines(t)
	restarted, err := f.Restart(t.Context(), f.checkpoint(t), "SYNC_CURSOR_EXPIRED", false)
	if err != nil {
		t.Fatal(err)
	}
	p := f.begin(t, mirror.PurposeRebuild)
	want := mirror.Pass{At: mirror.Checkpoint{Resource: "users", Phase: mirror.PhaseRebuild, Epoch: p.At.Epoch}, Purpose: mirror.PurposeRebuild, Reason: "REQUESTED", BaseSeq: 2, StartedAt: p.StartedAt}
	if diff := cmp.Diff(want, p); diff != "" || time.Since(p.StartedAt) > time.Hour {
		t.Error(diff)
	}
	staged, counts, err := f.Stage(t.Context(), stageStep(p, false, user("a", ""), user("c", ""), `{}`, user("c", ""), `{"id":"m","x":"\u0000"}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mirror.Counts{Received: 5, Staged: 3, Duplicates: 1, Quarantined: 1, Mended: 1}, counts); diff != "" {
		t.Error(diff)
	}
	if got := value[string](t, f, "select string_agg(concat_ws('|', kind, record_id, request_id, snapshot_id, run_id), ', ' order by id) from xiaoqu_sync.quarantine"); got != "refused|r_1|snap-1|7, mended|m|r_1|snap-1|7" {
		t.Error(got)
	}
	// Another process goes on from what is stored.
	f.Mirror = open(t, f.url)
	again, found, err := f.Pass(t.Context(), "users")
	if diff := cmp.Diff(staged, again); diff != "" || err != nil || !found || again.At.Cursor != "cursor-1" || again.Rows != 3 || again.At.Pages != 1 {
		t.Fatalf("%v %v %s", found, err, diff)
	}
	last := f.stage(t, again, true, user("d", ""))
	if !last.Complete || last.At.SyncToken != "t-next" || last.At.Cursor != "" || last.At.Pages != 2 || last.Rows != 4 {
		t.Errorf("%+v", last)
	}
	if diff := cmp.Diff(before, f.lines(t)); diff != "" || f.checkpoint(t) != restarted {
		t.Errorf("staging reached the readers or the state: %s", diff)
	}
	f.merge(t, last)
	if got := f.fates(t); got != "a live 1, b absent now 6, c live 3, d live 4, m live 5" {
		t.Error(got)
	}
	f.soundState(t)
}

func TestStagingIsFenced(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""))
	old := f.begin(t, mirror.PurposeRebuild)
	s := stageStep(old, false, user("b", ""))
	if _, _, err := f.Stage(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	_, _, err := f.Stage(t.Context(), s)
	wantKind(t, err, mirror.KindFenced) // the same page twice

	stale := f.checkpoint(t)
	f.commit(t, user("a", `,"n":1`))
	_, err = f.BeginPass(t.Context(), stale, mirror.PurposeRebuild, "")
	wantKind(t, err, mirror.KindFenced)
	if n := value[int64](t, f, "select count(*) from xiaoqu_sync.staging_users"); n != 1 {
		t.Errorf("a fenced beginning left %d staged rows", n)
	}
	for name, replace := range map[string]func(){
		"begun anew": func() {},
		"dropped": func() {
			if err := f.DropPass(t.Context(), "users"); err != nil {
				t.Fatal(err)
			}
			if _, found, err := f.Pass(t.Context(), "users"); found || err != nil {
				t.Error(found, err)
			}
		},
	} {
		old := f.begin(t, mirror.PurposeRebuild)
		replace()
		p := f.begin(t, mirror.PurposePlan)
		_, _, err = f.Stage(t.Context(), stageStep(old, false, user("z", "")))
		wantKind(t, err, mirror.KindFenced)
		if n := value[int64](t, f, "select count(*) from xiaoqu_sync.staging_users"); n != 0 || p.Rows != 0 {
			t.Errorf("%s: %d rows of the old pass", name, n)
		}
	}
}

func TestStageRefusesNonsense(t *testing.T) {
	f := setUp(t)
	p := f.begin(t, mirror.PurposeRebuild)
	other := stageStep(p, false)
	other.After.Resource = "contracts"
	early := stageStep(p, false)
	early.After.SyncToken = "t"
	late := stageStep(p, true)
	late.After.SyncToken = ""
	complete := stageStep(f.stage(t, p, true, user("a", "")), true)
	for _, s := range []mirror.StageStep{other, early, late, complete} {
		_, _, err := f.Stage(t.Context(), s)
		wantKind(t, err, mirror.KindInternal)
	}
	verified := f.full(t, mirror.PurposeVerify, nil)
	_, _, err := f.Merge(t.Context(), f.checkpoint(t), verified, lenient)
	wantKind(t, err, mirror.KindInternal)
	_, _, err = f.Merge(t.Context(), f.checkpoint(t), f.begin(t, mirror.PurposeRebuild), lenient)
	wantKind(t, err, mirror.KindInternal)
}

func TestLostStagingIsNoticed(t *testing.T) {
	tests := map[string]string{
		"truncated":           "truncate xiaoqu_sync.staging_users",
		"a row is missing":    "delete from xiaoqu_sync.staging_users where id = 'a'",
		"a row was added":     "insert into xiaoqu_sync.staging_users (seq, id, tombstone) values (9, 'x', false)",
		"dropped":             "drop table xiaoqu_sync.staging_users",
		"emptied and renamed": "alter table xiaoqu_sync.staging_users rename to staging_elsewhere",
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			f.commit(t, user("a", ""), user("b", ""))
			before := f.lines(t)
			p := f.full(t, mirror.PurposeRebuild, []string{user("a", "")}, []string{user("c", "")})
			if _, err := f.sql.Exec(t.Context(), damage); err != nil {
				t.Fatal(err)
			}
			_, err := f.Compare(t.Context(), f.checkpoint(t), p)
			if !errors.Is(err, mirror.ErrStagingLost) {
				t.Errorf("compare: %v", err)
			}
			_, _, err = f.Merge(t.Context(), f.checkpoint(t), p, lenient)
			if !errors.Is(err, mirror.ErrStagingLost) || !strings.HasPrefix(err.Error(), "mirror: merge users: ") {
				t.Errorf("merge: %v", err)
			}
			if diff := cmp.Diff(before, f.lines(t)); diff != "" {
				t.Error("readers lost rows: ", diff)
			}
			f.merge(t, f.full(t, mirror.PurposeRebuild, []string{user("a", "")}))
			f.soundState(t)
		})
	}
}

func TestStagingDroppedBetweenPages(t *testing.T) {
	f := setUp(t)
	p := f.stage(t, f.begin(t, mirror.PurposeRebuild), false, user("a", ""))
	drop := func() {
		if _, err := f.sql.Exec(t.Context(), "drop table xiaoqu_sync.staging_users"); err != nil {
			t.Fatal(err)
		}
	}
	drop()
	if _, _, err := f.Stage(t.Context(), stageStep(p, true, user("b", ""))); !errors.Is(err, mirror.ErrStagingLost) {
		t.Errorf("%v", err)
	}
	drop()
	p = f.begin(t, mirror.PurposeRebuild)
	drop()
	if err := f.DropPass(t.Context(), "users"); err != nil {
		t.Error(err)
	}
	if _, _, err := f.Stage(t.Context(), stageStep(p, false)); err == nil {
		t.Error("a page without a pass")
	}
}

func TestTwoResourcesDoNotShareStaging(t *testing.T) {
	f := setUp(t)
	if _, err := f.Migrate(t.Context(), []string{"users", "contracts"}, false); err != nil {
		t.Fatal(err)
	}
	f.commit(t, user("a", ""))
	at, err := f.Checkpoint(t.Context(), "contracts")
	if err != nil {
		t.Fatal(err)
	}
	mine := f.stage(t, f.begin(t, mirror.PurposeRebuild), false, user("a", ""))
	theirs, err := f.BeginPass(t.Context(), at, mirror.PurposeRebuild, "REQUESTED")
	if err != nil {
		t.Fatal(err)
	}
	theirs = f.stage(t, theirs, true, user("c1", ""))
	mine = f.stage(t, mine, true, user("b", ""))
	if _, _, err := f.Merge(t.Context(), at, theirs, lenient); err != nil {
		t.Fatal(err)
	}
	if got := f.fates(t); got != "a live 1" {
		t.Error(got)
	}
	f.merge(t, mine)
	if got := f.fates(t); got != "a live 1, b live 2" {
		t.Error(got)
	}
	if n := value[int64](t, f, "select count(*) from xiaoqu.contracts_live"); n != 1 {
		t.Errorf("%d contracts", n)
	}
}

// The two ways into the table must not differ in a single column.
func TestStagedRowsAreThoseOfCommit(t *testing.T) {
	f := setUp(t)
	if _, err := f.Migrate(t.Context(), []string{"users", "others"}, false); err != nil {
		t.Fatal(err)
	}
	page := []string{
		`{"id":"a","modify_time":"0001-01-01T00:00:00Z","version":""}`, `{"id":"b","modify_time":"9999-12-31T23:59:59.999999Z","version":1.50}`,
		`{"id":"c","deleted_at":"1969-12-31T23:59:59.5Z"}`, `{"id":"d","deleted_at":"?","modify_time":"2026-02-03T04:05:06.000007Z"}`,
		`{"id":"e","x":"张\u0000\\u0000\u2028😀","n":[1.10,1e400,{"\"":null}]}`, `{"id":12345678901234567890}`, user("tab\tnew\nline\\N", ""),
	}
	f.commit(t, page...)
	at, err := f.Checkpoint(t.Context(), "others")
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.BeginPass(t.Context(), at, mirror.PurposeRebuild, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Merge(t.Context(), at, f.stage(t, p, true, page...), lenient); err != nil {
		t.Fatal(err)
	}
	const columns = "select id, record::text, modify_time, deleted_at, delete_reason, version, snapshot_id, change_seq, content_hash from "
	if n := value[int64](t, f, fmt.Sprintf("select count(*) from (%[1]sxiaoqu.users except %[1]sxiaoqu.others) d", columns)); n != 0 {
		t.Errorf("%d rows differ", n)
	}
	if n := value[int64](t, f, "select count(*) from xiaoqu.others"); n != int64(len(page)) {
		t.Errorf("%d rows", n)
	}
}

func TestStagingSurvivesACrashOfTheServer(t *testing.T) {
	c, err := localpg.Start(t.Context(), localpg.Options{Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop() })
	f := fixture{url: c.URL("postgres")}
	f.Mirror, f.sql = open(t, f.url), connect(t, f.url)
	if _, err := f.Migrate(t.Context(), []string{"users"}, false); err != nil {
		t.Fatal(err)
	}
	f.commit(t, user("a", ""))
	p := f.stage(t, f.begin(t, mirror.PurposeRebuild), false, user("a", ""))
	p = f.stage(t, p, false, user("b", ""))
	if err := errors.Join(c.Kill(), c.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	f.Mirror, f.sql = open(t, f.url), connect(t, f.url)
	again, found, err := f.Pass(t.Context(), "users")
	if diff := cmp.Diff(p, again); diff != "" || !found || err != nil {
		t.Fatalf("%v %v %s", found, err, diff)
	}
	f.merge(t, f.stage(t, again, true, user("c", "")))
	if got := f.fates(t); got != "a live 1, b live 2, c live 3" {
		t.Error(got)
	}
}
