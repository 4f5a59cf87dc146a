package localpg

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const (
	superuser = "postgres"
	// stopGrace is how long a fast shutdown may take before it is made an
	// immediate one.
	stopGrace = 10 * time.Second
	// startTries bounds how often a start that chose its own port is repeated:
	// another process may have taken the port in between.
	startTries = 3
)

// Options say what kind of server to start. The zero value is right for tests.
type Options struct {
	// Dir keeps the data below it and reuses what an earlier server left there.
	// Empty: a temporary directory that Stop removes.
	Dir string
	// Durable keeps committed rows through a crash of the machine (fsync on) at
	// the price of slower commits.
	Durable bool
	// Port on loopback; 0 takes a free one.
	Port int
	// Settings are further server parameters, by name. They win over our own.
	Settings map[string]string
}

// Cluster is one running server. Its addresses stay the same through Kill and
// Restart. Kill, Restart and Stop are for one goroutine at a time; the other
// methods are for any.
type Cluster struct {
	opts     Options
	bin      string
	acc      account
	home     *home
	data     string
	port     int
	password string
	proc     *process // nil when not running
}

// Start brings up a server and returns when it takes connections. ctx bounds the
// start only; Stop ends the server. Where no PostgreSQL is installed it fetches
// a pinned build through the npm client once.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	sweep()
	c, err := prepare(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("localpg: start: %w", err)
	}
	for try := 1; ; try++ {
		err = c.choosePort(ctx)
		if err == nil {
			err = c.launch(ctx)
		}
		if err == nil {
			return c, nil
		}
		if o.Port != 0 || try == startTries || ctx.Err() != nil {
			return nil, fmt.Errorf("localpg: start: %w", errors.Join(err, c.Stop()))
		}
	}
}

// prepare finds the programs, the account and the directories, and makes the
// data directory unless there is one.
func prepare(ctx context.Context, o Options) (_ *Cluster, err error) {
	bin, err := findPrograms(ctx)
	if err != nil {
		return nil, err
	}
	parent := temporaryParent(o.Durable)
	data := ""
	if o.Dir != "" {
		if data, err = keptData(o.Dir); err != nil {
			return nil, err
		}
	}
	acc, err := chooseAccount(ctx, bin, parent, data)
	if err != nil {
		return nil, err
	}
	h, err := newHome(parent, acc)
	if err != nil {
		return nil, err
	}
	if data == "" {
		data = filepath.Join(h.dir, "data")
	}
	c := &Cluster{opts: o, bin: bin, acc: acc, home: h, data: data, password: randomText()}
	if err := c.ensureData(ctx); err != nil {
		return nil, errors.Join(err, h.remove())
	}
	return c, nil
}

// keptData is the data directory below a directory that the caller keeps.
func keptData(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return "", err
	}
	return filepath.Join(abs, "data"), nil
}

func (c *Cluster) ensureData(ctx context.Context) error {
	_, err := os.Stat(filepath.Join(c.data, "PG_VERSION"))
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return c.makeData(ctx)
}

// URL is the address of a database over loopback, with the password in it.
func (c *Cluster) URL(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, c.password),
		Host: "127.0.0.1:" + strconv.Itoa(c.port), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// SocketURL is the address of a database over the Unix socket, which asks for no
// password and which only the owner of the process can reach.
func (c *Cluster) SocketURL(database string) string {
	q := url.Values{"host": {c.home.socketDir()}, "port": {strconv.Itoa(c.port)}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + database, RawQuery: q.Encode()}
	return u.String()
}

// Dir is the server's data directory.
func (c *Cluster) Dir() string { return c.data }

// Port is the port on loopback.
func (c *Cluster) Port() int { return c.port }

// Kill crashes the server: every connection is cut, nothing is flushed, and the
// next Restart recovers from the log (what `pg_ctl stop -m immediate` does). The
// data stays. Killing a server that does not run does nothing.
func (c *Cluster) Kill() error {
	if c.proc == nil {
		return nil
	}
	p := c.proc
	c.proc = nil
	if err := p.end(immediateShutdown); err != nil {
		return fmt.Errorf("localpg: kill: %w", err)
	}
	return nil
}

// Restart starts the server again on the same data and port, after ending it
// cleanly if it still runs. It returns when the server takes connections.
func (c *Cluster) Restart(ctx context.Context) error {
	if err := c.halt(); err != nil {
		return fmt.Errorf("localpg: restart: %w", err)
	}
	if err := c.launch(ctx); err != nil {
		return fmt.Errorf("localpg: restart: %w", err)
	}
	return nil
}

// Stop ends the server and removes everything temporary; data under Options.Dir
// stays. A second Stop does nothing.
func (c *Cluster) Stop() error {
	if err := errors.Join(c.halt(), c.home.remove()); err != nil {
		return fmt.Errorf("localpg: stop: %w", err)
	}
	return nil
}

func (c *Cluster) halt() error {
	if c.proc == nil {
		return nil
	}
	p := c.proc
	c.proc = nil
	return p.end(fastShutdown)
}

func randomText() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails, see crypto/rand
	return hex.EncodeToString(b)
}
