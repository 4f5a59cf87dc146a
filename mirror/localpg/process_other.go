//go:build unix && !linux

package localpg

import "syscall"

// attributes make a program run as the account. Only Linux can tie its life to
// ours and has user namespaces: without them root needs an account to drop to.
func (a account) attributes(syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a.drop {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}

// memoryDir: there is no directory in memory to rely on.
func memoryDir() (dir string, free uint64) { return "", 0 }
