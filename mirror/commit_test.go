package mirror_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

func TestFirstCommitStoresRowsAndCheckpoint(t *testing.T) {
	f := setUp(t)
	before := f.checkpoint(t)
	if want := (mirror.Checkpoint{Resource: "users", Phase: mirror.PhaseIncremental}); before != want {
		t.Fatalf("fresh checkpoint %+v", before)
	}
	cutoff := timeAt(t, "2026-09-15T00:00:00Z")
	s := step(before, `{"id":"u2","name":"李娜","modifyTime":1789381231,"version":12.50}`, user("u1", `,"version":"v1"`))
	s.After.DataCutoffAt = &cutoff
	after, counts, err := f.Commit(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	want := s.After
	want.Epoch = before.Epoch + 1
	if diff := cmp.Diff(want, after); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, f.checkpoint(t)); diff != "" {
		t.Error("stored checkpoint: ", diff)
	}
	if diff := cmp.Diff(mirror.Counts{Received: 2, Inserted: 2}, counts); diff != "" {
		t.Error(diff)
	}
	row := value[string](t, f, `select concat_ws('|', record ->> 'name', modify_time at time zone 'UTC', version, snapshot_id, change_seq, synced_at is not null)
		from xiaoqu.users_live where id = 'u2'`)
	if row != "李娜|2026-09-14 10:20:31|12.50|snap-1|2|t" {
		t.Error(row)
	}
}

func TestReplayOfAPageChangesNoRow(t *testing.T) {
	f := setUp(t)
	page := []string{user("a", ""), user("b", `,"deleted_at":"2026-09-02T00:00:00Z"`), user("c", `,"x":"\u0000"`)}
	f.commit(t, page...)
	before, epoch := f.lines(t), f.checkpoint(t).Epoch
	counts := f.commit(t, page...)
	if diff := cmp.Diff(before, f.lines(t)); diff != "" {
		t.Error("rows were written: ", diff)
	}
	if diff := cmp.Diff(mirror.Counts{Received: 3, Unchanged: 3, Mended: 1}, counts); diff != "" {
		t.Error(diff)
	}
	if got := f.checkpoint(t).Epoch; got != epoch+1 {
		t.Errorf("epoch %d after %d", got, epoch)
	}
	// Another order of keys, other spaces, other escapes: the same content.
	if counts := f.commit(t, `{ "modify_time":"2026-09-01T08:00:00Z", "name":"\u5f20\u4f1f", "id":"a" }`); counts.Unchanged != 1 {
		t.Errorf("another spelling: %+v", counts)
	}
}

func TestFatesOfARow(t *testing.T) {
	const gone = `,"deleted_at":"2026-09-03T00:00:00Z"`
	tests := []struct {
		name          string
		before, after string // before "" is an empty table
		want          mirror.Counts
		line          string
	}{
		{"a live record of a new id is inserted", "", user("u", ""), mirror.Counts{Inserted: 1}, "u live 1"},
		{"a tombstone deletes", user("u", ""), user("u", gone), mirror.Counts{Deleted: 1}, "u deleted 2"},
		{"a tombstone of an unknown id is stored", "", `{"id":"u","deleted_at":"2026-09-03T00:00:00Z"}`, mirror.Counts{Deleted: 1}, "u deleted 1"},
		{"a tombstone that does not parse is one", user("u", ""), user("u", `,"deleted_at":{"when":"?"}`), mirror.Counts{Deleted: 1}, "u deleted 2"},
		{"false and 0 are not empty", user("u", ""), user("u", `,"deletedAt":0`), mirror.Counts{Deleted: 1}, "u deleted 2"},
		{"an empty deleted_at is live", user("u", ""), user("u", `,"deleted_at":""`), mirror.Counts{Updated: 1}, "u live 2"},
		{"a null deleted_at is live", user("u", ""), user("u", `,"deleted_at":null`), mirror.Counts{Updated: 1}, "u live 2"},
		{"a later live record revives", user("u", gone), user("u", ""), mirror.Counts{Revived: 1}, "u live 2"},
		{"another tombstone of a deleted row updates", user("u", gone), user("u", gone+`,"x":1`), mirror.Counts{Updated: 1}, "u deleted 2"},
		{"a number's text is content", user("u", `,"n":1.0`), user("u", `,"n":1.00`), mirror.Counts{Updated: 1}, "u live 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := setUp(t)
			if tt.before != "" {
				f.commit(t, tt.before)
			}
			tt.want.Received = 1
			if diff := cmp.Diff(tt.want, f.commit(t, tt.after)); diff != "" {
				t.Error(diff)
			}
			if got := withoutXmin(f.lines(t)); got != tt.line {
				t.Errorf("row %q, want %q", got, tt.line)
			}
			live := value[int64](t, f, "select live_rows - (select count(*) from xiaoqu.users_live) from xiaoqu_sync.state")
			dead := value[int64](t, f, "select deleted_rows - (select count(*) from xiaoqu.users where deleted_at is not null) from xiaoqu_sync.state")
			if live != 0 || dead != 0 {
				t.Errorf("the state's counters are off by %d and %d", live, dead)
			}
		})
	}
}

