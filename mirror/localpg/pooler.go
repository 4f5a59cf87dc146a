package localpg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	// pooledVariable asks Main for a pooler, doorVariable tells where it is.
	pooledVariable = "XIAOQU_TEST_PGBOUNCER"
	doorVariable   = "XIAOQU_TEST_DOOR"
	poolerProgram  = "pgbouncer"
	poolerStart    = 20 * time.Second
)

// poolerConfig: every database of one server, in transaction mode. Nobody is asked
// for a password on loopback, whatever name is given; the rest is the program's
// default, so that what works here asks nothing special of an operator.
const poolerConfig = `[databases]
* = host=%s port=%s user=%s password=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 1000
`

// pooler is a running PgBouncer.
type pooler struct {
	home *home
	proc *process
	addr string
}

// Pooler starts a PgBouncer in transaction mode before the server of a database
// URL and returns the URL through it. It ends with the test. Where no PgBouncer is
// installed, ok is false.
func Pooler(t TB, target string) (through string, ok bool) {
	t.Helper()
	if _, err := exec.LookPath(poolerProgram); err != nil {
		return "", false
	}
	p, err := startPooler(target)
	if err != nil {
		t.Fatalf("localpg: pooler: %v", err)
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Fatalf("localpg: pooler: %v", err)
		}
	})
	return throughPooler(target, p.addr), true
}

// Door is the way to a database that the program under test should take: its URL
// itself, or through the pooler of Main when XIAOQU_TEST_PGBOUNCER is set.
func Door(target string) string {
	// Read here too: go test keeps results apart by the variables that tests read,
	// and Main is no test.
	if os.Getenv(pooledVariable) == "" {
		return target
	}
	return throughPooler(target, os.Getenv(doorVariable))
}

func throughPooler(target, addr string) string {
	u, err := url.Parse(target)
	if err != nil {
		return target // which then fails where it is used
	}
	u.Host = addr
	return u.String()
}

// mainPooled runs the tests, behind a pooler if that is wanted. One that is wanted
// and missing is a failure, so that nobody takes the direct way unawares.
func mainPooled(m interface{ Run() int }) int {
	if os.Getenv(pooledVariable) == "" || os.Getenv(doorVariable) != "" {
		return m.Run()
	}
	p, err := startPooler(os.Getenv(urlVariable))
	if err == nil {
		err = os.Setenv(doorVariable, p.addr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "localpg: pooler:", err)
		return 1
	}
	code := m.Run()
	if err := p.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "localpg: pooler:", err)
	}
	return code
}

func startPooler(target string) (*pooler, error) {
	ctx, cancel := context.WithTimeout(context.Background(), poolerStart)
	defer cancel()
	program, err := exec.LookPath(poolerProgram)
	if err != nil {
		return nil, err
	}
	parent := temporaryParent(false)
	acc, err := chooseAccount(ctx, filepath.Dir(program), parent, "")
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		h, err := newHome(parent, acc)
		if err != nil {
			return nil, err
		}
		p := &pooler{home: h}
		if err = p.launch(ctx, acc, program, target); err == nil {
			return p, nil
		}
		err = errors.Join(fmt.Errorf("%w\n%s", err, h.logTail()), p.stop())
		if try == startTries || ctx.Err() != nil {
			return nil, err
		}
	}
}

// launch starts the pooler on a free port and waits until it takes connections.
func (p *pooler) launch(ctx context.Context, acc account, program, target string) error {
	server, err := url.Parse(target)
	if err != nil {
		return err
	}
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	p.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	password, _ := server.User.Password()
	settings := fmt.Sprintf(poolerConfig, server.Hostname(), server.Port(), server.User.Username(), password, port)
	file := filepath.Join(p.home.dir, "pgbouncer.ini")
	if err := errors.Join(os.WriteFile(file, []byte(settings), 0o600), acc.own(file)); err != nil {
		return err
	}
	if p.proc, err = spawn(ctx, acc, p.home, program, []string{file}, syscall.SIGTERM); err != nil {
		return err
	}
	dialer := net.Dialer{}
	for {
		conn, err := dialer.DialContext(ctx, "tcp", p.addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.proc.done:
			return fmt.Errorf("it ended at once: %s", p.proc.cmd.ProcessState)
		case <-ctx.Done():
			return err
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (p *pooler) stop() error {
	var err error
	if p.proc != nil {
		err = p.proc.end(syscall.SIGTERM)
	}
	return errors.Join(err, p.home.remove())
}
