package mirror_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

func TestJoinedPagesAreOneLargerPage(t *testing.T) {
	f := setUp(t)
	before := f.checkpoint(t)
	one := step(before, user("a", `,"n":1`), user("b", `,"n":1`), `{"name":"no id"}`, `{"id":"n","x":"\u0000"}`)
	two := step(one.After, user("b", `,"n":2`), user("c", gone), `{"name":"no id"}`, `[1]`)
	three := step(two.After, user("c", ""), user("a", `,"n":1`))
	two.Batch.RequestID, three.Batch.RequestID = "r_2", "r_3"
	joined := step(before)
	joined.After, joined.Batch = three.After, mirror.Join([]*mirror.Batch{one.Batch, two.Batch, three.Batch})
	after, counts, err := f.Commit(t.Context(), joined)
	if err != nil {
		t.Fatal(err)
	}
	if after.Cursor != "cursor-3" || after.Epoch != before.Epoch+1 {
		t.Errorf("the checkpoint is %+v", after)
	}
	if diff := cmp.Diff(mirror.Counts{Received: 10, Inserted: 4, Duplicates: 3, Quarantined: 3, Mended: 1}, counts); diff != "" {
		t.Error(diff)
	}
	if got := withoutXmin(f.lines(t)); got != "a live 1, b live 2, c live 3, n live 4" {
		t.Error(got)
	}
	if n := value[string](t, f, "select record ->> 'n' from xiaoqu.users where id = 'b'"); n != "2" {
		t.Errorf("of the id that came twice %s is there", n)
	}
	quarantine := value[string](t, f, `select string_agg(concat_ws('|', reason, seen, request_id), E'\n' order by id) from xiaoqu_sync.quarantine`)
	want := "no id|2|r_2\nNUL or invalid Unicode was replaced by U+FFFD|1|r_1\nnot a JSON object|1|r_2"
	if diff := cmp.Diff(want, quarantine); diff != "" {
		t.Error(diff)
	}
}

func TestJoinedPagesOfAPassCountAsManyPages(t *testing.T) {
	f := setUp(t)
	p := f.begin(t, mirror.PurposeRebuild)
	one, two := stageStep(p, false, user("a", ""), user("b", "")), stageStep(p, true, user("b", `,"n":2`), `{"id":"c","x":1e99999}`)
	two.Batch = mirror.Join([]*mirror.Batch{one.Batch, two.Batch})
	staged, counts, err := f.Stage(t.Context(), two)
	if err != nil {
		t.Fatal(err)
	}
	if staged.At.Pages != 2 || staged.Rows != 3 || !staged.Complete {
		t.Errorf("the pass stands at %+v", staged)
	}
	if diff := cmp.Diff(mirror.Counts{Received: 4, Staged: 2, Duplicates: 1, Quarantined: 1}, counts); diff != "" {
		t.Error(diff)
	}
	if _, _, err := f.Merge(t.Context(), f.checkpoint(t), staged, lenient); err != nil {
		t.Fatal(err)
	}
	if got := withoutXmin(f.lines(t)); got != "a live 1, b live 2" {
		t.Error(got)
	}
}

// everything is the resource's table but for the time of day, and what its state
// row counts.
const everything = `
select string_agg(concat_ws('|', id, record, modify_time, deleted_at < now() - interval '1 day', deleted_at = synced_at, delete_reason, version,
                            snapshot_id, change_seq, content_hash), E'\n' order by id)
       || (select concat_ws('|', cursor, pages, change_seq, live_rows, deleted_rows, last_commit_at is not null) from xiaoqu_sync.state where resource = 'users')
from xiaoqu.users`

// The short way of a first sync must not differ in anything from the way of any
// other page, whether the rows are new or not.
func TestAFreshStepDoesWhatAnyOtherDoes(t *testing.T) {
	first := []string{
		user("a", `,"version":"v1"`), user("b", gone), `{"id":"c","deleted_at":"?"}`, `{"id":"d","deleted_at":"?","modify_time":"2026-02-03T04:05:06.000007Z"}`,
		`{"id":"e","x":"张\u0000\\u0000\u2028😀","n":[1.10,1e400,{"\"":null}]}`, `{"id":12345678901234567890}`, user("tab\tnew\nline\\N", ""), `{"name":"no id"}`,
	}
	for name, second := range map[string][]string{
		"all new":           {user("f", ""), user("g", gone)},
		"one is there":      {user("a", `,"version":"v2"`), user("f", "")},
		"all are unchanged": first,
		"one comes back":    {user("b", ""), user("f", "")},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[bool]string{}
			counted := map[bool]mirror.Counts{}
			for _, fresh := range []bool{true, false} {
				f := setUp(t)
				for _, page := range [][]string{first, second} {
					s := step(f.checkpoint(t), page...)
					s.Fresh = fresh
					_, c, err := f.Commit(t.Context(), s)
					if err != nil {
						t.Fatal(err)
					}
					counted[fresh] = counted[fresh].Add(c)
				}
				seen[fresh] = value[string](t, f, everything)
			}
			if diff := cmp.Diff(strings.Split(seen[false], "\n"), strings.Split(seen[true], "\n")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(counted[false], counted[true]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFreshStepIsFencedAndProvesItsCount(t *testing.T) {
	f := setUp(t)
	s := step(f.checkpoint(t), user("a", ""))
	s.Fresh = true
	if _, _, err := f.Commit(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	_, _, err := f.Commit(t.Context(), s)
	wantKind(t, err, mirror.KindFenced)
	f.exec(t, `create function swallow() returns trigger language plpgsql as 'begin return null; end';
		create trigger swallow before insert on xiaoqu.users for each row execute function swallow()`)
	s = step(f.checkpoint(t), user("b", ""))
	s.Fresh = true
	_, _, err = f.Commit(t.Context(), s)
	wantKind(t, err, mirror.KindInternal)
	if got := withoutXmin(f.lines(t)); got != "a live 1" {
		t.Error(got)
	}
	if seq := value[int64](t, f, "select change_seq from xiaoqu_sync.state where resource = 'users'"); seq != 1 {
		t.Errorf("the state row moved to change %d", seq)
	}
}
