package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

// history fills the mirror with a row of every kind, named by what the pass of
// everyFate does to it.
func history(t testing.TB, f fixture) {
	t.Helper()
	f.commit(t, user("absent", ""), user("dead-gone", gone), user("dead-other", gone), user("dead-same", gone),
		user("revived", gone), user("same", ""), user("tomb", ""), user("updated", ""))
}

func everyFate() [][]string {
	return [][]string{
		{user("new", ""), user("new-dead", gone), user("same", ""), user("twice", `,"n":1`), user("updated", `,"n":1`)},
		{user("dead-other", `,"deleted_at":"2026-10-01T00:00:00Z"`), user("dead-same", gone), user("twice", `,"n":2`)},
		{user("revived", ""), user("same", ""), user("tomb", gone), user("twice", `,"n":3`)},
	}
}

func TestMergeWritesTheDifferencesAndNothingElse(t *testing.T) {
	f := setUp(t)
	history(t, f)
	xmin := value[string](t, f, "select string_agg(id || xmin, ' ' order by id) from xiaoqu.users where id in ('same', 'dead-gone', 'dead-same')")
	adopted, err := f.Adopt(t.Context(), f.checkpoint(t), "tenant-1")
	if err != nil {
		t.Fatal(err)
	}
	before, err := f.Restart(t.Context(), adopted, "SYNC_CURSOR_EXPIRED", false)
	if err != nil {
		t.Fatal(err)
	}
	p := f.full(t, mirror.PurposeRebuild, everyFate()...)
	d, err := f.Compare(t.Context(), before, p)
	if err != nil {
		t.Fatal(err)
	}
	after, counts, err := f.Merge(t.Context(), before, p, mirror.Ruling{})
	if err != nil {
		t.Fatal(err)
	}
	want := mirror.Checkpoint{Resource: "users", Phase: mirror.PhaseIncremental, SyncToken: "t-next", SnapshotID: "snap-1", Epoch: before.Epoch + 1, Tenant: "tenant-1"}
	if after != want || f.checkpoint(t) != want {
		t.Errorf("%+v, stored %+v", after, f.checkpoint(t))
	}
	if diff := cmp.Diff(mirror.Counts{Inserted: 2, Updated: 2, Deleted: 3, Revived: 1, Unchanged: 2, Duplicates: 3}, counts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(mirror.Difference{
		Inserted: 3, Updated: 2, Revived: 1, Tombstoned: 1, Absent: 1, Unchanged: 2, Live: 4,
		Samples: map[string][]string{"inserted": {"new", "new-dead", "twice"}, "updated": {"dead-other", "updated"}, "revived": {"revived"}, "tombstoned": {"tomb"}, "absent": {"absent"}},
		Fields:  map[string]int64{"deleted_at": 1, "n": 1},
	}, d); diff != "" || d.Deletes() != 2 || d.Equal() {
		t.Error(diff)
	}
	const fates = "absent absent now 16, dead-gone tombstone 09-03 2, dead-other tombstone 09-03 9, dead-same tombstone 09-03 4, " +
		"new live 10, new-dead tombstone 09-03 11, revived live 12, same live 6, tomb tombstone 09-03 13, twice live 14, updated live 15"
	if got := f.fates(t); got != fates {
		t.Errorf("\n%s, want\n%s", got, fates)
	}
	if got := value[string](t, f, "select string_agg(id || xmin, ' ' order by id) from xiaoqu.users where id in ('same', 'dead-gone', 'dead-same')"); got != xmin {
		t.Errorf("unchanged rows were written: %s, before %s", got, xmin)
	}
	if got := value[string](t, f, "select record ->> 'n' from xiaoqu.users where id = 'twice'"); got != "3" {
		t.Errorf("of an id on three pages the last must win, not %s", got)
	}
	if got := value[string](t, f, `select concat_ws(' ', change_seq, pages, restarts, last_success_at = rebuilt_at, rebuild_reason, last_error_code = '',
		(select count(*) from xiaoqu_sync.staging_users), (select count(*) from xiaoqu_sync.passes)) from xiaoqu_sync.state`); got != "16 0 0 t REQUESTED t 0 0" {
		t.Error(got)
	}
	f.soundState(t)
	if counts := f.commit(t, user("later", "")); counts.Inserted != 1 || value[int64](t, f, "select change_seq from xiaoqu.users where id = 'later'") != 17 {
		t.Errorf("%+v", counts)
	}
}

func TestTheLastPagesRecordOfAnIDDecides(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("dies", ""), user("lives", gone))
	f.merge(t, f.full(t, mirror.PurposeRebuild, []string{user("dies", ""), user("lives", gone)}, []string{user("dies", gone), user("lives", "")}))
	if got := f.fates(t); got != "dies tombstone 09-03 3, lives live 4" {
		t.Error(got)
	}
}

