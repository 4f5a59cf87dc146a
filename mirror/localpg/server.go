package localpg

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	fastShutdown      = syscall.SIGINT
	immediateShutdown = syscall.SIGQUIT
	// logTail is how many bytes of the server's log an error carries.
	logTail = 2000
)

// process is one life of the server.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the server is gone
}

// launch starts the server and waits until it takes connections.
func (c *Cluster) launch(ctx context.Context) error {
	p, err := spawn(ctx, c.acc, c.home, filepath.Join(c.bin, "postgres"), c.arguments(), immediateShutdown)
	if err != nil {
		return err
	}
	if err := c.settle(ctx, p); err != nil {
		// The first error tells the story; a failure to end it adds nothing.
		_ = p.end(immediateShutdown)
		return fmt.Errorf("%w\n%s", err, c.home.logTail())
	}
	c.proc = p
	return nil
}

// spawn runs a server's program, which gets sig when we die. The kernel's death
// signal follows the thread that forked, so one locked goroutine starts the server
// and waits for its end. The server outlives the context of its start.
func spawn(ctx context.Context, acc account, h *home, program string, args []string, sig syscall.Signal) (*process, error) {
	log, err := os.OpenFile(h.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the server has its own copy
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, args...)
	cmd.Dir = h.dir
	cmd.Env = serverEnvironment(h.dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = acc.attributes(sig)

	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended stands in the log
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (c *Cluster) arguments() []string {
	settings := map[string]string{
		"listen_addresses":           "127.0.0.1",
		"port":                       strconv.Itoa(c.port),
		"unix_socket_directories":    c.home.socketDir(),
		"max_connections":            "200",
		"shared_buffers":             "64MB",
		"timezone":                   "UTC",
		"log_timezone":               "UTC",
		"dynamic_shared_memory_type": "posix",
	}
	if !c.opts.Durable {
		// Commits are still handed to the kernel one by one, so that a crash of
		// the server alone loses none of them.
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
		settings["checkpoint_timeout"] = "1h"
		settings["max_wal_size"] = "256MB"
	}
	maps.Copy(settings, c.opts.Settings)
	args := []string{"-D", c.data}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// settle waits for the first connection and sets the password of this cluster:
// the data may be a copy of a shared template or of an earlier life.
func (c *Cluster) settle(ctx context.Context, p *process) error {
	for {
		err := c.setPassword(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("the server ended at once: %s", p.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready: %w (last: %w)", ctx.Err(), err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (c *Cluster) setPassword(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.SocketURL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	// The password is hexadecimal text, so it needs no quoting of its own.
	_, err = conn.Exec(ctx, "ALTER ROLE "+superuser+" PASSWORD '"+c.password+"'")
	return err
}

// end signals the server and waits for it; one that does not obey is killed.
func (p *process) end(sig syscall.Signal) error {
	for _, s := range []syscall.Signal{sig, immediateShutdown, syscall.SIGKILL} {
		if err := p.cmd.Process.Signal(s); err != nil && p.running() {
			return err
		}
		select {
		case <-p.done:
			return nil
		case <-time.After(stopGrace):
		}
	}
	return fmt.Errorf("process %d does not end", p.cmd.Process.Pid)
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// choosePort takes a port that is free now.
func (c *Cluster) choosePort(ctx context.Context) error {
	c.port = c.opts.Port
	if c.port != 0 {
		return nil
	}
	var err error
	c.port, err = freePort(ctx)
	return err
}

func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("unexpected address %s", l.Addr())
	}
	return addr.Port, l.Close()
}

// serverEnvironment is ours without what would steer the server or its language.
func serverEnvironment(home string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "PG") || strings.HasPrefix(kv, "LC_") || strings.HasPrefix(kv, "XIAOQU_")
	})
	return append(env, "HOME="+home, "LC_ALL=C", "TZ=UTC")
}
