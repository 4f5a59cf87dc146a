package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

// checksum is what readers see of a resource, in one text.
func (c *cli) checksum(t testing.TB, resource string) string {
	t.Helper()
	return fmt.Sprint(c.read(t, "select count(*), md5(string_agg(u::text || u.xmin, ',' order by id)) from xiaoqu."+resource+" u"))
}

func TestRebuildOfOneResourceLeavesTheOthersAlone(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(30, 20, 10)
	c.must(t, "sync")
	properties, contracts := c.checksum(t, "properties"), c.checksum(t, "contracts")
	c.xiaoqu.Edit("users", c.xiaoqu.IDs("users")[0], `{"name":"改"}`)
	c.must(t, "rebuild", "users")
	c.equal(t, "users")
	if c.checksum(t, "properties") != properties || c.checksum(t, "contracts") != contracts {
		t.Error("the other tables changed")
	}
}

func TestAnEmptyUpstreamIsHeldUntilItIsAccepted(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(1000, 2, 2)
	c.must(t, "sync")
	for _, id := range c.xiaoqu.IDs("users") {
		c.xiaoqu.Purge("users", id)
	}
	before := c.checksum(t, "users")
	r := c.run(t, "rebuild", "users", "--output", "json")
	if r.exit != exitHeld || r.envelope(t).Error.Code != "REBUILD_HELD" {
		t.Fatalf("exit %d\n%s%s", r.exit, r.out, r.err)
	}
	if r := c.run(t, "sync"); r.exit != exitHeld || !strings.Contains(r.err, "--accept-deletes") {
		t.Errorf("the next sync: exit %d\n%s%s", r.exit, r.out, r.err)
	}
	if c.checksum(t, "users") != before {
		t.Error("readers saw something of it")
	}
	if out := c.must(t, "status").out + c.must(t, "status").err; !strings.Contains(out, "held") || !strings.Contains(out, "1000") {
		t.Errorf("status:\n%s", out)
	}
	c.must(t, "rebuild", "users", "--accept-deletes")
	if live := c.read(t, "select count(*) from xiaoqu.users_live"); live[0][0] != "0" {
		t.Errorf("%s rows are live", live[0][0])
	}
	c.must(t, "sync")
}

func TestAHeldRebuildMayGoThroughWithoutItsDeletions(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(200, 2, 2)
	c.must(t, "sync")
	for _, id := range c.xiaoqu.IDs("users")[:100] {
		c.xiaoqu.Purge("users", id)
	}
	c.xiaoqu.Put("users", "neu", `{"name":"新"}`)
	if r := c.run(t, "rebuild", "users"); r.exit != exitHeld {
		t.Fatalf("exit %d\n%s%s", r.exit, r.out, r.err)
	}
	if r := c.run(t, "rebuild", "users", "--without-deletes", "--accept-deletes"); r.exit != exitUsage {
		t.Errorf("both at once: exit %d", r.exit)
	}
	if r := c.must(t, "rebuild", "users", "--without-deletes"); !strings.Contains(r.err, "stay live") {
		t.Errorf("nothing is said of the rows that stay:\n%s%s", r.out, r.err)
	}
	if live := c.read(t, "select count(*) from xiaoqu.users_live"); live[0][0] != "201" {
		t.Errorf("%s rows are live", live[0][0])
	}
	if r := c.must(t, "rebuild", "users", "--dry-run"); !strings.Contains(r.err, "--apply would be held: it marks 100 of 201 live rows") {
		t.Errorf("a dry run does not tell that its merge would be held:\n%s%s", r.out, r.err)
	}
	c.must(t, "rebuild", "users", "--abort")
	c.must(t, "sync")
	if r := c.run(t, "verify", "users"); r.exit != exitContract {
		t.Errorf("verify does not tell of the rows that stayed: exit %d", r.exit)
	}
}

func TestDryRunApplyAndVerifyInText(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(30, 2, 2)
	c.must(t, "sync")
	c.read(t, "update xiaoqu.users set content_hash = '', record = record || '{\"name\":\"damaged\"}' where id = '"+c.xiaoqu.IDs("users")[0]+"'")
	if r := c.run(t, "verify", "users"); r.exit != exitContract || !strings.Contains(r.out, "change rows") {
		t.Errorf("verify: exit %d\n%s%s", r.exit, r.out, r.err)
	}
	if out := c.must(t, "rebuild", "users", "--dry-run").out; !strings.Contains(out, "fields that differ: name (1)") {
		t.Errorf("dry run:\n%s", out)
	}
	c.must(t, "rebuild", "users", "--apply")
	c.must(t, "verify", "users")
	c.equal(t, "users")
}

