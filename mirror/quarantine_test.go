package mirror_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

// remember puts a record into quarantine that an older release could not store.
func (f fixture) remember(t *testing.T, raw, recordID, seenAt string) {
	t.Helper()
	_, err := f.sql.Exec(t.Context(), `
		insert into xiaoqu_sync.quarantine (resource, kind, reason, record_id, raw, raw_hash, raw_length, first_seen_at, last_seen_at)
		values ('users', 'refused', 'an older release could not', nullif($2, ''), convert_to($1, 'UTF8'), sha256(convert_to($1, 'UTF8')), octet_length($1), $3::timestamptz, $3::timestamptz)`,
		raw, recordID, seenAt)
	if err != nil {
		t.Fatal(err)
	}
}

func TestQuarantineIsListedInParts(t *testing.T) {
	f := setUp(t)
	f.commit(t, `{"name":"no id"}`, `[1]`, `{"id":"n","x":"\u0000"}`)
	all, err := f.Quarantine(t.Context(), mirror.Selection{Raw: true})
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	want := mirror.Quarantined{
		ID: all[2].ID, Resource: "users", Kind: "mended", Reason: "NUL or invalid Unicode was replaced by U+FFFD", RecordID: "n",
		RawLength: 23, Seen: 1, RequestID: "r_1", SnapshotID: "snap-1", RunID: 7, Raw: []byte(`{"id":"n","x":"\u0000"}`),
	}
	if diff := cmp.Diff(want, all[2], cmpopts.IgnoreFields(mirror.Quarantined{}, "FirstSeenAt", "LastSeenAt")); diff != "" {
		t.Error(diff)
	}
	for name, tt := range map[string]struct {
		s    mirror.Selection
		want int
	}{
		"one kind":         {mirror.Selection{Kind: "refused"}, 2},
		"a first part":     {mirror.Selection{Limit: 1}, 1},
		"what comes after": {mirror.Selection{After: all[0].ID}, 2},
		"some ids":         {mirror.Selection{IDs: []int64{all[0].ID, 999}}, 1},
		"another resource": {mirror.Selection{Resources: []string{"contracts"}}, 0},
	} {
		got, err := f.Quarantine(t.Context(), tt.s)
		if err != nil || len(got) != tt.want || len(got) > 0 && got[0].Raw != nil {
			t.Errorf("%s: %d lines, %v", name, len(got), err)
		}
	}
}

func TestDropRemovesWhatIsSelected(t *testing.T) {
	f := setUp(t)
	f.commit(t, `{"name":"no id"}`, `[1]`, `{"id":"n","x":"\u0000"}`)
	gone, err := f.Drop(t.Context(), mirror.Selection{Kind: "refused", Limit: 1})
	if diff := cmp.Diff(map[string]int64{"users": 2}, gone); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if n := value[int](t, f, "select count(*) from xiaoqu_sync.quarantine"); n != 1 {
		t.Errorf("%d lines are left", n)
	}
}

func TestReplayStoresWhatTodaysCodeCan(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("known", ""), user("later", `,"n":2`), `[1]`, `{"id":"m","x":"\u0000"}`)
	f.exec(t, "update xiaoqu.users set synced_at = '2026-01-02Z' where id <> 'later'")
	f.remember(t, user("fresh", ""), "fresh", "2026-01-03Z")
	f.remember(t, user("known", `,"n":2`), "", "2026-01-03Z")
	f.remember(t, user("known", `,"n":3`), "known", "2026-01-04Z")
	f.remember(t, user("known", `,"n":1`), "known", "2026-01-01Z")
	f.remember(t, user("later", `,"n":1`), "later", "2026-01-03Z")
	f.remember(t, user("gone", gone), "gone", "2026-01-03Z")
	before := f.checkpoint(t)
	after, done, err := f.Replay(t.Context(), before, mirror.Selection{}, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mirror.Replayed{Tried: 8, Stored: 3, Superseded: 3, Remaining: 2}, done); diff != "" {
		t.Error(diff)
	}
	if got := value[string](t, f, "select string_agg(concat(id, ' ', record->>'n', ' ', delete_reason), ', ' order by id) from xiaoqu.users"); got != "fresh  , gone  tombstone, known 3 , later 2 , m  " {
		t.Error(got)
	}
	if n := value[int](t, f, "select count(*) from xiaoqu_sync.quarantine"); n != 2 {
		t.Errorf("%d lines are left", n)
	}
	before.Epoch++
	if diff := cmp.Diff(before, after); diff != "" || after != f.checkpoint(t) {
		t.Errorf("the position moved: %s", diff)
	}
	f.soundState(t)
	if _, done, err := f.Replay(t.Context(), after, mirror.Selection{}, time.UTC); err != nil || done != (mirror.Replayed{Tried: 2, Remaining: 2}) {
		t.Errorf("again: %+v, %v", done, err)
	}
}

func TestANewerRecordThatWaitsInQuarantineMakesAnOlderOneOld(t *testing.T) {
	f := setUp(t)
	f.commit(t)
	f.remember(t, user("a", `,"n":1`), "a", "2026-01-03Z")
	f.remember(t, user("a", `,"n":2`), "a", "2026-01-04Z")
	first := value[int64](t, f, "select min(id) from xiaoqu_sync.quarantine")
	at, done, err := f.Replay(t.Context(), f.checkpoint(t), mirror.Selection{IDs: []int64{first}}, time.UTC)
	if err != nil || done != (mirror.Replayed{Tried: 1, Superseded: 1}) {
		t.Errorf("%+v, %v", done, err)
	}
	if _, done, err = f.Replay(t.Context(), at, mirror.Selection{}, time.UTC); err != nil || done.Stored != 1 {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestReplayWorksInParts(t *testing.T) {
	f := setUp(t)
	f.commit(t)
	f.exec(t, `insert into xiaoqu_sync.quarantine (resource, kind, reason, raw, raw_hash, raw_length, last_seen_at)
		select 'users', 'refused', '', r.raw, sha256(r.raw), length(r.raw), now() - interval '1 hour'
		from (select convert_to('{"id":"' || i % 450 || '"}' || repeat(' ', i / 450), 'UTF8') as raw from generate_series(0, 499) i) r`)
	_, done, err := f.Replay(t.Context(), f.checkpoint(t), mirror.Selection{}, time.UTC)
	if err != nil || done != (mirror.Replayed{Tried: 500, Stored: 450, Superseded: 50}) {
		t.Errorf("%+v, %v", done, err)
	}
	f.soundState(t)
}

func TestReplayRefuses(t *testing.T) {
	f := setUp(t)
	f.commit(t)
	f.remember(t, user("a", ""), "a", "2026-01-03Z")
	old := f.checkpoint(t)
	f.commit(t, user("b", ""))
	_, _, err := f.Replay(t.Context(), old, mirror.Selection{}, time.UTC)
	wantKind(t, err, mirror.KindFenced)
	rebuild, err := f.Restart(t.Context(), f.checkpoint(t), "expired", false)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = f.Replay(t.Context(), rebuild, mirror.Selection{}, time.UTC)
	wantKind(t, err, mirror.KindConfig)
	if n := value[int](t, f, "select count(*) from xiaoqu_sync.quarantine"); n != 1 || len(f.lines(t)) != 1 {
		t.Errorf("%d lines are left, rows %v", n, f.lines(t))
	}
}
