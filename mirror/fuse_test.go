package mirror_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

// crowd is n users; the ones for which more says something have it.
func crowd(n int, more func(i int) string) []string {
	page := make([]string, n)
	for i := range page {
		page[i] = user(fmt.Sprintf("u%04d", i), more(i))
	}
	return page
}

func plain(int) string { return "" }

func TestTheFuse(t *testing.T) {
	tests := []struct {
		name       string
		live, gone int
		tombstones bool // of the gone, else they are absent
		ruling     mirror.Ruling
		held       bool
	}{
		{"nothing is held below a hundred rows", 99, 99, false, mirror.Ruling{MaxDeleteRatio: 0.3}, false},
		{"the ratio itself is allowed", 100, 30, false, mirror.Ruling{MaxDeleteRatio: 0.3}, false},
		{"one more is held", 100, 31, false, mirror.Ruling{MaxDeleteRatio: 0.3}, true},
		{"tombstones count as absences do", 100, 31, true, mirror.Ruling{MaxDeleteRatio: 0.3}, true},
		{"a ratio that no binary fraction hits is allowed", 100, 29, false, mirror.Ruling{MaxDeleteRatio: 0.29}, false},
		{"zero allows none", 100, 1, true, mirror.Ruling{}, true},
		{"zero allows a merge without deletions", 100, 0, false, mirror.Ruling{}, false},
		{"one allows all", 100, 100, false, mirror.Ruling{MaxDeleteRatio: 1}, false},
		{"a person allows all", 100, 100, false, mirror.Ruling{MaxDeleteRatio: 0.3, AcceptDeletes: true}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := setUp(t)
			f.commit(t, crowd(tt.live, plain)...)
			page := crowd(tt.live, func(i int) string {
				if i < tt.gone {
					return gone
				}
				return ""
			})
			if !tt.tombstones {
				page = page[tt.gone:]
			}
			p := f.full(t, mirror.PurposeRebuild, page)
			_, counts, err := f.Merge(t.Context(), f.checkpoint(t), p, tt.ruling)
			var fuse *mirror.FuseError
			switch {
			case tt.held:
				if !errors.As(err, &fuse) || fuse.Resource != "users" || fuse.Difference.Deletes() != int64(tt.gone) || fuse.Ratio != tt.ruling.MaxDeleteRatio {
					t.Errorf("%v", err)
				}
			case err != nil || counts.Deleted != int64(tt.gone):
				t.Errorf("%+v, %v", counts, err)
			}
			if n := value[int64](t, f, "select count(*) from xiaoqu.users_live"); (n == int64(tt.live)) != (tt.held || tt.gone == 0) {
				t.Errorf("%d live rows", n)
			}
			f.soundState(t)
		})
	}
}

