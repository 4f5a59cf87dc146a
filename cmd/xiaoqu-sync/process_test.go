package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

// process is a daemon: the real binary at work.
type process struct {
	*exec.Cmd
	log   *lines
	ended chan struct{}
}

// lines keeps what a process logs, for a test that waits for a line of it.
type lines struct {
	token chan struct{}
	text  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.token <- struct{}{}
	defer func() { <-l.token }()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.token <- struct{}{}
	defer func() { <-l.token }()
	return l.text.String()
}

// configured writes a configuration whose resources all have one schedule.
func configured(t testing.TB, schedule, more string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	rewrite(t, path, schedule, more)
	return path
}

func rewrite(t testing.TB, path, schedule, more string) {
	t.Helper()
	text := "schedule_jitter: 0s\nresources:\n"
	for _, r := range []string{"users", "properties", "contracts"} {
		text += fmt.Sprintf("  %s: {schedule: %q}\n", r, schedule)
	}
	if err := os.WriteFile(path, []byte(text+more), 0o600); err != nil {
		t.Fatal(err)
	}
}

// daemon starts one, and ends it with the test.
func (c *cli) daemon(t testing.TB, binary, path string, env ...string) *process {
	t.Helper()
	return c.launch(t, exec.Command(binary, "run", "--config", path), env...)
}

// launch starts the program for as long as the test takes.
func (c *cli) launch(t testing.TB, cmd *exec.Cmd, env ...string) *process {
	t.Helper()
	p := &process{Cmd: cmd, log: &lines{token: make(chan struct{}, 1)}, ended: make(chan struct{})}
	p.Env = append(append(os.Environ(), c.env...), env...)
	p.Stderr = p.log
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.Wait(); close(p.ended) }()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("the log of process %d:\n%.6000s", p.Process.Pid, p.log)
		}
	})
	return p
}

// stop sends a signal and returns the exit code and how long the end took.
func (p *process) stop(t testing.TB, signal syscall.Signal) (exit int, took time.Duration) {
	t.Helper()
	began := time.Now()
	_ = p.Process.Signal(signal)
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		t.Fatalf("still running 30 s after %s", signal)
	}
	return p.ProcessState.ExitCode(), time.Since(began)
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(45 * time.Second)
	defer deadline.Stop()
	look := time.NewTicker(25 * time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-deadline.C:
			t.Fatalf("it never happened: %s", what)
		}
	}
}

func (p *process) logs(t testing.TB, text string, times int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%q logged %d times", text, times), func() bool { return strings.Count(p.log.String(), text) >= times })
}

// migrated tells that the tables are there.
func (c *cli) migrated(t testing.TB) bool {
	t.Helper()
	return len(c.read(t, "select 1 from information_schema.tables where table_schema = 'xiaoqu_sync' and table_name = 'runs'")) == 1
}

// rounds is how many runs of a resource ended well.
func (c *cli) rounds(t testing.TB, resource string) int {
	t.Helper()
	n, err := strconv.Atoi(c.read(t, "select count(*) from xiaoqu_sync.runs where outcome = 'synced' and resource = '"+resource+"'")[0][0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// rss is the resident memory of a process in MiB.
func (p *process) rss(t testing.TB) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		t.Skip("no /proc here")
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.Atoi(strings.Fields(rest)[0])
			return float64(kib) / 1024
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// door is a way to the database that a test opens and shuts.
type door struct {
	*localpg.Proxy
	database string
}

// newDoor gives one that is shut.
func newDoor(t testing.TB, database string) door {
	t.Helper()
	d := door{localpg.StartProxy(t, database), database}
	d.shut(t)
	return d
}

func (d door) unlock(t testing.TB) { d.leadTo(t, d.database) }

// shut cuts the connections that are there and those to come.
func (d door) shut(t testing.TB) { d.leadTo(t, "postgres://127.0.0.1:1") }

func (d door) leadTo(t testing.TB, target string) {
	t.Helper()
	if err := d.Retarget(target); err != nil {
		t.Fatal(err)
	}
}
