package localpg

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// controlSize is the size in bytes of every cluster's control file; a template
// whose copy was torn by a power cut does not have it.
const controlSize = 8192

// makeData fills the data directory: from a template that an earlier start left
// in the user's cache, else by initdb, which then leaves one. Copying takes a
// tenth of the time. Durable data always comes from initdb, which flushes it.
func (c *Cluster) makeData(ctx context.Context) error {
	if c.opts.Durable {
		return c.initdb(ctx)
	}
	cache, err := cacheDir()
	if err != nil {
		return c.initdb(ctx) // a template saves time, it is not needed
	}
	template := filepath.Join(cache, "initdb-"+c.templateKey())
	lock, err := waitLock(ctx, template+".lock")
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		return c.initdb(ctx)
	}
	defer func() { _ = lock.Close() }()
	if info, err := os.Stat(filepath.Join(template, "global", "pg_control")); err == nil && info.Size() == controlSize {
		if err := copyTree(template, c.data); err != nil {
			return fmt.Errorf("copy template: %w", err)
		}
		return c.acc.ownAll(c.data)
	}
	if err := c.initdb(ctx); err != nil {
		return err
	}
	saveTemplate(c.data, template)
	return nil
}

func (c *Cluster) initdb(ctx context.Context) error {
	if err := os.Mkdir(c.data, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := c.acc.own(c.data); err != nil {
		return err
	}
	args := append([]string{"-D", c.data}, initdbArguments()...)
	if !c.opts.Durable {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "initdb"), args...)
	cmd.Dir = c.home.dir
	cmd.Env = serverEnvironment(c.home.dir)
	cmd.SysProcAttr = c.acc.attributes(syscall.SIGKILL)
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out[max(0, len(out)-logTail):])
	}
	return nil
}

// initdbArguments: the socket is guarded by its directory, loopback by a password, which is set at every start.
func initdbArguments() []string {
	return []string{
		"-U", superuser, "-E", "UTF8", "--locale=C", "--wal-segsize=1",
		"--auth-local=trust", "--auth-host=scram-sha-256",
	}
}

// templateKey changes with the programs and with how we call them.
func (c *Cluster) templateKey() string {
	h := sha256.New()
	_, _ = fmt.Fprint(h, c.bin, initdbArguments())
	if info, err := os.Stat(filepath.Join(c.bin, "postgres")); err == nil {
		_, _ = fmt.Fprint(h, info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// saveTemplate is best effort: without one the next start runs initdb again.
func saveTemplate(data, template string) {
	stage := template + ".new"
	if os.RemoveAll(stage) != nil || os.RemoveAll(template) != nil {
		return
	}
	if copyTree(data, stage) == nil {
		_ = os.Rename(stage, template)
	}
}

// copyTree copies directories and files; a fresh data directory has nothing else.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			err := os.Mkdir(target, 0o700)
			if rel == "." && errors.Is(err, fs.ErrExist) {
				return nil
			}
			return err
		}
		return copyFile(path, target)
	})
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
