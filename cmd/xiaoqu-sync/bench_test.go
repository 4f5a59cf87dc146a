package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// BenchmarkProcess runs the real binary, stripped, over 100,000 records of one
// resource, a first sync and a rebuild, and reports its peak memory.
func BenchmarkProcess(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "xiaoqu-sync")
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	info, err := os.Stat(binary)
	if err != nil {
		b.Fatal(err)
	}
	c := &cli{xiaoqu: remotetest.Start(b, remotetest.Options{Seed: 7}), url: localpg.Database(b)}
	c.xiaoqu.Seed(100_000, 0, 0)
	c.env = []string{
		"XIAOQU_BASE_URL=" + c.xiaoqu.URL(), "XIAOQU_SERVICE_NAME=crm", "XIAOQU_OPEN_KEY=" + c.xiaoqu.Key(),
		"XIAOQU_DATABASE_URL=" + c.url, "XIAOQU_LOG_LEVEL=warn",
	}
	peak := int64(0)
	for b.Loop() {
		if _, _, err := localpg.Query(b.Context(), c.url, "drop schema if exists xiaoqu, xiaoqu_sync cascade"); err != nil {
			b.Fatal(err)
		}
		for _, verb := range []string{"sync", "rebuild"} {
			cmd := exec.Command(binary, verb, "users")
			cmd.Env = c.env
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			kib, err := peakWhile(cmd.Process.Pid, done)
			if err != nil {
				b.Fatal(err)
			}
			peak = max(peak, kib)
		}
	}
	b.ReportMetric(float64(peak)/1024, "peak-MiB")
	b.ReportMetric(float64(info.Size())/1e6, "binary-MB")
}

// peakWhile reads the process's own high-water mark of resident memory, in
// KiB, until it ends. What the kernel reports about an ended child would count
// the test's memory too.
func peakWhile(pid int, done <-chan error) (kib int64, err error) {
	mark := regexp.MustCompile(`VmHWM:\s+(\d+) kB`)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return kib, err
		case <-tick.C:
			status, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
			if m := mark.FindSubmatch(status); m != nil {
				n, _ := strconv.ParseInt(string(m[1]), 10, 64)
				kib = max(kib, n)
			}
		}
	}
}
