package sync_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// modelFlags are the model test's own; TestMain defines them.
func modelFlags() {
	// A history waits more than it works: for dead connections, for silence.
	_ = flag.Set("test.parallel", "4")
	flag.Int("seeds", 12, "histories that TestModel lives through; 2000 are for a night")
	flag.Int64("seed", 0, "the one history to live through again")
	flag.Int("steps", 0, "steps of each history; 0: as its seed says")
}

// flagged reads one of them.
func flagged[T any](name string) T { return flag.Lookup(name).Value.(flag.Getter).Get().(T) }

// TestModel lives through random histories: changes upstream, faults of the
// remote, of the database and of the line between, stops and crashes of the
// program, and what operators do, all in any order. It knows what must hold
// after each run, and what must hold at the end when everything is left in
// peace. A failure prints the command that lives through its history again.
//
// The seed decides what is done and in which order. Where a blow falls is
// counted in requests and bytes, not in time, but several resources share the
// line, so it may fall on another of them when a history is lived again.
func TestModel(t *testing.T) {
	first, n := int64(1), int64(flagged[int]("seeds"))
	if one := flagged[int64]("seed"); one != 0 {
		first, n = one, 1
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, seed)
			for range h.length() {
				h.step()
			}
			h.settle()
		})
	}
}

// history is what happened to one installation, and what is known of it.
type history struct {
	*world
	t       *testing.T
	rng     *rand.Rand
	began   time.Time
	told    []string // the steps, for the report
	next    int      // of the numbers that made-up things are named by
	stocks  map[string]*stock
	line    *line            // between the mirror and PostgreSQL
	cluster *localpg.Cluster // of its own, where PostgreSQL is killed as well; else nil
	db      *pgx.Conn        // for the oracle
	direct  string           // the database's address without the line
	plain   variety
	ambush  ambush // of blows against a run
	events  ambush // of what happens upstream while it pages
	watcher *watcher
}

// newHistory makes an empty tenant, an empty mirror, and those who watch them.
func newHistory(t *testing.T, seed int64) *history {
	t.Helper()
	h := &history{t: t, began: time.Now(), rng: rand.New(rand.NewPCG(uint64(seed), 1)), stocks: map[string]*stock{}}
	t.Cleanup(func() { h.report(seed) })
	for _, r := range all {
		h.stocks[r] = newStock()
	}
	var o remotetest.Options
	o.Seed, o.WallClock = uint64(seed), h.odds(0.3)
	o.Variants, h.plain = h.vary()
	h.world = &world{xiaoqu: remotetest.Start(t, o), limit: 10, log: zap.NewNop()}
	h.xiaoqu.OnCall(h.ambush.fall)
	h.xiaoqu.OnCall(h.events.fall)
	h.direct = h.database()
	h.line, h.url = throughLine(t, h.direct)
	h.reopen(t)
	if _, err := h.mirror.Migrate(t.Context(), all, false); err != nil {
		t.Fatal(err)
	}
	h.keepAudit()
	h.connectFor(impatient)
	h.watcher = h.watch()
	return h
}

// database makes one, sometimes on a server of its own that can be killed.
func (h *history) database() string {
	if !h.odds(0.04) {
		return localpg.Database(h.t)
	}
	c, err := localpg.Start(h.t.Context(), localpg.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.Stop() })
	h.cluster = c
	return c.URL("postgres")
}

// length is how many steps the history has.
func (h *history) length() int {
	if n := flagged[int]("steps"); n > 0 {
		return n
	}
	if h.odds(0.03) {
		return 400
	}
	return 20 + h.rng.IntN(60)
}

// step is one thing that happens.
func (h *history) step() {
	h.t.Helper()
	if h.odds(0.45) {
		h.change(h.resource())
		return
	}
	acts := []struct {
		weight int
		do     func()
	}{
		{60, h.runOnce},
		{8, h.runTwice},
		{8, h.rebuild},
		{6, h.planAndApply},
		{4, h.verify},
		{4, h.abort},
		{3, h.accept},
		{4, h.purge},
		{3, h.loseState},
		{4, h.loseStaging},
		{6, h.upset},
	}
	total := 0
	for _, a := range acts {
		total += a.weight
	}
	at := h.rng.IntN(total)
	for _, a := range acts {
		if at -= a.weight; at < 0 {
			a.do()
			return
		}
	}
}

func (h *history) odds(p float64) bool { return h.rng.Float64() < p }

func (h *history) resource() string {
	return h.pick("users", "users", "users", "properties", "contracts")
}

func (h *history) pick(from ...string) string { return from[h.rng.IntN(len(from))] }

// some are one to all of the resources.
func (h *history) some() []string {
	if h.odds(0.4) {
		return all
	}
	return slices.Compact([]string{h.resource()})
}

func (h *history) tell(format string, args ...any) {
	h.told = append(h.told, fmt.Sprintf("%7.3f ", time.Since(h.began).Seconds())+fmt.Sprintf(format, args...))
}

// report says how to live through a failed history again, and its steps.
func (h *history) report(seed int64) {
	if !h.t.Failed() && !testing.Verbose() {
		return
	}
	steps := ""
	if n := flagged[int]("steps"); n > 0 {
		steps = fmt.Sprint(" -steps ", n)
	}
	h.t.Logf("live through it again: go test ./sync -run 'TestModel$' -seed %d%s", seed, steps)
	h.t.Logf("all %d steps:\n%s", len(h.told), strings.Join(h.told, "\n"))
}

// reopen gives the history a mirror with new connections, as a new process
// would have.
func (h *history) reopen(t *testing.T) {
	t.Helper()
	m, err := mirror.Open(t.Context(), mirror.Options{URL: h.url, MaxConns: 8, Application: modelApplication})
	if err != nil {
		t.Fatal(err)
	}
	if h.mirror != nil {
		h.mirror.Close()
	}
	t.Cleanup(m.Close)
	h.mirror = m
}

// impatient is how long a silent remote is waited for while faults are about.
const impatient = 300 * time.Millisecond

// connectFor gives the history a new client that waits so long for an answer.
func (h *history) connectFor(timeout time.Duration) {
	if h.client != nil {
		_ = h.client.Close()
	}
	h.timeout = timeout
	h.client = h.connect(h.t)
}
