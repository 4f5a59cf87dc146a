package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// describe says what the figures were measured on. What the system does not tell
// is left out.
func describe(ctx context.Context, sql *pgx.Conn) (map[string]string, error) {
	m := map[string]string{"cores": strconv.Itoa(runtime.NumCPU()), "Go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if model := regexp.MustCompile(`(?m)^model name\s*: (.+)$`).FindSubmatch(text); model != nil {
			m["CPU"] = string(model[1])
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m["kernel"] = string(bytes.TrimSpace(text))
	}
	for name, setting := range map[string]string{
		"PostgreSQL": "server_version", "fsync": "fsync", "commit": "synchronous_commit", "buffers": "shared_buffers",
	} {
		var value string
		if err := sql.QueryRow(ctx, "select current_setting($1)", setting).Scan(&value); err != nil {
			return nil, err
		}
		m[name] = value
	}
	return m, nil
}

// ownCPU is what this process has used so far.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// tick is the unit of the times in /proc/PID/stat on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// serverCPU is what PostgreSQL has used so far: the postmaster, the children that
// it has buried, and those that live. 0 where the server is not ours.
func (b *bench) serverCPU() time.Duration {
	if b.server == nil {
		return 0
	}
	text, err := os.ReadFile(filepath.Join(b.server.Dir(), "postmaster.pid"))
	if err != nil {
		return 0
	}
	pid, _, _ := strings.Cut(string(text), "\n")
	for {
		own, children := processCPU(pid, true), time.Duration(0)
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, name := range stats {
			if f := statFields(name); len(f) > 1 && f[1] == pid {
				children += processCPU(filepath.Base(filepath.Dir(name)), false)
			}
		}
		if processCPU(pid, true) == own { // no child was buried meanwhile: it would count twice or not at all
			return own + children
		}
	}
}

// processCPU is a process's user and system time, and its dead children's.
func processCPU(pid string, children bool) time.Duration {
	f := statFields(filepath.Join("/proc", pid, "stat"))
	if len(f) < 15 {
		return 0
	}
	times := f[11:13]
	if children {
		times = f[11:15]
	}
	total := time.Duration(0)
	for _, text := range times {
		n, _ := strconv.ParseInt(text, 10, 64)
		total += time.Duration(n) * tick
	}
	return total
}

// statFields are the fields behind the name of the program, which may hold
// spaces: the state first, then the parent.
func statFields(name string) []string {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil // it has ended
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}