func TestFirstDeletionTimeStays(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", `,"deleted_at":"2026-09-02T00:00:00Z"`), user("b", `,"deleted_at":true`), `{"id":"c","deleted_at":"?"}`)
	f.commit(t, user("a", `,"deleted_at":"2026-10-02T00:00:00Z"`))
	times := map[string]string{"a": "2026-09-02 00:00:00", "b": "2026-09-01 08:00:00"} // b: its modify_time
	for id, want := range times {
		if got := value[string](t, f, "select (deleted_at at time zone 'UTC')::text from xiaoqu.users where id = $1", id); got != want {
			t.Errorf("%s deleted at %s, want %s", id, got, want)
		}
	}
	if !value[bool](t, f, "select deleted_at = synced_at from xiaoqu.users where id = 'c'") {
		t.Error("a tombstone without any time is deleted when it was seen")
	}
	// Deleted anew after a revival is a new deletion.
	f.commit(t, user("a", ""))
	f.commit(t, user("a", `,"deleted_at":"2026-11-02T00:00:00Z"`))
	if got := value[string](t, f, "select (deleted_at at time zone 'UTC')::text from xiaoqu.users where id = 'a'"); got != "2026-11-02 00:00:00" {
		t.Error(got)
	}
}

func TestTheLastOfOneIDWins(t *testing.T) {
	f := setUp(t)
	counts := f.commit(t, user("u", `,"n":1`), `{"id":7}`, user("u", `,"deleted_at":"2026-09-02T00:00:00Z"`), user("u", `,"n":3`), `{"id":"7"}`)
	if diff := cmp.Diff(mirror.Counts{Received: 5, Inserted: 2, Duplicates: 3}, counts); diff != "" {
		t.Error(diff)
	}
	if got := value[string](t, f, "select record ->> 'n' from xiaoqu.users_live where id = 'u'"); got != "3" {
		t.Error(got)
	}
}

func TestChangeSeqFollowsCommits(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("b", ""), user("a", ""))
	f.commit(t, user("c", ""), user("a", ""), user("b", `,"n":1`))
	if got, want := withoutXmin(f.lines(t)), "a live 1, b live 3, c live 4"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// Somebody else moves the state row while the page waits for it.
	tx, err := f.sql.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "update xiaoqu_sync.state set change_seq = 100"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	s := step(f.checkpoint(t), user("d", ""))
	go func() { _, _, err := f.Commit(context.WithoutCancel(t.Context()), s); done <- err }()
	waitForLockWait(t, f)
	if err := errors.Join(tx.Commit(t.Context()), <-done); err != nil {
		t.Fatal(err)
	}
	if got := value[int64](t, f, "select change_seq from xiaoqu.users where id = 'd'"); got != 101 {
		t.Errorf("change_seq %d", got)
	}
}

// waitForLockWait returns when somebody in the database waits for a row.
func waitForLockWait(t *testing.T, f fixture) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if value[bool](t, f, "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody waits")
		}
	}
}

func TestOfTwoWritersOneWins(t *testing.T) {
	f := setUp(t)
	before := f.checkpoint(t)
	errs := make(chan error, 8)
	for i := range cap(errs) {
		s := step(before, user(fmt.Sprintf("u%d", i), ""), user("shared", fmt.Sprintf(`,"n":%d`, i)), `{"bad":true}`)
		go func() { _, _, err := f.Commit(context.WithoutCancel(t.Context()), s); errs <- err }()
	}
	won := 0
	for range cap(errs) {
		if err := <-errs; err == nil {
			won++
		} else {
			wantKind(t, err, mirror.KindFenced)
		}
	}
	if won != 1 || len(f.lines(t)) != 2 || f.checkpoint(t).Epoch != before.Epoch+1 {
		t.Errorf("%d won, rows %v", won, f.lines(t))
	}
	if n := value[int64](t, f, "select sum(seen)::bigint from xiaoqu_sync.quarantine"); n != 1 {
		t.Errorf("%d quarantine lines of the losers", n-1)
	}
}

