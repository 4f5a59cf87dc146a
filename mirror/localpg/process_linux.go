package localpg

import "syscall"

// inNamespace is the user id that the server has inside a user namespace.
const inNamespace = 1000

// attributes make a program run as the account and get sig when we die.
func (a account) attributes(sig syscall.Signal) *syscall.SysProcAttr {
	// Its own process group keeps Ctrl-C on a terminal from reaching it first.
	attr := &syscall.SysProcAttr{Pdeathsig: sig, Setpgid: true}
	switch {
	case a.drop:
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	case a.namespace:
		attr.Cloneflags = syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: inNamespace, HostID: 0, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: inNamespace, HostID: 0, Size: 1}}
	}
	return attr
}

// memoryDir is a directory that lives in memory and its free space in bytes.
func memoryDir() (dir string, free uint64) {
	const shm = "/dev/shm"
	var st syscall.Statfs_t
	if err := syscall.Statfs(shm, &st); err != nil {
		return "", 0
	}
	return shm, st.Bavail * uint64(st.Bsize)
}