func TestPurgeRemovesOldTombstonesOnRequestOnly(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(5, 0, 0)
	c.must(t, "sync", "users")
	c.xiaoqu.Delete("users", c.xiaoqu.IDs("users")[0])
	c.must(t, "sync", "users")
	c.read(t, "update xiaoqu.users set deleted_at = now() - interval '100 days', synced_at = now() - interval '91 days' where deleted_at is not null")
	var answer struct {
		Purged []struct{ Rows int }
	}
	if err := json.Unmarshal(c.must(t, "purge", "users", "--older-than", "90d", "-o", "json").envelope(t).Data, &answer); err != nil || answer.Purged[0].Rows != 1 {
		t.Errorf("%+v, %v", answer, err)
	}
	if n := c.read(t, "select count(*) from xiaoqu.users"); n[0][0] != "4" {
		t.Errorf("%s rows are left", n[0][0])
	}
	for _, wrong := range []string{"", "90", "1m", "-3d", "d"} {
		if r := c.run(t, "purge", "--older-than", wrong); r.exit != exitUsage {
			t.Errorf("--older-than %q: exit %d", wrong, r.exit)
		}
	}
	c.must(t, "sync", "users")
	c.equal(t, "users")
}

func TestRebuildRefusesWhatDoesNotGoTogether(t *testing.T) {
	c := newCLI(t)
	for _, args := range []string{"", "users --dry-run --apply", "users --abort --accept-deletes", "users --wait -1s", "nobody"} {
		if r := c.run(t, append([]string{"rebuild"}, strings.Fields(args)...)...); r.exit != exitUsage {
			t.Errorf("rebuild %s: exit %d\n%s", args, r.exit, r.err)
		}
	}
	c.must(t, "migrate")
	for _, args := range []string{"--apply", "--abort", "--accept-deletes"} {
		if r := c.run(t, "rebuild", "users", args); r.exit != exitUsage {
			t.Errorf("rebuild users %s: exit %d\n%s", args, r.exit, r.err)
		}
	}
	if out := c.must(t, "status", "users").out; strings.Contains(out, "last error") {
		t.Errorf("a request that does not fit is no error of the resource:\n%s", out)
	}
}

func TestARebuildSurvivesTenKillsAndACrashOfPostgreSQL(t *testing.T) {
	const kills, pages = 10, 40
	c := newCLI(t)
	cluster, err := localpg.Start(t.Context(), localpg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop() })
	c.url = cluster.URL("postgres")
	c.set("XIAOQU_DATABASE_URL", c.url)
	c.xiaoqu.Seed(pages*200, 0, 0)
	c.must(t, "sync", "users")
	for _, id := range c.xiaoqu.IDs("users")[:150] {
		c.xiaoqu.Purge("users", id)
	}
	c.xiaoqu.ExpireTokens("users")
	c.xiaoqu.PageDelay(10 * time.Millisecond)
	fetched := c.xiaoqu.Stats().Pages["users"]
	before := c.checksum(t, "users")
	binary := build(t)
	interrupted := 0
	for i := range kills {
		cmd := c.start(t, binary, "sync", "users")
		<-time.NewTimer(60*time.Millisecond + rand.N(60*time.Millisecond)).C
		if i == kills/2 {
			if err := cluster.Kill(); err != nil {
				t.Fatal(err)
			}
			// The run waits for the database, and is killed when it is back.
			if err := cluster.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if c.checksum(t, "users") == before {
			interrupted++
		}
	}
	if interrupted == 0 {
		t.Error("no kill came before the merge: the test shows nothing")
	}
	if err := c.start(t, binary, "sync", "users").Wait(); err != nil {
		t.Fatalf("the run to the end: %v", err)
	}
	c.equal(t, "users")
	// One page of the increment that expired, and the one that the last run asked for.
	if n := c.xiaoqu.Stats().Pages["users"] - fetched; n > pages+2*(kills+1)+2 {
		t.Errorf("%d pages fetched for %d and %d kills", n, pages, kills+1)
	}
	t.Logf("%d of %d kills came before the merge", interrupted, kills)
}