func TestAHeldPassWaitsForAPerson(t *testing.T) {
	f := setUp(t)
	for range 3 { // tombstones are no live rows
		f.commit(t, crowd(1000, plain)...)
	}
	f.commit(t, user("dead", gone))
	before, lines := f.checkpoint(t), f.lines(t)
	p := f.full(t, mirror.PurposeRebuild, []string{user("new", "")}, nil)
	strict := mirror.Ruling{MaxDeleteRatio: 0.3}
	for range 2 { // asked again, it is held again
		_, _, err := f.Merge(t.Context(), before, p, strict)
		var fuse *mirror.FuseError
		if !errors.As(err, &fuse) {
			t.Fatal(err)
		}
		want := mirror.Difference{Inserted: 1, Absent: 1000, Live: 1000, Fields: map[string]int64{}, Samples: map[string][]string{
			"inserted": {"new"}, "absent": {"u0000", "u0001", "u0002", "u0003", "u0004", "u0005", "u0006", "u0007", "u0008", "u0009"},
		}}
		if diff := cmp.Diff(want, fuse.Difference); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff(lines, f.lines(t)); diff != "" || f.checkpoint(t) != before {
		t.Errorf("a held pass changed something: %s", diff)
	}
	f.Mirror = open(t, f.url) // another process, another day
	held, _, err := f.Pass(t.Context(), "users")
	p.Held = true
	if diff := cmp.Diff(p, held); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	status, err := f.Status(t.Context(), []string{"users"})
	if err != nil {
		t.Fatal(err)
	}
	s := status.Resources[0].Pass
	if s == nil || s.Phase != "held" || s.Purpose != mirror.PurposeRebuild || s.Rows != 1 || s.Pages != 2 || s.Difference == nil || s.Difference.Absent != 1000 || len(s.Difference.Samples["absent"]) != 10 {
		t.Errorf("%+v", s)
	}
	after, counts, err := f.Merge(t.Context(), before, held, mirror.Ruling{MaxDeleteRatio: 0.3, AcceptDeletes: true})
	if err != nil || after.SyncToken != "t-next" || counts.Deleted != 1000 || counts.Inserted != 1 {
		t.Errorf("%+v, %v", counts, err)
	}
	f.soundState(t)
}

// What is not applied must leave no gap: change_seq is what readers go by.
func TestAHeldPassMayGoThroughWithoutItsDeletions(t *testing.T) {
	f := setUp(t)
	f.commit(t, crowd(200, plain)...)
	before := f.checkpoint(t)
	// The first hundred are absent; of the others every second is a tombstone,
	// every tenth differs.
	page := crowd(200, func(i int) string {
		switch {
		case i%2 == 1:
			return gone
		case i%10 == 0:
			return `,"name":"new"`
		}
		return ""
	})[100:]
	p := f.full(t, mirror.PurposeRebuild, append(page, user("w", "")))
	after, counts, err := f.Merge(t.Context(), before, p, mirror.Ruling{WithoutDeletes: true})
	if err != nil || after.SyncToken != "t-next" || after.Phase != mirror.PhaseIncremental {
		t.Fatalf("%+v, %v", after, err)
	}
	if counts.Deleted != 0 || counts.Updated != 10 || counts.Inserted != 1 || counts.Unchanged != 90 {
		t.Errorf("%+v", counts)
	}
	if n := value[int64](t, f, "select count(*) from xiaoqu.users_live"); n != 201 {
		t.Errorf("%d live rows", n)
	}
	if n := value[int64](t, f, "select max(change_seq) from xiaoqu.users"); n != 211 {
		t.Errorf("the highest change_seq is %d", n)
	}
	f.soundState(t)
}

// A pass that is replaced while it is weighed must not be marked as held.
func TestANewPassIsNotHeldForAnOldOne(t *testing.T) {
	f := setUp(t)
	f.commit(t, crowd(100, plain)...)
	old := f.full(t, mirror.PurposeRebuild, nil)
	if _, _, err := f.Merge(t.Context(), f.checkpoint(t), old, mirror.Ruling{}); err == nil {
		t.Fatal("not held")
	}
	p := f.begin(t, mirror.PurposeRebuild)
	if p.Held || value[bool](t, f, "select held or held_difference is not null from xiaoqu_sync.passes") {
		t.Error("the new pass is held")
	}
}

// A record that cannot be stored is still upstream: its row stays as it is, unless
// another record of its id can be stored.
func TestARefusedRecordIsNoAbsence(t *testing.T) {
	const bad = `{"id":%q,"n":1e5000}`
	f := setUp(t)
	f.commit(t, user("a", ""), user("b", ""), user("c", gone))
	p := f.full(t, mirror.PurposeRebuild,
		[]string{fmt.Sprintf(bad, "a"), fmt.Sprintf(bad, "b"), fmt.Sprintf(bad, "new"), fmt.Sprintf(bad, "c"), user("d", ""), fmt.Sprintf(bad, "d")},
		[]string{user("b", `,"n":1`), fmt.Sprintf(bad, "a")})
	counts := f.merge(t, p)
	if counts.Updated != 1 || counts.Inserted != 1 || counts.Stored() != 2 || counts.Unchanged != 0 {
		t.Errorf("%+v", counts)
	}
	if got := f.fates(t); got != "a live 1, b live 4, c tombstone 09-03 3, d live 5" {
		t.Error(got)
	}
	f.soundState(t)
}