func TestARepeatedStepIsFenced(t *testing.T) {
	f := setUp(t)
	s := step(f.checkpoint(t), user("u", ""))
	if _, _, err := f.Commit(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	before := f.lines(t)
	_, _, err := f.Commit(t.Context(), s)
	wantKind(t, err, mirror.KindFenced)
	if diff := cmp.Diff(before, f.lines(t)); diff != "" {
		t.Error(diff)
	}
}

func TestQuarantine(t *testing.T) {
	f := setUp(t)
	page := []string{user("good", ""), `{"name":"no id"}`, `{"name":"no id"}`, `[1]`, `{"id":`, user("m", "")[:8] + `\ud800"}`, `{"id":"n","x":"\u0000"}`}
	counts := f.commit(t, page...)
	if diff := cmp.Diff(mirror.Counts{Received: 7, Inserted: 2, Quarantined: 5, Mended: 1}, counts); diff != "" {
		t.Error(diff)
	}
	f.commit(t, page...)
	got := value[string](t, f, `select string_agg(concat_ws('|', kind, reason, record_id, convert_from(raw, 'UTF8'), raw_length, seen, request_id, snapshot_id, run_id), E'\n' order by id)
		from xiaoqu_sync.quarantine where resource = 'users'`)
	want := strings.Join([]string{
		`refused|no id|{"name":"no id"}|16|4|r_1|snap-1|7`,
		`refused|not a JSON object|[1]|3|2|r_1|snap-1|7`,
		`refused|not valid JSON|{"id":|6|2|r_1|snap-1|7`,
		`refused|id holds text that cannot be stored|{"id":"m\ud800"}|16|2|r_1|snap-1|7`,
		`mended|NUL or invalid Unicode was replaced by U+FFFD|n|{"id":"n","x":"\u0000"}|23|2|r_1|snap-1|7`,
	}, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	f := setUp(t)
	for _, n := range []string{"9007199254740993", "9223372036854775807", "12345678901234567890", "1.10", "0.1", "123456789.123456789012345678901234567890", "1e400", "1E+2", "-0"} {
		f.commit(t, `{"id":"n","n":`+n+`}`)
		if !value[bool](t, f, "select record ->> 'n' = ($1::jsonb)::text from xiaoqu.users where id = 'n'", n) {
			t.Errorf("%s: stored %s", n, value[string](t, f, "select record ->> 'n' from xiaoqu.users where id = 'n'"))
		}
	}
}

func TestLastPageClosesTheRound(t *testing.T) {
	f := setUp(t)
	cutoff := timeAt(t, "2026-09-15T00:00:00Z")
	s := step(f.checkpoint(t), user("u", ""))
	s.After.DataCutoffAt = &cutoff
	mid, _, err := f.Commit(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if value[bool](t, f, "select last_success_at is not null or data_cutoff_at is not null from xiaoqu.freshness") {
		t.Error("half a round passes for complete")
	}
	last := mirror.Step{Before: mid, After: mirror.Checkpoint{Resource: "users", Phase: mirror.PhaseIncremental, SyncToken: "t1"}, Batch: mirror.NewBatch([]json.RawMessage{[]byte(user("v", ""))}, time.UTC), Last: true}
	if _, _, err := f.Commit(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if !value[bool](t, f, "select data_cutoff_at = '2026-09-15Z' and last_success_at is not null and age > '0' and live_rows = 2 from xiaoqu.freshness") {
		t.Error("freshness did not move")
	}
	if got := value[string](t, f, "select snapshot_id from xiaoqu.users where id = 'v'"); got != "snap-1" {
		t.Errorf("snapshot %q of the closing page", got)
	}
}

func TestEmptyPage(t *testing.T) {
	f := setUp(t)
	if diff := cmp.Diff(mirror.Counts{}, f.commit(t)); diff != "" {
		t.Error(diff)
	}
	if c := f.checkpoint(t); c.Pages != 1 || c.Epoch != 1 {
		t.Errorf("%+v", c)
	}
}

func TestCommitRefusesNonsense(t *testing.T) {
	f := setUp(t)
	other := step(f.checkpoint(t))
	other.After.Resource = "contracts"
	_, _, err := f.Commit(t.Context(), other)
	wantKind(t, err, mirror.KindInternal)
	rebuild, err := f.Restart(t.Context(), f.checkpoint(t), "expired", false)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = f.Commit(t.Context(), step(rebuild, user("u", "")))
	wantKind(t, err, mirror.KindInternal)
	if len(f.lines(t)) != 0 {
		t.Error("a rebuild's page reached the readers' table")
	}
}
