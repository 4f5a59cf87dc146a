package localpg

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	homePrefix = "xiaoqu-pg-"
	// newborn is the age below which a directory is never swept: its owner may
	// not hold the lock yet.
	newborn = time.Minute
	// memoryNeeded is the free space in bytes from which data lives in memory.
	memoryNeeded = 512 << 20
)

// home is the temporary directory of one cluster: socket, log and, unless the
// caller keeps it elsewhere, the data.
type home struct {
	dir  string
	lock *os.File // held as long as the owner lives
}

// temporaryParent is where a home is made: in memory when there is room and
// nobody asked for durability.
func temporaryParent(durable bool) string {
	if dir, free := memoryDir(); !durable && free > memoryNeeded {
		return dir
	}
	return os.TempDir()
}

func newHome(parent string, acc account) (_ *home, err error) {
	dir, err := os.MkdirTemp(parent, homePrefix)
	if err != nil {
		return nil, err
	}
	h := &home{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.remove())
		}
	}()
	if h.lock, err = tryLock(h.lockFile()); err != nil {
		return nil, err
	}
	// The account has to pass through; only what is its own it may list.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, err
	}
	if err := os.Mkdir(h.socketDir(), 0o700); err != nil {
		return nil, err
	}
	return h, acc.own(h.socketDir())
}

func (h *home) socketDir() string { return filepath.Join(h.dir, "run") }
func (h *home) logFile() string   { return filepath.Join(h.dir, "server.log") }
func (h *home) lockFile() string  { return filepath.Join(h.dir, "owner") }

// logTail is the end of the server's log, for an error.
func (h *home) logTail() string {
	b, err := os.ReadFile(h.logFile())
	if err != nil {
		return ""
	}
	return string(b[max(0, len(b)-logTail):])
}

func (h *home) remove() error {
	err := os.RemoveAll(h.dir)
	if h.lock != nil {
		err = errors.Join(err, h.lock.Close())
		h.lock = nil
	}
	return err
}

// sweep removes what dead owners left behind. It is a courtesy: what it cannot
// remove it leaves.
func sweep() {
	parents := []string{os.TempDir()}
	if dir, _ := memoryDir(); dir != "" {
		parents = append(parents, dir)
	}
	for _, parent := range parents {
		found, err := filepath.Glob(filepath.Join(parent, homePrefix+"*"))
		if err != nil {
			continue
		}
		for _, dir := range found {
			sweepHome(dir)
		}
	}
}

func sweepHome(dir string) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || time.Since(info.ModTime()) < newborn {
		return
	}
	// In a directory of someone else the lock file could be anything.
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return
	}
	h := &home{dir: dir}
	if h.lock, err = tryLock(h.lockFile()); err != nil {
		return // alive
	}
	_ = h.remove()
}
