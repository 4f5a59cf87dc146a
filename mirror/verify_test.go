package mirror_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

// random is a page of users with random contents; one id may come twice.
func random(r *rand.Rand, n int) []string {
	more := []string{"", "", "", gone, `,"n":1`, `,"n":1.0`, `,"deleted_at":"?","n":3`}
	page := make([]string, r.IntN(n))
	for i := range page {
		page[i] = user(fmt.Sprintf("u%02d", r.IntN(n)), more[r.IntN(len(more))])
	}
	return page
}

func TestAComparisonSaysWhatTheMergeDoes(t *testing.T) {
	f := setUp(t)
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		if r.IntN(2) == 0 {
			f.commit(t, random(r, 40)...)
		}
		before := f.checkpoint(t)
		p := f.full(t, mirror.PurposePlan, random(r, 40), random(r, 40), random(r, 40))
		lines := f.lines(t)
		d, err := f.Compare(t.Context(), before, p)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(lines, f.lines(t)); diff != "" || f.checkpoint(t) != before {
			t.Fatalf("the comparison wrote: %s", diff)
		}
		c := f.merge(t, p)
		got := mirror.Counts{Inserted: d.Inserted, Updated: d.Updated, Deleted: d.Deletes(), Revived: d.Revived, Unchanged: d.Unchanged, Duplicates: c.Duplicates}
		// A tombstone of an unknown id is an insertion to one and a deletion to the other.
		got.Inserted, got.Deleted = got.Inserted+got.Deleted, 0
		c.Inserted, c.Deleted = c.Inserted+c.Deleted, 0
		if diff := cmp.Diff(got, c); diff != "" {
			t.Fatalf("round %d: %s", round, diff)
		}
		if p.Rows != c.Stored()-d.Absent+c.Unchanged+c.Duplicates {
			t.Fatalf("round %d: %d staged rows are not %+v", round, p.Rows, c)
		}
		f.soundState(t)
		again, err := f.Compare(t.Context(), f.checkpoint(t), f.full(t, mirror.PurposeVerify, nil))
		if err != nil || again.Absent != value[int64](t, f, "select live_rows from xiaoqu_sync.state") {
			t.Fatalf("%+v, %v", again, err)
		}
	}
}

func TestFieldsCompareTexts(t *testing.T) {
	f := setUp(t)
	f.commit(t, `{"id":"a","same":1,"number":1.0,"lost":1,"nested":{"x":[1]},"null":null}`, `{"id":"b","same":1,"number":1}`)
	p := f.full(t, mirror.PurposePlan, []string{`{"id":"a","same":1,"number":1.00,"new":1,"nested":{"x":[2]},"null":""}`, `{"id":"b","same":1,"number":2}`})
	d, err := f.Compare(t.Context(), f.checkpoint(t), p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int64{"number": 2, "lost": 1, "new": 1, "nested": 1, "null": 1}, d.Fields); diff != "" {
		t.Error(diff)
	}
}

