package localpg_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

func TestTheServerDiesWithItsParentAndItsDirectoryIsSwept(t *testing.T) {
	url, home := orphan(t)
	eventually(t, "the server is gone", func() bool {
		conn, err := pgx.Connect(limited(t), url)
		if err == nil {
			_ = conn.Close(t.Context())
		}
		return err != nil
	})

	start(t, localpg.Options{})
	if _, err := os.Stat(home); err != nil {
		t.Fatalf("a directory that is a moment old was swept: %v", err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(home, old, old); err != nil {
		t.Fatal(err)
	}
	alive := start(t, localpg.Options{})
	if err := os.Chtimes(filepath.Dir(alive.Dir()), old, old); err != nil {
		t.Fatal(err)
	}
	start(t, localpg.Options{})
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("the dead owner's directory is still there (%v)", err)
	}
	run(t, connect(t, alive.URL("postgres")), "SELECT 1")
}

// orphan starts a server in a child process and kills that process.
func orphan(t *testing.T) (url, home string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url, home, _ = strings.Cut(strings.TrimSpace(line), " ")
	run(t, connect(t, url), "SELECT 1")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return url, home
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-timeout:
			t.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}
