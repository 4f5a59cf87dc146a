package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync/metrics"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// answers is a mirror whose status the test says.
type answers func(ctx context.Context) (mirror.Status, error)

func (a answers) Status(ctx context.Context, _ []string) (mirror.Status, error) { return a(ctx) }

// full is a status in which everything has a value.
func full() mirror.Status {
	at, age := time.Unix(1_780_000_000, 0), int64(90)
	difference := &mirror.Difference{Absent: 40, Tombstoned: 2, Live: 100}
	return mirror.Status{Version: 5, Resources: []mirror.ResourceStatus{{
		Resource: "users", Phase: mirror.PhaseRebuild, LiveRows: 100, DeletedRows: 3, DataCutoffAt: &at, LastSuccessAt: &at, AgeSeconds: &age,
		PagesInHand: 2, Quarantined: 4, Mended: 5, LastError: &mirror.LastError{Code: "REBUILD_HELD", At: at},
		Lease: &mirror.Holder{Host: "host-a", PID: 7, Since: at}, RebuiltAt: &at, VerifiedAt: &at, VerifiedDrift: difference,
		Pass: &mirror.PassStatus{Phase: "held", Difference: difference},
	}, {Resource: "contracts", Phase: "first"}}}
}

func recorder(status answers, timeout time.Duration) *metrics.Recorder {
	o := metrics.Options{
		Resources: []string{"users", "contracts"}, Self: mirror.Holder{Host: "host-a", PID: 7},
		Build: metrics.Build{Version: "v1.2.3", Revision: "abc", Go: "go1.26"}, Timeout: timeout,
	}
	if status != nil {
		o.Mirror = status
	}
	return metrics.New(o)
}

// worked is a recorder that has met everything once.
func worked() *metrics.Recorder {
	r := recorder(func(context.Context) (mirror.Status, error) { return full(), nil }, 0)
	r.Observe([]sync.Outcome{
		{
			Resource: "users", Result: sync.Synced, Reason: "REQUESTED", Pages: 3, Retries: 2, Notices: 1, Seconds: 4,
			Counts: mirror.Counts{Received: 30, Staged: 28, Inserted: 5, Duplicates: 2},
		},
		{Resource: "contracts", Result: sync.Failed, Err: fmt.Errorf("run: %w", &sync.PanicError{Value: "x"})},
	})
	r.Page(sync.Progress{Resource: "users", Took: 20 * time.Millisecond})
	r.Wait(remote.RateLimited, 2*time.Second)
	r.Call("users.changes.list", "", time.Second)
	r.Call("users.changes.list", remote.RateLimited, time.Second)
	r.SkippedTick("users")
	r.KeyVersion(12, time.Now().Add(-time.Hour))
	return r
}

func scrape(t testing.TB, r *metrics.Recorder) map[string]*dto.MetricFamily {
	t.Helper()
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("HTTP %d, %v", resp.StatusCode, err)
	}
	return families
}

