package main

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

// build makes the real binary.
func build(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "xiaoqu-sync")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

func TestKilledAtTwentyRandomMomentsNothingIsLostOrDoubled(t *testing.T) {
	const kills, pages = 20, 60
	c := newCLI(t)
	c.xiaoqu.Seed(pages*200, 0, 0)
	c.xiaoqu.PageDelay(4 * time.Millisecond)
	binary := build(t)
	start := func() *exec.Cmd {
		cmd := exec.Command(binary, "sync", "users")
		cmd.Env = append(os.Environ(), c.env...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	for range kills {
		cmd := start()
		moment := time.NewTimer(30*time.Millisecond + rand.N(150*time.Millisecond))
		<-moment.C
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	cmd := start()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the run to the end: %v", err)
	}
	if fetched := c.xiaoqu.Stats().Pages["users"]; fetched > pages+1+2*kills {
		t.Errorf("%d pages fetched for %d and %d kills", fetched, pages, kills)
	}
	_, rows, err := localpg.Query(t.Context(), c.url, "select id, record->>'name' from xiaoqu.users_live")
	if err != nil {
		t.Fatal(err)
	}
	upstream := c.xiaoqu.Live("users")
	if len(rows) != len(upstream) {
		t.Fatalf("%d rows, upstream has %d", len(rows), len(upstream))
	}
	for _, row := range rows {
		var want struct{ Name string }
		if err := json.Unmarshal(upstream[row[0]], &want); err != nil || want.Name != row[1] {
			t.Fatalf("id %s: name %q, upstream %q (%v)", row[0], row[1], want.Name, err)
		}
	}
	_, open, err := localpg.Query(t.Context(), c.url, "select count(*) from xiaoqu_sync.runs where ended_at is null")
	if err != nil || open[0][0] != "0" {
		t.Errorf("runs left open: %v, %v", open, err)
	}
}
