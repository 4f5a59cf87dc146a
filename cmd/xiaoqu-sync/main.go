package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // Asia/Shanghai is the default also where no zone files are installed
)

func main() {
	ctx, release := interruptible(context.Background())
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	release()
	os.Exit(code)
}

// run is the whole program: arguments, environment and streams in, exit code
// out. It neither reads nor changes anything global, so a test can drive it.
func run(ctx context.Context, args []string, env []string, out, errOut io.Writer) int {
	p := newProgram(env, out, errOut)
	p.output = wantedOutput(args)
	root := p.root()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	err := guarded(func() error { return root.ExecuteContext(ctx) })
	var report *runError // which says by itself what was interrupted
	if stop := (interruption{}); err != nil && !errors.As(err, &report) && asInterruption(ctx, &stop) {
		err = stop
	}
	return p.finish(err)
}

// crash is a bug that ended a verb.
type crash struct {
	value any
	stack []byte
}

func (c *crash) Error() string { return fmt.Sprintf("panic: %v\n%s", c.value, c.stack) }

// guarded turns a panic into an error, so that its text goes out where secrets are
// taken out of it: Go's own dump would quote the value as it is.
func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &crash{value: v, stack: debug.Stack()}
		}
	}()
	return f()
}

// interruption is a signal that asked the program to end.
type interruption struct{ signal syscall.Signal }

func (i interruption) Error() string { return fmt.Sprintf("stopped by %s", i.signal) }

// asInterruption tells whether ctx ended because of a signal, and which.
func asInterruption(ctx context.Context, i *interruption) bool {
	cause, ok := context.Cause(ctx).(interruption) //nolint:errorlint // the cause is set below, unwrapped
	if ok {
		*i = cause
	}
	return ok
}

// interruptible ends the context at the first SIGINT or SIGTERM: the page in
// hand ends or rolls back. A second signal ends the process at once; the
// database rolls back what was open.
func interruptible(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for s := range signals {
			sig, ok := s.(syscall.Signal)
			if !ok {
				continue
			}
			if ctx.Err() != nil {
				os.Exit(128 + int(sig))
			}
			cancel(interruption{sig})
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}