// value is that of the one series whose labels are exactly those, "name=value".
func value(t testing.TB, families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	for _, m := range families[name].GetMetric() {
		var got []string
		for _, l := range m.GetLabel() {
			got = append(got, l.GetName()+"="+l.GetValue())
		}
		if slices.Equal(got, labels) {
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	t.Errorf("there is no %s%v", name, labels)
	return -1
}

func TestWhatWasToldIsCounted(t *testing.T) {
	families := scrape(t, worked())
	const users = "resource=users"
	for _, c := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"runs_total", []string{users, "result=synced"}, 1},
		{"runs_total", []string{"resource=contracts", "result=failed"}, 1},
		{"runs_total", []string{users, "result=failed"}, 0},
		{"run_duration_seconds", []string{users}, 1},
		{"pages_total", []string{users}, 3},
		{"page_duration_seconds", []string{users}, 1},
		{"records_received_total", []string{users}, 30},
		{"rows_total", []string{"outcome=staged", users}, 28},
		{"rows_total", []string{"outcome=inserted", users}, 5},
		{"rows_total", []string{"outcome=duplicate", users}, 2},
		{"retries_total", []string{users}, 2},
		{"notices_total", []string{users}, 1},
		{"rebuilds_total", []string{"reason=REQUESTED", users}, 1},
		{"rebuilds_total", []string{"reason=SYNC_CURSOR_EXPIRED", users}, 0},
		{"skipped_ticks_total", []string{users}, 1},
		{"panics_total", nil, 1},
		{"remote_calls_total", []string{"code=OK", "tool=users.changes.list"}, 1},
		{"remote_calls_total", []string{"code=RATE_LIMITED", "tool=users.changes.list"}, 1},
		{"remote_call_duration_seconds", []string{"tool=users.changes.list"}, 2},
		{"remote_waits_total", []string{"code=RATE_LIMITED"}, 1},
		{"remote_wait_seconds_total", []string{"code=RATE_LIMITED"}, 2},
		{"build_info", []string{"go_version=go1.26", "revision=abc", "version=v1.2.3"}, 1},
		{"key_version", nil, 12},
		{"database_up", nil, 1},
		{"last_success_timestamp_seconds", []string{users}, 1_780_000_000},
		{"last_success_timestamp_seconds", []string{"resource=contracts"}, 0},
		{"data_age_seconds", []string{users}, 90},
		{"last_error_timestamp_seconds", []string{"code=REBUILD_HELD", users}, 1_780_000_000},
		{"rows", []string{users, "state=live"}, 100},
		{"quarantined_records", []string{"kind=refused", users}, 4},
		{"lease_held", []string{"holder=self", users}, 1},
		{"lease_held", []string{"holder=other", users}, 0},
		{"rebuild_held", []string{users}, 1},
		{"rebuild_held_deletions", []string{users}, 42},
	} {
		if got := value(t, families, "xiaoqu_sync_"+c.name, c.labels...); got != c.want {
			t.Errorf("%s%v is %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	if age := value(t, families, "xiaoqu_sync_key_version_age_seconds"); age < 3600 || age > 3700 {
		t.Errorf("the key is %v s old", age)
	}
}

func TestLabelsTakeNoValueFromOutside(t *testing.T) {
	r := recorder(func(context.Context) (mirror.Status, error) {
		s := full()
		s.Resources[0].LastError.Code = "13912345678 was refused"
		return s, nil
	}, 0)
	for i := range 1000 {
		foreign := fmt.Sprintf("foreign-%d", i)
		r.Observe([]sync.Outcome{{Resource: foreign, Result: sync.Result(foreign)}, {Resource: "users", Result: sync.Synced, Reason: foreign}})
		r.Call(foreign, remote.Code(foreign), time.Second)
		r.Wait(remote.Code(foreign), time.Second)
		r.Page(sync.Progress{Resource: foreign})
		r.SkippedTick(foreign)
	}
	series := 0
	for name, f := range scrape(t, r) {
		if !strings.HasPrefix(name, "xiaoqu_sync_") {
			continue
		}
		series += len(f.GetMetric())
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if strings.Contains(l.GetValue(), "foreign") || strings.Contains(l.GetValue(), "139") {
					t.Errorf("%s{%s=%q}", name, l.GetName(), l.GetValue())
				}
			}
		}
	}
	if series > 200 {
		t.Errorf("%d series", series)
	}
}

func TestNamesPassPrometheusLint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "xiaoqu-sync.prom")
	if err := worked().WriteTextfile(path); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	problems, err := promlint.New(file).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestATextfileIsWholeOrNotThere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "xiaoqu-sync.prom")
	for range 2 {
		if err := worked().WriteTextfile(path); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), `xiaoqu_sync_last_success_timestamp_seconds{resource="users"} 1.78e+09`) {
		t.Errorf("%v, %.200s", err, text)
	}
	for _, foreign := range []string{"\ngo_", "\nprocess_", "\npromhttp_"} {
		if strings.Contains(string(text), foreign) {
			t.Errorf("the exporter has names of its own in %s", foreign)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the exporter's user reads it: %v, %v", info.Mode(), err)
	}
	if err := worked().WriteTextfile(filepath.Join(dir, "missing", "x.prom")); err == nil {
		t.Error("no error for a folder that is not there")
	}
}

func TestADatabaseThatIsAwayLeavesTheLastGoodAnswer(t *testing.T) {
	away := false
	r := recorder(func(context.Context) (mirror.Status, error) {
		if away {
			return mirror.Status{}, errors.New("away")
		}
		return full(), nil
	}, 0)
	scrape(t, r)
	away = true
	families := scrape(t, r)
	got := map[string]float64{
		"up":      value(t, families, "xiaoqu_sync_database_up"),
		"errors":  value(t, families, "xiaoqu_sync_status_read_errors_total"),
		"success": value(t, families, "xiaoqu_sync_last_success_timestamp_seconds", "resource=users"),
	}
	if diff := cmp.Diff(map[string]float64{"up": 0, "errors": 1, "success": 1_780_000_000}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if age := time.Since(time.Unix(int64(value(t, families, "xiaoqu_sync_status_read_timestamp_seconds")), 0)); age < 0 || age > time.Minute {
		t.Errorf("last read %v ago", age)
	}
}

func TestASilentDatabaseDoesNotHoldUpScrapes(t *testing.T) {
	r := recorder(func(ctx context.Context) (mirror.Status, error) {
		<-ctx.Done()
		return mirror.Status{}, ctx.Err()
	}, 50*time.Millisecond)
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	began := time.Now()
	var g errgroup.Group
	for range 3 {
		g.Go(func() error {
			resp, err := http.Get(server.URL)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err == nil && !strings.Contains(string(text), "xiaoqu_sync_database_up 0") {
				err = fmt.Errorf("HTTP %d: %.300s", resp.StatusCode, text)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("three scrapes took %v", took)
	}
}