func TestVerification(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("changed", ""), user("deleted", ""), user("drifted", ""), user("extra", ""), user("same", ""))
	before, lines := f.checkpoint(t), f.lines(t)
	p := f.full(t, mirror.PurposeVerify, []string{user("added", ""), user("changed", `,"n":1`)}, []string{user("drifted", `,"n":1`), user("missing", ""), user("same", "")})
	explained := []string{user("added", ""), user("changed", `,"n":1`), user("deleted", gone), user("same", "")}
	for range 2 { // an increment that is read twice explains as much
		if err := f.Explain(t.Context(), p, step(before, explained...).Batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Explain(t.Context(), p, mirror.NewBatch(nil, time.UTC)); err != nil {
		t.Fatal(err)
	}
	d, err := f.Compare(t.Context(), before, p)
	if err != nil {
		t.Fatal(err)
	}
	want := mirror.Difference{
		Inserted: 1, Updated: 1, Absent: 1, Unchanged: 1, Live: 5, Explained: 3, Fields: map[string]int64{"n": 1},
		Samples: map[string][]string{"inserted": {"missing"}, "updated": {"drifted"}, "absent": {"extra"}},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	if err := f.Verified(t.Context(), p, d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines, f.lines(t)); diff != "" || f.checkpoint(t) != before {
		t.Errorf("a verification wrote: %s", diff)
	}
	status, err := f.Status(t.Context(), []string{"users"})
	if err != nil {
		t.Fatal(err)
	}
	r := status.Resources[0]
	if diff := cmp.Diff(&want, r.VerifiedDrift); diff != "" || r.VerifiedAt == nil || r.Pass != nil || r.RebuiltAt != nil {
		t.Errorf("%+v %s", r, diff)
	}
	if n := value[int64](t, f, "select count(*) from xiaoqu_sync.staging_users"); n != 0 {
		t.Errorf("%d staged rows stayed", n)
	}
	// The pass is over.
	wantKind(t, f.Verified(t.Context(), p, d), mirror.KindFenced)
	wantKind(t, f.Explain(t.Context(), p, step(before, explained...).Batch), mirror.KindFenced)
	rebuild := f.full(t, mirror.PurposeRebuild, nil)
	wantKind(t, f.Explain(t.Context(), rebuild, step(before, explained...).Batch), mirror.KindFenced)
	wantKind(t, f.Verified(t.Context(), rebuild, d), mirror.KindFenced)
}

func TestAVerificationWithoutDriftIsEqual(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""), user("b", gone))
	p := f.full(t, mirror.PurposeVerify, []string{user("a", `,"n":1`)})
	if err := f.Explain(t.Context(), p, step(f.checkpoint(t), user("a", `,"n":1`)).Batch); err != nil {
		t.Fatal(err)
	}
	if d, err := f.Compare(t.Context(), f.checkpoint(t), p); err != nil || !d.Equal() || d.Explained != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestARebuildMayBeGivenUp(t *testing.T) {
	f := setUp(t)
	s := step(f.checkpoint(t), user("a", ""))
	s.After.SyncToken, s.Last = "t-1", true
	at, _, err := f.Commit(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := f.Restart(t.Context(), at, "REQUESTED", true)
	if err != nil || asked != f.checkpoint(t) || asked.SyncToken != "t-1" || asked.Phase != mirror.PhaseRebuild {
		t.Fatalf("%+v, %v", asked, err)
	}
	f.stage(t, f.begin(t, mirror.PurposeRebuild), false, user("b", ""))
	after, err := f.Resume(t.Context(), asked)
	if want := (mirror.Checkpoint{Resource: "users", Phase: mirror.PhaseIncremental, SyncToken: "t-1", Epoch: asked.Epoch + 1}); err != nil || after != want || f.checkpoint(t) != want {
		t.Errorf("%+v, %v", after, err)
	}
	if _, found, err := f.Pass(t.Context(), "users"); found || err != nil || value[int64](t, f, "select count(*) from xiaoqu_sync.staging_users") != 0 {
		t.Errorf("the pass stayed: %v", err)
	}
	_, err = f.Resume(t.Context(), asked)
	wantKind(t, err, mirror.KindFenced)
	if got := f.fates(t); got != "a live 1" {
		t.Error(got)
	}
	// A plan is dropped without moving the mirror.
	f.begin(t, mirror.PurposePlan)
	if again, err := f.Resume(t.Context(), after); err != nil || again != after || f.checkpoint(t) != after {
		t.Errorf("%+v, %v", again, err)
	}
	if _, found, _ := f.Pass(t.Context(), "users"); found {
		t.Error("the plan stayed")
	}
}

func TestARebuildWithoutATokenCannotBeGivenUp(t *testing.T) {
	f := setUp(t)
	expired, err := f.Restart(t.Context(), f.checkpoint(t), "SYNC_CURSOR_EXPIRED", false)
	if err != nil {
		t.Fatal(err)
	}
	f.begin(t, mirror.PurposeRebuild)
	_, err = f.Resume(t.Context(), expired)
	if e := wantKind(t, err, mirror.KindConfig); e.Hint == "" {
		t.Error("no hint")
	}
	if _, found, _ := f.Pass(t.Context(), "users"); !found || f.checkpoint(t) != expired {
		t.Error("something moved")
	}
}
