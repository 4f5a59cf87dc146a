package mirror_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

var changes = flag.Int("changes", 6000, "changes that the followers of change_seq are put to")

// follower is a reader that remembers where it stands, as docs/reading.md says.
type follower struct {
	conn *pgx.Conn
	at   map[string]int64            // change_seq by resource
	seen map[string]map[string]int64 // the last change_seq of each id, by resource
	rows int
}

// follow reads what is new of a resource; more tells that there may be more.
func (f *follower) follow(ctx context.Context, resource string, limit int) (more bool, err error) {
	rows, err := f.conn.Query(ctx, "select id, change_seq from xiaoqu."+resource+" where change_seq > $1 order by change_seq limit $2", f.at[resource], limit)
	if err != nil {
		return false, err
	}
	n := 0
	var id string
	var seq int64
	_, err = pgx.ForEachRow(rows, []any{&id, &seq}, func() error {
		if seq <= f.at[resource] {
			return fmt.Errorf("%s: change %d came behind %d", resource, seq, f.at[resource])
		}
		n++
		f.at[resource], f.seen[resource][id] = seq, seq
		return nil
	})
	f.rows += n
	return n == limit, err
}

// writer makes random changes to one resource, and rebuilds it in the middle.
func writer(ctx context.Context, m *mirror.Mirror, resource string, budget int, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 1))
	at, err := m.Checkpoint(ctx, resource)
	page := func() []json.RawMessage {
		var records []json.RawMessage
		for range 1 + r.IntN(200) {
			more := []string{"", gone}[r.IntN(4)/3]
			records = append(records, json.RawMessage(user(fmt.Sprint(r.IntN(2000)), fmt.Sprintf(`,"n":%d%s`, r.Int(), more))))
		}
		return records
	}
	for rebuilt := false; err == nil && budget > 0; {
		after := at
		after.Cursor = fmt.Sprint(budget)
		var c mirror.Counts
		at, c, err = m.Commit(ctx, mirror.Step{Before: at, After: after, Batch: mirror.NewBatch(page(), time.UTC)})
		before := budget
		budget -= int(c.Stored())
		if err != nil || rebuilt || budget > before/2 {
			continue
		}
		rebuilt = true
		var p mirror.Pass
		if p, err = m.BeginPass(ctx, at, mirror.PurposeRebuild, "REQUESTED"); err != nil {
			continue
		}
		s := mirror.StageStep{Before: p, After: mirror.Checkpoint{Resource: resource, SyncToken: "next"}, Batch: mirror.NewBatch(page(), time.UTC), Last: true}
		if p, _, err = m.Stage(ctx, s); err != nil {
			continue
		}
		at, c, err = m.Merge(ctx, at, p, lenient)
		budget -= int(c.Stored())
	}
	return err
}

// TestFollowersOfChangeSeqMissNothing has three writers, a rebuild in the middle of each, and four
// followers that all must have seen every row's last change.
func TestFollowersOfChangeSeqMissNothing(t *testing.T) {
	f := setUp(t)
	resources := []string{"users", "properties", "contracts"}
	if _, err := f.Migrate(t.Context(), resources, false); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	written := make(chan struct{})
	var writers, readers errgroup.Group
	for i, r := range resources {
		writers.Go(func() error { return writer(ctx, f.Mirror, r, *changes/len(resources), uint64(i)) })
	}
	all := make([]*follower, 4)
	for i := range all {
		conn, err := pgx.Connect(ctx, f.url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(ctx) })
		fo := &follower{conn: conn, at: map[string]int64{}, seen: map[string]map[string]int64{}}
		for _, r := range resources {
			fo.seen[r] = map[string]int64{}
		}
		all[i] = fo
		readers.Go(func() error { return fo.untilDone(ctx, resources, 1+i*150, written) })
	}
	err := writers.Wait()
	close(written)
	if readErr := readers.Wait(); err != nil || readErr != nil {
		t.Fatal(err, readErr)
	}
	for _, r := range resources {
		want := map[string]int64{}
		rows, err := f.sql.Query(ctx, "select id, change_seq from xiaoqu."+r)
		if err != nil {
			t.Fatal(err)
		}
		var id string
		var seq int64
		if _, err := pgx.ForEachRow(rows, []any{&id, &seq}, func() error { want[id] = seq; return nil }); err != nil {
			t.Fatal(err)
		}
		for i, fo := range all {
			if !maps.Equal(want, fo.seen[r]) {
				t.Errorf("follower %d missed changes of %s: it knows %d rows of %d", i, r, len(fo.seen[r]), len(want))
			}
		}
	}
	t.Logf("%d changes; the followers read %d, %d, %d and %d rows", *changes, all[0].rows, all[1].rows, all[2].rows, all[3].rows)
}

// untilDone follows until the writers are done and nothing is left.
func (f *follower) untilDone(ctx context.Context, resources []string, limit int, written <-chan struct{}) error {
	for last := false; ; {
		select {
		case <-written:
			last = true
		default:
		}
		for _, r := range resources {
			for more := true; more; {
				var err error
				if more, err = f.follow(ctx, r, limit); err != nil {
					return err
				}
			}
		}
		if last {
			return nil
		}
	}
}