func TestAnAbsentRowMayComeBack(t *testing.T) {
	ways := map[string]func(f fixture, t *testing.T, record string){
		"with an increment": func(f fixture, t *testing.T, record string) { f.commit(t, record) },
		"with a rebuild": func(f fixture, t *testing.T, record string) {
			f.merge(t, f.full(t, mirror.PurposeRebuild, []string{record}))
		},
	}
	for name, back := range ways {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			f.commit(t, user("a", ""))
			absent := func() { f.merge(t, f.full(t, mirror.PurposeRebuild, nil)) }
			absent()
			back(f, t, user("a", "")) // the same record as before
			if got := f.fates(t); got != "a live 3" {
				t.Error(got)
			}
			absent()
			first := value[string](t, f, "select deleted_at::text from xiaoqu.users")
			absent() // absent again is nothing new
			back(f, t, user("a", gone))
			if got := f.fates(t); got != "a tombstone now 5" || value[string](t, f, "select deleted_at::text from xiaoqu.users") != first {
				t.Errorf("%s: the first deletion time must stay", got)
			}
			f.soundState(t)
		})
	}
}

func TestASecondRebuildWritesNothing(t *testing.T) {
	f := setUp(t)
	var page []string
	for i := range 500 {
		page = append(page, user(fmt.Sprintf("u%03d", i), []string{"", gone}[i%2]))
	}
	f.merge(t, f.full(t, mirror.PurposeRebuild, page[:250], page[250:]))
	before, size := f.lines(t), value[int64](t, f, "select pg_total_relation_size('xiaoqu.users')")
	written := func() int64 {
		return value[int64](t, f, "select n_tup_ins + n_tup_upd + n_tup_del from pg_stat_xact_user_tables where relid = 'xiaoqu.users'::regclass")
	}
	for range 2 {
		p := f.full(t, mirror.PurposeRebuild, page[250:], page[:250])
		if d, err := f.Compare(t.Context(), f.checkpoint(t), p); err != nil || !d.Equal() || d.Unchanged != 500 || d.Live != 250 {
			t.Errorf("%+v, %v", d, err)
		}
		if counts := f.merge(t, p); counts != (mirror.Counts{Unchanged: 500}) {
			t.Errorf("%+v", counts)
		}
	}
	if diff := cmp.Diff(before, f.lines(t)); diff != "" {
		t.Error(diff)
	}
	if now := value[int64](t, f, "select pg_total_relation_size('xiaoqu.users')"); now != size || written() != 0 {
		t.Errorf("the table grew from %d to %d", size, now)
	}
}

