package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// The flag belongs to the test binary alone.
var soakTime = flag.Duration("soak", 8*time.Second, "how long the soak takes")

// trouble is what goes wrong in a soak, one at a time.
func trouble(c *cli, r *rand.Rand) func() {
	once := func(e remotetest.Effect) func() { return func() { c.xiaoqu.Inject(remotetest.Fault{Do: e}) } }
	all := []func(){
		c.xiaoqu.DropSessions, c.xiaoqu.RevokeTokens,
		func() { c.xiaoqu.ExpireTokens() }, func() { c.xiaoqu.ExpireRounds() },
		once(remotetest.Fail(remotetest.Failure{Place: remotetest.HTTPBare, Status: 503})),
		once(remotetest.Fail(remotetest.Failure{Place: remotetest.HTTPBare, Status: 429, RetryAfter: "1"})),
		once(remotetest.Fail(remotetest.Failure{Code: remotetest.RateLimited})),
	}
	return all[r.IntN(len(all))]
}

// churn changes upstream a little.
func churn(c *cli, r *rand.Rand, n int) {
	for _, resource := range []string{"users", "properties", "contracts"} {
		ids := c.xiaoqu.IDs(resource)
		switch id := ids[r.IntN(len(ids))]; r.IntN(4) {
		case 0:
			c.xiaoqu.Put(resource, strconv.Itoa(n), fmt.Sprintf(`{"name":"new %d"}`, n))
		case 1:
			if len(ids) > 100 {
				c.xiaoqu.Delete(resource, id)
			}
		default:
			c.xiaoqu.Edit(resource, id, fmt.Sprintf(`{"name":"edit %d"}`, n))
		}
	}
}

// soak is three replicas in bad weather.
type soak struct {
	*cli
	binary, path string
	replicas     []*process
}

// weather blows until ctx ends: changes all the time, a fault every second, a
// replica killed and replaced every fifth.
func (s *soak) weather(ctx context.Context, t *testing.T, r *rand.Rand) (kills int) {
	gust := time.NewTicker(200 * time.Millisecond)
	defer gust.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return kills
		case <-gust.C:
		}
		churn(s.cli, r, n)
		if n%5 == 0 {
			// What nobody met is over: replicas that wait longer and longer would meet
			// fewer faults than are made, and the weather would never end.
			s.xiaoqu.ClearFaults()
			trouble(s.cli, r)()
		}
		if n%25 == 0 {
			victim := r.IntN(len(s.replicas) - 1) // the last one lives through it all
			_ = s.replicas[victim].Process.Kill()
			<-s.replicas[victim].ended
			s.replicas[victim] = s.daemon(t, s.binary, s.path)
			kills++
		}
	}
}

func TestSoak(t *testing.T) {
	binary := build(t)
	t.Parallel()
	c := newCLI(t, func(o *remotetest.Options) { o.Strict = false }) // dropped sessions look like breaches
	c.set("XIAOQU_LOG_LEVEL", "info")
	c.xiaoqu.Seed(300, 300, 300)
	s := &soak{cli: c, binary: binary, path: configured(t, "@every 1s", "")}
	for range 2 {
		s.replicas = append(s.replicas, s.daemon(t, s.binary, s.path))
	}
	s.replicas = append(s.replicas, s.daemon(t, s.binary, s.path, "XIAOQU_HTTP_LISTEN="+freeAddress(t)))
	eventually(t, "the first rounds", func() bool { return c.migrated(t) && c.rounds(t, "users") > 0 })
	survivor, began := s.replicas[2], time.Now()
	early, few := survivor.rss(t), survivor.goroutines(t)
	ctx, cancel := context.WithTimeout(t.Context(), *soakTime)
	defer cancel()
	kills := s.weather(ctx, t, rand.New(rand.NewPCG(1, 2)))

	c.xiaoqu.ClearFaults()
	calm := time.Now()
	eventually(t, "a round of every resource after the storm", func() bool {
		return c.read(t, fmt.Sprintf("select count(*) from xiaoqu_sync.state where last_success_at > to_timestamp(%d)", calm.Unix()+2))[0][0] == "3"
	})
	for _, r := range []string{"users", "properties", "contracts"} {
		c.equal(t, r)
	}
	late, many := survivor.rss(t), survivor.goroutines(t)
	if late > early+16 || late > 60 {
		t.Errorf("the replica that lived grew from %.1f to %.1f MiB", early, late)
	}
	if many > few+15 { // connections of the pool and of HTTP come and go
		t.Errorf("%d goroutines became %d", few, many)
	}
	exit, _ := survivor.stop(t, syscall.SIGTERM)
	if exit != 143 {
		t.Errorf("exit %d", exit)
	}
	everyMomentIsCounted(t, survivor)
	t.Logf("%v, %d kills, %d rounds of users, %.1f MiB then %.1f MiB, %d goroutines then %d",
		time.Since(began).Round(time.Second), kills, c.rounds(t, "users"), early, late, few, many)
}

// freeAddress is one that nobody listens on now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// goroutines asks the process how many it has.
func (p *process) goroutines(t *testing.T) int {
	t.Helper()
	where := regexp.MustCompile(`the status page are served.*"address": "([^"]+)"`).FindStringSubmatch(p.log.String())
	if where == nil {
		t.Fatal("the log does not say where metrics are")
	}
	res, err := http.Get("http://" + where[1] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	found := regexp.MustCompile(`(?m)^go_goroutines (\d+)$`).FindSubmatch(body)
	if err != nil || found == nil {
		t.Fatalf("no go_goroutines: %v", err)
	}
	n, _ := strconv.Atoi(string(found[1]))
	return n
}

// everyMomentIsCounted checks the sum that a timetable ends with: the moments
// of its life are the runs begun and the moments skipped.
func everyMomentIsCounted(t *testing.T, p *process) {
	t.Helper()
	text := p.log.String()
	found := regexp.MustCompile(`the timetable ends.*"since": "([^"]+)", "begun": (\d+), "skipped": (\d+), "panics": (\d+)`).FindStringSubmatch(text)
	if found == nil {
		t.Fatal("the timetable did not say how it ended")
	}
	life, err := time.ParseDuration(found[1])
	begun, _ := strconv.Atoi(found[2])
	skipped, _ := strconv.Atoi(found[3])
	moments := 3 * int(life/time.Second) // three resources, one moment each second
	if counted := begun + skipped; err != nil || counted < moments-3 || counted > moments+6 || found[4] != "0" {
		t.Errorf("%d begun and %d skipped in %v of 3 moments a second, %s panics", begun, skipped, life, found[4])
	}
	if strings.Contains(text, "goroutine ") {
		t.Error("there is a stack in the log")
	}
}
