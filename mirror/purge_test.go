package mirror_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

// daysAgo is a tombstone's field.
func daysAgo(days int) string {
	return fmt.Sprintf(`,"deleted_at":%q`, time.Now().AddDate(0, 0, -days).Format(time.RFC3339))
}

const quarter = 90 * 24 * time.Hour

func TestPurge(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("live", ""), user("new", daysAgo(89)))
	var old []string
	for i := range 2500 {
		old = append(old, user(fmt.Sprintf("old%d", i), daysAgo(91+i%7)))
	}
	f.commit(t, old...)
	f.exec(t, "update xiaoqu.users set synced_at = now() - interval '91 days'")
	f.commit(t, user("unheard", daysAgo(200)))
	before := f.checkpoint(t)
	after, n, err := f.Purge(t.Context(), before, quarter)
	if err != nil || n != 2500 || after != f.checkpoint(t) || after.Epoch != before.Epoch+3 {
		t.Errorf("%d rows, %+v, %v", n, after, err)
	}
	if got := withoutXmin(f.lines(t)); got != "live live 1, new deleted 2, unheard deleted 2503" {
		t.Error(got)
	}
	f.soundState(t)
	_, _, err = f.Purge(t.Context(), before, time.Hour)
	wantKind(t, err, mirror.KindFenced)
	_, _, err = f.Purge(t.Context(), after, -time.Hour)
	wantKind(t, err, mirror.KindConfig)
	if len(f.lines(t)) != 3 {
		t.Error("a fenced purge removed rows")
	}
	// A row that an increment brings again is counted anew.
	if counts := f.commit(t, user("old1", daysAgo(91))); counts.Deleted != 1 {
		t.Errorf("%+v", counts)
	}
	f.soundState(t)
}

// purged is a mirror of which the row with the greatest change_seq was purged.
func purged(t *testing.T) fixture {
	f := setUp(t)
	f.commit(t, user("a", ""), user("z", daysAgo(100)))
	f.exec(t, "update xiaoqu.users set synced_at = now() - interval '91 days'")
	if _, n, err := f.Purge(t.Context(), f.checkpoint(t), quarter); err != nil || n != 1 {
		t.Fatalf("%d rows, %v", n, err)
	}
	return f
}

func TestWhatWasPurgedIsNoDriftAndDoesNotComeBack(t *testing.T) {
	f := purged(t)
	page := []string{user("a", ""), user("z", daysAgo(100)), user("new", daysAgo(3))}
	d, err := f.Compare(t.Context(), f.checkpoint(t), f.full(t, mirror.PurposeVerify, page[:2]))
	if err != nil || !d.Equal() {
		t.Errorf("%+v, %v", d, err)
	}
	if c := f.merge(t, f.full(t, mirror.PurposeRebuild, page)); c.Deleted != 1 || c.Inserted != 0 {
		t.Errorf("%+v", c)
	}
	if got := withoutXmin(f.lines(t)); got != "a live 1, new deleted 3" {
		t.Error(got)
	}
	f.soundState(t)
	// One that lives again is a row again.
	if c := f.merge(t, f.full(t, mirror.PurposeRebuild, []string{user("a", ""), user("z", "")})); c.Inserted != 1 {
		t.Errorf("%+v", c)
	}
}

func TestADryRunBeforeAPurgeDoesNotBringRowsBack(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""), user("z", daysAgo(100)))
	f.exec(t, "update xiaoqu.users set synced_at = now() - interval '91 days'")
	plan := f.full(t, mirror.PurposePlan, []string{user("a", ""), user("z", daysAgo(100))})
	if _, _, err := f.Purge(t.Context(), f.checkpoint(t), quarter); err != nil {
		t.Fatal(err)
	}
	f.merge(t, plan)
	if got := withoutXmin(f.lines(t)); got != "a live 1" {
		t.Error(got)
	}
}

func TestChangeSeqStaysAheadOfWhatWasPurged(t *testing.T) {
	f := purged(t)
	f.exec(t, "delete from xiaoqu_sync.state")
	f.checkpoint(t)
	if n := value[int64](t, f, "select change_seq from xiaoqu_sync.state"); n != 2 {
		t.Errorf("change_seq begins again at %d", n)
	}
}

func TestAForeignKeyThatKeepsTombstonesIsNamed(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("z", daysAgo(100)))
	f.exec(t, `update xiaoqu.users set synced_at = now() - interval '91 days';
		create table notes (owner text constraint notes_owner references xiaoqu.users); insert into notes values ('z')`)
	_, _, err := f.Purge(t.Context(), f.checkpoint(t), quarter)
	e := wantKind(t, err, mirror.KindDenied)
	if e.Message != "the foreign key notes_owner of public.notes keeps the rows" || e.Hint == "" {
		t.Errorf("%+v", e)
	}
}