// Rows that somebody changed by hand have the right hash and are wrong.
func TestARebuildMendsWhatWasChangedByHand(t *testing.T) {
	tests := []struct {
		name, damage string
		reason       string
		want         mirror.Counts
	}{
		{"a deletion", "update xiaoqu.users set deleted_at = now() where id = 'a'", expired, mirror.Counts{Revived: 1, Unchanged: 1}},
		{"a revival", "update xiaoqu.users set deleted_at = null where id = 'b'", expired, mirror.Counts{Deleted: 1, Unchanged: 1}},
		{"a lost row", "delete from xiaoqu.users where id = 'a'", expired, mirror.Counts{Inserted: 1, Unchanged: 1}},
		{"a row of nobody's", "insert into xiaoqu.users (id, record, synced_at, change_seq, content_hash) values ('c', '{}', now(), 2, '')", expired, mirror.Counts{Deleted: 1, Unchanged: 2}},
		{"a record, when a person asked", `update xiaoqu.users set record = jsonb_set(record, '{name}', '"x"') where id = 'a'`, "REQUESTED", mirror.Counts{Updated: 1, Unchanged: 1}},
		{"a time, when a person asked", "update xiaoqu.users set modify_time = modify_time + interval '8h' where id = 'a'", "REQUESTED", mirror.Counts{Updated: 1, Unchanged: 1}},
		{"a version, when a person asked", "update xiaoqu.users set version = '0' where id = 'a'", "REQUESTED", mirror.Counts{Updated: 1, Unchanged: 1}},
		{"a record, when the state row was lost", `update xiaoqu.users set record = record - 'name' where id = 'b'`, "STATE_LOST", mirror.Counts{Updated: 1, Unchanged: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := setUp(t)
			page := []string{user("a", ""), user("b", gone)}
			f.commit(t, page...)
			if _, err := f.sql.Exec(t.Context(), tt.damage); err != nil {
				t.Fatal(err)
			}
			p, err := f.BeginPass(t.Context(), f.checkpoint(t), mirror.PurposeRebuild, tt.reason)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, f.merge(t, f.stage(t, p, true, page...))); diff != "" {
				t.Error(diff)
			}
			f.soundState(t)
			if d, err := f.Compare(t.Context(), f.checkpoint(t), f.full(t, mirror.PurposeVerify, page)); err != nil || !d.Equal() {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
}

func TestOfTwoMergesOneWins(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""))
	p, before := f.full(t, mirror.PurposeRebuild, []string{user("b", "")}), f.checkpoint(t)
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			_, _, err := f.Merge(context.WithoutCancel(t.Context()), before, p, lenient)
			errs <- err
		}()
	}
	won := 0
	for range cap(errs) {
		if err := <-errs; err == nil {
			won++
		} else {
			wantKind(t, err, mirror.KindFenced)
		}
	}
	if got := f.fates(t); won != 1 || got != "a absent now 3, b live 2" {
		t.Errorf("%d won: %s", won, got)
	}
	// The checkpoint is right and the pass is another one.
	old := f.full(t, mirror.PurposeRebuild, nil)
	f.full(t, mirror.PurposeRebuild, []string{user("b", "")})
	_, _, err := f.Merge(t.Context(), f.checkpoint(t), old, lenient)
	wantKind(t, err, mirror.KindFenced)
	_, err = f.Compare(t.Context(), f.checkpoint(t), old)
	wantKind(t, err, mirror.KindFenced)
}

func TestAPlanIsForTheMirrorThatItWasMadeFor(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""), user("b", ""))
	p := f.full(t, mirror.PurposePlan, []string{user("a", "")})
	f.commit(t) // a round without changes is no movement
	if _, err := f.Compare(t.Context(), f.checkpoint(t), p); err != nil {
		t.Fatal(err)
	}
	f.commit(t, user("a", `,"n":2`))
	_, _, err := f.Merge(t.Context(), f.checkpoint(t), p, lenient)
	if wantKind(t, err, mirror.KindFenced); !errors.Is(err, mirror.ErrMoved) {
		t.Error(err)
	}
	if got := f.fates(t); got != "a live 3, b live 2" {
		t.Error(got)
	}
}

