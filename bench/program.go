package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// program is the real binary and the environment that it finds.
type program struct {
	binary string
	env    []string
}

// usage is what one run of it used.
type usage struct {
	cpu  time.Duration
	peak float64 // MiB of resident memory
}

// run runs a verb to its end.
func (p program) run(ctx context.Context, verb ...string) (usage, error) {
	cmd := exec.CommandContext(ctx, p.binary, verb...)
	cmd.Env, cmd.Stderr = p.env, os.Stderr
	if err := cmd.Start(); err != nil {
		return usage{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	peak, err := peakUntil(cmd.Process.Pid, ended)
	if err != nil {
		return usage{}, fmt.Errorf("xiaoqu-sync %v: %w", verb, err)
	}
	return usage{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), peak: peak}, nil
}

// peakUntil reads the process's own high-water mark until it ends. What the kernel
// says of a dead child counts the memory of who forked it too.
func peakUntil(pid int, ended <-chan error) (mib float64, err error) {
	mark := regexp.MustCompile(`VmHWM:\s+(\d+) kB`)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return mib, err
		case <-tick.C:
			status, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
			if m := mark.FindSubmatch(status); m != nil {
				kib, _ := strconv.ParseFloat(string(m[1]), 64)
				mib = max(mib, kib/1024)
			}
		}
	}
}

// rest starts the daemon, lets it settle, and gives the share of a core that it
// uses with nothing to do.
func (p program) rest(ctx context.Context, quick bool) (share float64, err error) {
	settle, look := 5*time.Second, 15*time.Second
	if quick {
		settle, look = 2*time.Second, 3*time.Second
	}
	cmd := exec.CommandContext(ctx, p.binary, "run")
	cmd.Env = append(p.env, "XIAOQU_RESOURCES=properties")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	wait := func(d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case err := <-ended:
			return fmt.Errorf("the daemon ended by itself: %w", err)
		}
	}
	if err := wait(settle); err != nil {
		return 0, err
	}
	before := nanoseconds(cmd.Process.Pid)
	if err := wait(look); err != nil {
		return 0, err
	}
	used := nanoseconds(cmd.Process.Pid) - before
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	if err := <-ended; cmd.ProcessState == nil { // its exit code is our signal's
		return 0, err
	}
	return used.Seconds() / look.Seconds(), nil
}

// nanoseconds is the time that a process's threads were on a CPU: finer than
// processCPU.
func nanoseconds(pid int) time.Duration {
	var total int64
	threads, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "schedstat"))
	for _, name := range threads {
		text, _ := os.ReadFile(name)
		var n int64
		_, _ = fmt.Sscan(string(text), &n)
		total += n
	}
	return time.Duration(total)
}
