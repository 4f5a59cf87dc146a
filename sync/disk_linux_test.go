package sync_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

func TestAFullDiskIsWaitedOutAndLosesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a small disk can only be mounted by root")
	}
	p, disk := newPrimary(t), t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no small disk could be mounted: %v", err)
	}
	t.Cleanup(func() { // the server would keep the disk busy
		if err := errors.Join(p.cluster.Stop(), syscall.Unmount(disk, 0)); err != nil {
			t.Error(err)
		}
	})
	uid, gid := owner(t, p.cluster.Dir())
	if err := os.Chown(disk, uid, gid); err != nil {
		t.Fatal(err)
	}
	p.hand(t, "create tablespace small location '"+disk+"'")
	p.hand(t, "alter table xiaoqu.users set tablespace small")
	for i, id := range p.xiaoqu.IDs("users") { // fat, so that each page needs more room
		p.xiaoqu.Edit("users", id, fmt.Sprintf(`{"note":%q}`, strings.Repeat(fmt.Sprint(i), 1500)[:1500]))
	}
	filler := filepath.Join(disk, "filler")
	lines := p.logged(t, logRetry)
	p.atPage(2, func() {
		if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("the disk is not full: %v", err)
		}
		go func() {
			await(t, lines, logRetry)
			if n := p.count(t, "select count(*) from xiaoqu.users"); n != 20 {
				t.Errorf("%d rows, want those of two pages", n)
			}
			if err := os.Remove(filler); err != nil {
				t.Error(err)
			}
		}()
	})
	o := p.run(t.Context(), "users")["users"]
	if o.Result != sync.Synced || o.Retries == 0 || o.Pages != 6 {
		t.Errorf("%s after %d pages and %d retries, %v", o.Result, o.Pages, o.Retries, o.Err)
	}
	p.equal(t, "users")
}