// What readers build on the table must outlive every rebuild.
func TestReadersObjectsSurvive(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""), user("b", ""), user("c", ""))
	reader := connect(t, login(t, f, "grant usage on schema xiaoqu", "grant select on xiaoqu.users, xiaoqu.users_live"))
	if _, err := f.sql.Exec(t.Context(), `
		create view public.names as select record ->> 'name' as name from xiaoqu.users_live;
		create index by_name on xiaoqu.users ((record ->> 'name'));
		create table public.notes (user_id text references xiaoqu.users (id));
		insert into public.notes values ('b');
		create materialized view public.counted as select count(*) from xiaoqu.users`); err != nil {
		t.Fatal(err)
	}
	const objects = `select concat_ws(' ', 'xiaoqu.users'::regclass::oid, pg_relation_filenode('xiaoqu.users'),
		(select string_agg(indexrelid::regclass::text, ' ' order by 1) from pg_index where indrelid = 'xiaoqu.users'::regclass),
		(select relacl::text from pg_class where oid = 'xiaoqu.users'::regclass), (select count(*) from public.notes))`
	before := value[string](t, f, objects)
	f.merge(t, f.full(t, mirror.PurposeRebuild, []string{user("a", `,"n":1`), user("d", "")}))
	if got := value[string](t, f, objects); got != before {
		t.Errorf("%s, before %s", got, before)
	}
	var n int
	if err := reader.QueryRow(t.Context(), "select count(*) from xiaoqu.users_live").Scan(&n); err != nil || n != 2 || value[int64](t, f, "select count(*) from public.names") != 2 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestADeadlockWithAReadersOwnWritesIsTransient(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""), user("b", ""))
	p := f.full(t, mirror.PurposeRebuild, []string{user("a", `,"n":1`), user("b", `,"n":1`)})
	// The reader waits patiently, so the merge is the one that notices.
	tx := readerTx(t, f, "set local deadlock_timeout = '1min'", "select from xiaoqu.users where id = 'b' for update")
	before := f.checkpoint(t)
	done := make(chan error, 1)
	go func() {
		_, _, err := f.Merge(context.WithoutCancel(t.Context()), before, p, lenient)
		done <- err
	}()
	waitForLockWait(t, f)
	// Who only reads sees the rows of before, at once.
	if got := value[string](t, f, "select count(*) || coalesce(max(record ->> 'n'), ' old') from xiaoqu.users_live"); got != "2 old" {
		t.Error(got)
	}
	if _, err := tx.Exec(t.Context(), "select from xiaoqu.users where id = 'a' for update"); err != nil {
		t.Fatal(err)
	}
	if e := wantKind(t, <-done, mirror.KindTransient); e.SQLState != "40P01" {
		t.Error(e)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if counts := f.merge(t, p); counts.Updated != 2 {
		t.Errorf("%+v", counts)
	}
}

func TestALockHeldForLongIsTransient(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a merge waits for a lock")
	}
	f := setUp(t)
	f.commit(t, user("a", ""))
	p := f.full(t, mirror.PurposeRebuild, nil)
	tx := readerTx(t, f, "select from xiaoqu.users for update")
	_, _, err := f.Merge(t.Context(), f.checkpoint(t), p, lenient)
	if e := wantKind(t, err, mirror.KindTransient); e.SQLState != "55P03" {
		t.Error(e)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.merge(t, p)
}

// A dump of the database reads staging for hours; nobody may wait for it.
func TestSomebodyWhoLooksAtStagingHoldsNothingUp(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""))
	p := f.full(t, mirror.PurposeRebuild, []string{user("b", "")})
	tx := readerTx(t, f, "select from xiaoqu_sync.staging_users")
	defer func() { _ = tx.Rollback(t.Context()) }()
	f.merge(t, p)
	if n := value[int64](t, f, "select count(*) from xiaoqu_sync.staging_users"); n != 0 {
		t.Errorf("%d rows stayed", n)
	}
}

// A snapshot taken before a merge stays what it was.
func TestALongReaderSeesTheMirrorOfBefore(t *testing.T) {
	f := setUp(t)
	f.commit(t, user("a", ""), user("b", ""))
	tx, err := f.sql.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	count := func() (n int) {
		if err := tx.QueryRow(t.Context(), "select count(*) from xiaoqu.users_live").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := count()
	f.merge(t, f.full(t, mirror.PurposeRebuild, []string{user("c", "")}))
	if again := count(); first != 2 || again != 2 {
		t.Errorf("%d, then %d", first, again)
	}
}
