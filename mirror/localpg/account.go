package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is who the server runs as. The zero value is the process's own user.
type account struct {
	name      string // for messages
	uid, gid  uint32
	drop      bool // run as uid and gid instead of root
	namespace bool // run as an ordinary user inside a user namespace
}

// chooseAccount decides who may run the server. bin, parent and data are what it
// has to reach; data may be empty or not exist yet.
func chooseAccount(ctx context.Context, bin, parent, data string) (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	if data != "" {
		// Existing data belongs to whoever ran it before.
		if a, ok := ownerOf(data); ok {
			return a, nil
		}
		parent = filepath.Dir(data)
	}
	for _, name := range []string{"postgres", "nobody"} {
		a, err := lookup(name)
		if err == nil && a.reaches(bin) && a.reaches(parent) {
			return a, nil
		}
	}
	a := account{namespace: true}
	probe := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version")
	probe.SysProcAttr = a.attributes(syscall.SIGKILL)
	if err := probe.Run(); err != nil {
		return account{}, fmt.Errorf("PostgreSQL refuses to run as root, and no other account reaches both %s and %s; run as an ordinary user or make them reachable (%w)", bin, parent, err)
	}
	return a, nil
}

func ownerOf(path string) (account, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return account{}, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return account{}, false
	}
	if st.Uid == 0 {
		return account{namespace: true}, true
	}
	return account{name: strconv.Itoa(int(st.Uid)), uid: st.Uid, gid: st.Gid, drop: true}, true
}

func lookup(name string) (account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return account{}, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return account{}, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return account{}, err
	}
	return account{name: name, uid: uint32(uid), gid: uint32(gid), drop: true}, nil
}

// reaches says whether the account may pass through a directory and all above it.
func (a account) reaches(dir string) bool {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for {
		info, err := os.Stat(dir)
		if err != nil || !a.passes(info) {
			return false
		}
		up := filepath.Dir(dir)
		if up == dir {
			return true
		}
		dir = up
	}
}

func (a account) passes(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	mode := info.Mode().Perm()
	switch {
	case st.Uid == a.uid:
		return mode&0o100 != 0
	case st.Gid == a.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

// own gives one file or directory to the account.
func (a account) own(path string) error {
	if !a.drop {
		return nil
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}

// ownAll gives a whole tree to the account.
func (a account) ownAll(root string) error {
	if !a.drop {
		return nil
	}
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, a.own(path))
	})
}
