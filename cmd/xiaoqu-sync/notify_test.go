package main

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// listening stands for systemd: it hears where a service is told to speak.
func listening(t testing.TB) (path string, heard chan string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	heard = make(chan string, 10_000)
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				close(heard)
				return
			}
			heard <- string(buf[:n])
		}
	}()
	return path, heard
}

// until collects what was heard up to a message that has the text.
func until(t testing.TB, heard chan string, text string) []string {
	t.Helper()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	var all []string
	for {
		select {
		case m := <-heard:
			all = append(all, m)
			if strings.Contains(m, text) {
				return all
			}
		case <-late.C:
			t.Fatalf("systemd never heard %q, but %q", text, all)
		}
	}
}

func TestSystemdHearsHowTheDaemonIs(t *testing.T) {
	binary := build(t)
	t.Parallel()
	c := newCLI(t)
	c.xiaoqu.Seed(1000, 3, 3)
	door := newDoor(t, c.url)
	path, heard := listening(t)
	p := c.daemon(t, binary, configured(t, "@every 1h", ""), "XIAOQU_DATABASE_URL="+door.URL(),
		"NOTIFY_SOCKET="+path, "WATCHDOG_USEC=400000")
	before := until(t, heard, "DATABASE_UNREACHABLE")
	if last := before[len(before)-1]; !strings.Contains(last, "EXTEND_TIMEOUT_USEC=") {
		t.Errorf("while it waits for the database it asks for no time: %q", last)
	}
	door.unlock(t)
	before = until(t, heard, "READY=1")
	if slices.ContainsFunc(before, func(m string) bool { return strings.Contains(m, "WATCHDOG=1") }) {
		t.Errorf("signs of life ahead of READY: %q", before)
	}
	until(t, heard, " pages, ")
	until(t, heard, "next run at")
	began := time.Now()
	for range 5 {
		until(t, heard, "WATCHDOG=1")
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("five signs of life took %v, and the watchdog bites after 0.4s", took)
	}
	_ = p.Process.Signal(syscall.SIGHUP)
	reloading := until(t, heard, "RELOADING=1")
	if last := reloading[len(reloading)-1]; !strings.Contains(last, "MONOTONIC_USEC=") {
		t.Errorf("reloading: %q", last)
	}
	until(t, heard, "READY=1")
	p.stop(t, syscall.SIGTERM)
	until(t, heard, "STOPPING=1")
}
