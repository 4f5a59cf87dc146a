package mirror_test

import (
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

// A trigger of somebody's may swallow a row that the page promises.
func TestAPageThatDoesNotAddUpIsRolledBack(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""))
	f.exec(t, `create function swallow() returns trigger language plpgsql as 'begin return null; end';
		create trigger swallow before insert on xiaoqu.users for each row when (new.id = 'b') execute function swallow()`)
	before := f.checkpoint(t)
	_, _, err := f.Commit(t.Context(), step(before, user("b", ""), user("c", "")))
	wantKind(t, err, mirror.KindInternal)
	if got := withoutXmin(f.lines(t)); got != "a live 1" || f.checkpoint(t) != before {
		t.Errorf("%s, %+v", got, f.checkpoint(t))
	}
	_, _, err = f.Merge(t.Context(), before, f.full(t, mirror.PurposeRebuild, []string{user("b", ""), user("c", "")}), lenient)
	wantKind(t, err, mirror.KindInternal)
	if got := withoutXmin(f.lines(t)); got != "a live 1" {
		t.Errorf("after the merge: %s", got)
	}
}
