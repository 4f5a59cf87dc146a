package board_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync/board"
	"github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync/metrics"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

func TestMain(m *testing.M) { os.Exit(localpg.Main(m)) }

func resources() []string { return []string{"users", "properties", "contracts"} }

// world is a mirror in a database of its own, in whatever state the test brings it.
type world struct {
	*mirror.Mirror
	url string
}

func newWorld(t testing.TB) world {
	t.Helper()
	w := world{url: localpg.Database(t)}
	w.Mirror = open(t, w.url)
	if _, err := w.Migrate(t.Context(), resources(), false); err != nil {
		t.Fatal(err)
	}
	return w
}

func open(t testing.TB, url string) *mirror.Mirror {
	t.Helper()
	m, err := mirror.Open(t.Context(), mirror.Options{URL: url, Application: "board-test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// exec does to the database what no method does, such as the passing of time.
func (w world) exec(t testing.TB, sql string) {
	t.Helper()
	if _, _, err := localpg.Query(t.Context(), w.url, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func records(from, to int) []json.RawMessage {
	var rs []json.RawMessage
	for i := from; i < to; i++ {
		rs = append(rs, json.RawMessage(fmt.Sprintf(`{"id":"u-%04d","name":"内容-%d","modify_time":"2026-09-01T08:00:00Z"}`, i, i)))
	}
	return rs
}

// synced fills a resource and notes a day of runs, one every half hour, the
// last of them a moment ago.
func (w world) synced(t testing.TB, resource string, rs []json.RawMessage) mirror.Checkpoint {
	t.Helper()
	before, err := w.Checkpoint(t.Context(), resource)
	if err != nil {
		t.Fatal(err)
	}
	cutoff := time.Now().Add(-2 * time.Minute)
	s := mirror.Step{Before: before, After: before, Batch: mirror.NewBatch(rs, time.UTC), Last: true}
	s.After.SyncToken, s.After.DataCutoffAt = "token-1", &cutoff
	at, _, err := w.Commit(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	w.exec(t, `insert into xiaoqu_sync.runs (resource, mode, outcome, host, pid, started_at, ended_at, pages, received, updated, unchanged)
		select '`+resource+`', 'incremental', case when n % 17 = 5 then 'failed' when n = 23 then 'interrupted' else 'synced' end, 'host-a', 4711,
		       now() - n * interval '30 minutes', now() - n * interval '30 minutes' + (800 + (n * n * 7919) % 4000) * interval '1 millisecond',
		       1 + (n * 31) % 4, (n * 104729) % 700, (n * 7) % 90, (n * 104729) % 700 - (n * 7) % 90
		from generate_series(45, 1, -1) n`)
	return at
}

// holdBack makes a rebuild that the deletion fuse holds: only some of the rows
// come again.
func (w world) holdBack(t testing.TB, resource string) {
	t.Helper()
	at := w.synced(t, resource, records(0, 150))
	at, err := w.Restart(t.Context(), at, "SYNC_CURSOR_EXPIRED", false)
	if err != nil {
		t.Fatal(err)
	}
	pass, err := w.BeginPass(t.Context(), at, mirror.PurposeRebuild, "SYNC_CURSOR_EXPIRED")
	if err != nil {
		t.Fatal(err)
	}
	step := mirror.StageStep{Before: pass, After: pass.At, Batch: mirror.NewBatch(records(0, 60), time.UTC), Last: true}
	step.After.SyncToken = "token-2"
	if pass, _, err = w.Stage(t.Context(), step); err != nil {
		t.Fatal(err)
	}
	var fuse *mirror.FuseError
	if _, _, err = w.Merge(t.Context(), at, pass, mirror.Ruling{MaxDeleteRatio: 0.3}); !errors.As(err, &fuse) {
		t.Fatalf("the fuse did not hold: %v", err)
	}
	w.failed(t, resource, "held", "REBUILD_HELD")
}

func (w world) failed(t testing.TB, resource, outcome, code string) {
	t.Helper()
	run := mirror.Run{Resource: resource, Mode: "rebuild", Host: "host-a", PID: 4711}
	id, err := w.BeginRun(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	run.ID, run.Outcome, run.Code = id, outcome, code
	run.Message, run.RequestID = "the remote quotes "+canary+" in its text", "r_abc123"
	if err := w.EndRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
}

// working takes the lease and begins a run, until the test ends.
func (w world) working(t testing.TB, resource string) {
	t.Helper()
	lease, err := w.Lease(t.Context(), resource, mirror.Holder{Host: "sync-7d9f-x2x", PID: 1, Since: time.Now().Add(-40 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lease.Release(context.WithoutCancel(t.Context())) })
	run := mirror.Run{Resource: resource, Mode: "first", Host: "sync-7d9f-x2x", PID: 1, StartedAt: time.Now().Add(-40 * time.Second)}
	if _, err := w.BeginRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
}

// serve puts the board of a mirror behind real HTTP, as the daemon wires it.
func serve(t testing.TB, m *mirror.Mirror, change ...func(*board.Options)) string {
	t.Helper()
	recorder := metrics.New(metrics.Options{Resources: resources(), Mirror: m, Timeout: 2 * time.Second})
	shanghai := time.FixedZone("Asia/Shanghai", 8*3600)
	o := board.Options{
		Resources: resources(), Mirror: m, Metrics: recorder.Handler(), Zone: shanghai, Version: "v1.4.0",
		Ready: func(ctx context.Context) error { return m.Ready(ctx, resources()) },
		Timetable: func(string) board.Tick {
			return board.Tick{Next: time.Now().Add(4*time.Minute + 10*time.Second), Late: time.Hour}
		},
		Retryable: func(code string) bool { return code == "RATE_LIMITED" },
	}
	for _, c := range change {
		c(&o)
	}
	server := httptest.NewServer(board.New(o))
	t.Cleanup(server.Close)
	return server.URL
}

// get asks as a browser of that language does.
func get(t testing.TB, url, accept string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Language", accept)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// elements lists the elements below n in document order; all of them when no
// name is given.
func elements(n *html.Node, names ...string) []*html.Node {
	var found []*html.Node
	for d := range n.Descendants() {
		if d.Type != html.ElementNode {
			continue
		}
		for _, name := range names {
			if d.Data == name {
				found = append(found, d)
			}
		}
		if len(names) == 0 {
			found = append(found, d)
		}
	}
	return found
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// text is what a reader sees of n, in one line.
func text(n *html.Node) string {
	out := ""
	for d := range n.Descendants() {
		if d.Type == html.TextNode && d.Parent.Data != "style" {
			out += d.Data + " "
		}
	}
	return strings.Join(strings.Fields(out), " ")
}

func parse(t testing.TB, page string) *html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return root
}
