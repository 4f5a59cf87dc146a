package mirror_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

func begin(t *testing.T, f fixture, resource string) int64 {
	t.Helper()
	id, err := f.BeginRun(t.Context(), mirror.Run{Resource: resource, Mode: "sync", Host: "host-a", PID: 41})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestRunsLeftOpenAreAbandoned(t *testing.T) {
	f := setUp(t)
	killed := begin(t, f, "users")
	foreign := begin(t, f, "contracts")
	ended := begin(t, f, "users")
	if err := f.EndRun(t.Context(), mirror.Run{ID: ended, Resource: "users", Mode: "sync", Outcome: "done"}); err != nil {
		t.Fatal(err)
	}
	begin(t, f, "users")
	outcomes := map[int64]string{killed: mirror.OutcomeAbandoned, foreign: "", ended: "done"}
	for id, want := range outcomes {
		if got := value[string](t, f, "select outcome from xiaoqu_sync.runs where id = $1", id); got != want {
			t.Errorf("run %d: %q, want %q", id, got, want)
		}
	}
}

func TestRunLogIsBounded(t *testing.T) {
	f := setUp(t)
	if _, err := f.sql.Exec(t.Context(), `insert into xiaoqu_sync.runs (resource, mode, started_at, ended_at)
		select case when n % 2 = 0 then 'users' else 'contracts' end, 'sync', now() - case when n <= 40 then interval '91 days' else interval '1 day' end, now()
		from generate_series(1, 20200) n`); err != nil {
		t.Fatal(err)
	}
	end := func() {
		if err := f.EndRun(t.Context(), mirror.Run{ID: begin(t, f, "users"), Resource: "users"}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		end()
	}
	if n := value[int64](t, f, "select count(*) from xiaoqu_sync.runs where resource = 'users'"); n > 10_001 {
		t.Errorf("%d runs kept", n)
	}
	if n := value[int64](t, f, "select count(*) from xiaoqu_sync.runs where resource = 'contracts'"); n != 10_100 {
		t.Errorf("%d runs of another resource", n)
	}
}

var update = flag.Bool("update", false, "write golden files")

// unsteady are the parts of a status that differ from run to run.
var unsteady = regexp.MustCompile(`"(\d{4}-\d\d-\d\dT[^"]*)"|"age_seconds": \d+`)

func TestStatusGolden(t *testing.T) {
	f := setUp(t)
	cutoff := timeAt(t, "2026-09-15T00:00:00Z")
	adopted, err := f.Adopt(t.Context(), f.checkpoint(t), "tenant-1")
	if err != nil {
		t.Fatal(err)
	}
	page := []string{user("a", ""), user("b", `,"x":"\u0000"`), user("c", `,"deleted_at":true`), `{}`}
	s := step(adopted, page...)
	s.After.DataCutoffAt, s.Last = &cutoff, true
	_, counts, err := f.Commit(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	id := begin(t, f, "users")
	run := mirror.Run{ID: id, Resource: "users", Mode: "sync", Outcome: "failed", Code: "PERMISSION_DENIED", Message: "not for\x00you", RequestID: "r_9", Pages: 1, Counts: counts, Retries: 2}
	if err := f.EndRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	crowded := crowd(100, plain)
	if _, _, err := f.Commit(t.Context(), step(f.checkpoint(t), crowded...)); err != nil {
		t.Fatal(err)
	}
	f.merge(t, f.full(t, mirror.PurposeRebuild, append(crowded, page...)))
	verified := f.full(t, mirror.PurposeVerify, crowded, page[:1])
	drift, err := f.Compare(t.Context(), f.checkpoint(t), verified)
	if err := errors.Join(err, f.Verified(t.Context(), verified, drift)); err != nil {
		t.Fatal(err)
	}
	held := f.full(t, mirror.PurposeRebuild, page)
	if _, _, err := f.Merge(t.Context(), f.checkpoint(t), held, mirror.Ruling{}); err == nil {
		t.Fatal("not held")
	}
	lease, err := f.Lease(t.Context(), "users", mirror.Holder{Host: "host-a", PID: 41})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release(t.Context())
	status, err := f.Status(t.Context(), []string{"users", "payments"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(status, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got := unsteady.ReplaceAllStringFunc(string(text), func(s string) string {
		if s == `"2026-09-15T00:00:00Z"` {
			return s
		}
		return regexp.MustCompile(`\d+`).ReplaceAllString(s, "0")
	}) + "\n"
	golden := filepath.Join("testdata", "status.json")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

func TestACompleteRoundClearsTheLastError(t *testing.T) {
	f := setUp(t)
	f.checkpoint(t)
	if err := f.EndRun(t.Context(), mirror.Run{ID: begin(t, f, "users"), Resource: "users", Code: "RATE_LIMITED", Outcome: "failed"}); err != nil {
		t.Fatal(err)
	}
	lastError := func() *mirror.LastError {
		status, err := f.Status(t.Context(), []string{"users"})
		if err != nil {
			t.Fatal(err)
		}
		return status.Resources[0].LastError
	}
	f.commit(t, user("a", ""))
	if e := lastError(); e == nil || e.Code != "RATE_LIMITED" {
		t.Errorf("after a page in the middle: %+v", e)
	}
	s := step(f.checkpoint(t))
	s.Last = true
	if _, _, err := f.Commit(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if e := lastError(); e != nil {
		t.Errorf("after the last page: %+v", e)
	}
}
