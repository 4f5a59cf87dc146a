package sync_test

import (
	"os"
	"syscall"
	"testing"
)

// owner is whom a file belongs to.
func owner(t *testing.T, path string) (uid, gid int) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Skip("files have no owner here")
	}
	return int(st.Uid), int(st.Gid)
}
