package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// build makes the real binary, once for all tests.
func build(t testing.TB) string {
	t.Helper()
	path := filepath.Join(binaryDir(), "xiaoqu-sync")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// binaryDir is this test process's own; TestMain removes it.
func binaryDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("xiaoqu-sync-test-%d", os.Getpid()))
}

// start runs the binary with the operator's environment.
func (c *cli) start(t testing.TB, binary string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// inFlight is what a kill may repeat: the pages that wait for their commit, the
// one that has just come, and the one that is asked for.
const inFlight = 16 + 2

func TestKilledAtTwentyRandomMomentsNothingIsLostOrDoubled(t *testing.T) {
	const kills, pages = 20, 30
	resources := []string{"users", "properties", "contracts"}
	c := newCLI(t)
	c.xiaoqu.Seed(pages*200, pages*200, pages*200)
	c.xiaoqu.PageDelay(4 * time.Millisecond)
	binary := build(t)
	for range kills {
		cmd := c.start(t, binary, "sync")
		<-time.NewTimer(30*time.Millisecond + rand.N(120*time.Millisecond)).C
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	// PostgreSQL may not have noticed the last death yet: then a run steps aside.
	eventually(t, "a run to the end", func() bool {
		r := c.run(t, "sync", "--output", "json")
		return r.exit == 0 && !strings.Contains(r.out, "stepped_aside")
	})
	for _, r := range resources {
		if fetched := c.xiaoqu.Stats().Pages[r]; fetched > pages+1+inFlight*kills {
			t.Errorf("%s: %d pages fetched for %d and %d kills", r, fetched, pages, kills)
		}
		c.equal(t, r)
	}
	if open := c.read(t, "select count(*) from xiaoqu_sync.runs where ended_at is null"); open[0][0] != "0" {
		t.Errorf("%s runs left open", open[0][0])
	}
}

func TestASignalEndsARunQuicklyAndTheNextGoesOn(t *testing.T) {
	for signal, exit := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
		t.Run(signal.String(), func(t *testing.T) {
			c := newCLI(t)
			c.xiaoqu.Seed(1000, 0, 0)
			reached := make(chan struct{}, 10)
			c.xiaoqu.Inject(remotetest.Fault{Match: remotetest.OnPage("users", 3), Do: remotetest.Hang(false)})
			c.xiaoqu.OnCall(func(call remotetest.Call) {
				if remotetest.OnPage("users", 3)(call) {
					reached <- struct{}{}
				}
			})
			cmd := c.start(t, build(t), "sync", "users")
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case <-reached:
			case err := <-ended:
				t.Fatalf("it ended before page 3: %v", err)
			}
			began := time.Now()
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			<-ended
			if code := cmd.ProcessState.ExitCode(); code != exit || time.Since(began) > 10*time.Second {
				t.Errorf("exit %d after %v, want %d in less than ten seconds", code, time.Since(began), exit)
			}
			if run := c.read(t, "select outcome from xiaoqu_sync.runs"); len(run) != 1 || run[0][0] != "interrupted" {
				t.Errorf("the run log says %v", run)
			}
			c.must(t, "sync", "users")
			c.equal(t, "users")
		})
	}
}

// read looks at the database from outside.
func (c *cli) read(t testing.TB, sql string) [][]string {
	t.Helper()
	_, rows, err := localpg.Query(t.Context(), c.url, sql)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// equal fails unless the live rows' ids and names are upstream's. (That every
// digit is, the tests of sync show.)
func (c *cli) equal(t testing.TB, resource string) {
	t.Helper()
	rows := c.read(t, "select id, coalesce(record->>'name', ''), record->>'version' from xiaoqu."+resource+"_live")
	upstream := c.xiaoqu.Live(resource)
	if len(rows) != len(upstream) {
		t.Fatalf("%s: %d rows, upstream has %d", resource, len(rows), len(upstream))
	}
	for _, row := range rows {
		var want struct {
			Name    string
			Version json.Number
		}
		if err := json.Unmarshal(upstream[row[0]], &want); err != nil || want.Name != row[1] || want.Version.String() != row[2] {
			t.Fatalf("%s %s: %q, upstream %+v (%v)", resource, row[0], row, want, err)
		}
	}
}
