package main

import (
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestADaemonKeepsTheMirrorUpToDate(t *testing.T) {
	binary := build(t)
	t.Parallel()
	c := newCLI(t)
	c.set("XIAOQU_LOG_LEVEL", "info")
	c.xiaoqu.Seed(300, 300, 300)
	p := c.daemon(t, binary, configured(t, "@every 1s", ""))
	p.logs(t, "run done", 9)
	id := c.xiaoqu.IDs("users")[0]
	c.xiaoqu.Edit("users", id, `{"name":"改名"}`)
	c.xiaoqu.Delete("contracts", c.xiaoqu.IDs("contracts")[0])
	n := c.rounds(t, "users")
	eventually(t, "two more rounds", func() bool { return c.rounds(t, "users") >= n+2 && c.rounds(t, "contracts") >= n+2 })
	if exit, took := p.stop(t, syscall.SIGTERM); exit != 143 || took > 3*time.Second {
		t.Errorf("exit %d after %v, want 143 at once", exit, took)
	}
	for _, r := range []string{"users", "properties", "contracts"} {
		c.equal(t, r)
	}
	if s := c.xiaoqu.Stats(); s.Handshakes != 1 || s.Ensures != 1 {
		t.Errorf("%d handshakes and %d tokens: the session was not kept", s.Handshakes, s.Ensures)
	}
}

func TestAnIdleDaemonIsSmall(t *testing.T) {
	binary := build(t)
	t.Parallel()
	c := newCLI(t)
	c.set("XIAOQU_LOG_LEVEL", "info")
	c.xiaoqu.Seed(3000, 3000, 3000)
	p := c.daemon(t, binary, configured(t, "@every 1s", ""))
	p.logs(t, "run done", 15)
	if mib := p.rss(t); mib > 40 {
		t.Errorf("%.1f MiB resident, want at most 40", mib)
	} else {
		t.Logf("%.1f MiB resident after a first sync of 9,000 records and some ticks", mib)
	}
}

func TestADaemonWaitsForItsDatabase(t *testing.T) {
	binary := build(t)
	t.Parallel()
	c := newCLI(t)
	c.xiaoqu.Seed(3, 3, 3)
	front := newDoor(t, c.url)
	p := c.daemon(t, binary, configured(t, "@every 1s", ""), "XIAOQU_DATABASE_URL="+front.URL())
	p.logs(t, "waiting to try again", 1)
	front.unlock(t)
	eventually(t, "a round once the database is there", func() bool {
		return c.migrated(t) && c.rounds(t, "users") > 0
	})
	front.shut(t)
	p.logs(t, "could not be used", 2)
	if n := strings.Count(p.log.String(), "ERROR\tthe database could not be used"); n != 1 {
		t.Errorf("an outage is an error once, and was %d times", n)
	}
	n := c.rounds(t, "users")
	front.unlock(t)
	eventually(t, "rounds after the outage", func() bool { return c.rounds(t, "users") > n })
	if exit, _ := p.stop(t, syscall.SIGINT); exit != 130 {
		t.Errorf("exit %d, want 130", exit)
	}
}

func TestWhatOnlyAPersonCanMendEndsTheStart(t *testing.T) {
	c := newCLI(t)
	c.must(t, "migrate")
	login, err := url.Parse(c.url)
	if err != nil {
		t.Fatal(err)
	}
	login.User = url.UserPassword("nobody_here", "x")
	cases := map[string]struct {
		env, code string
		exit      int
	}{
		"a setting that is none":   {"XIAOQU_REQUEST_TIMEOUT=soon", "CONFIG_INVALID", 2},
		"a key that cannot be one": {"XIAOQU_OPEN_KEY=with space in it", "KEY_INVALID", 2},
		"a login that is refused":  {"XIAOQU_DATABASE_URL=" + login.String(), "DATABASE_REFUSED", 2},
	}
	for name, k := range cases {
		t.Run(name, func(t *testing.T) {
			other := *c
			other.env = append(append([]string{}, c.env...), k.env)
			r := other.run(t, "run", "--output", "json")
			if code := r.envelope(t).Error.Code; r.exit != k.exit || code != k.code {
				t.Errorf("exit %d %s, want %d %s\n%s", r.exit, code, k.exit, k.code, r.err)
			}
		})
	}
}

func TestASchemaOfALaterReleaseEndsTheDaemonAtAnyTime(t *testing.T) {
	binary := build(t)
	t.Parallel()
	c := newCLI(t)
	c.xiaoqu.Seed(3, 3, 3)
	path := configured(t, "@every 1s", "")
	p := c.daemon(t, binary, path)
	eventually(t, "a round", func() bool { return c.migrated(t) && c.rounds(t, "users") > 0 })
	c.read(t, "insert into xiaoqu_sync.migrations (version_id, is_applied) values (9999, true)")
	for _, when := range []string{"at work", "at the start"} {
		<-p.ended
		if exit := p.ProcessState.ExitCode(); exit != 10 {
			t.Errorf("%s: exit %d, want 10", when, exit)
		}
		p = c.daemon(t, binary, path)
	}
}

func TestRefusedCredentialsAreTriedAtTheNextMomentOnly(t *testing.T) {
	binary := build(t)
	t.Parallel()
	c := newCLI(t)
	c.set("XIAOQU_LOG_LEVEL", "info")
	c.xiaoqu.Seed(3, 3, 3)
	c.set("XIAOQU_OPEN_KEY", "xqok-rotated-long-ago")
	p := c.daemon(t, binary, configured(t, "@every 2s", ""))
	p.logs(t, "run still fails", 6)
	ensures := c.xiaoqu.Stats().Calls["ensure"]
	if n := strings.Count(p.log.String(), "run failed"); n != 3 {
		t.Errorf("three resources, and %d errors", n)
	}
	if ensures > 6 {
		t.Errorf("%d exchanges in three moments", ensures)
	}
	c.xiaoqu.RotateKey("xqok-rotated-long-ago")
	eventually(t, "a round with the key that is valid again", func() bool { return c.rounds(t, "users") > 0 })
}

func TestHangupReadsTheConfigurationAgain(t *testing.T) {
	binary := build(t)
	t.Parallel()
	c := newCLI(t)
	c.env = c.env[:len(c.env)-1] // the level comes from the file here
	c.xiaoqu.Seed(3, 3, 3)
	path := configured(t, "@every 24h", "log: {level: info}\n")
	p := c.daemon(t, binary, path)
	p.logs(t, "run done", 3)

	rewrite(t, path, "whenever", "log: {level: debug}\n")
	_ = p.Process.Signal(syscall.SIGHUP)
	p.logs(t, "the configuration is refused; the one in force stays", 1)
	if strings.Contains(p.log.String(), "DEBUG") {
		t.Error("a refused configuration changed the log level")
	}

	rewrite(t, path, "@every 1s", "  payments: {}\npage_limit: 10\nlog: {level: debug}\n")
	_ = p.Process.Signal(syscall.SIGHUP)
	p.logs(t, "wait for a restart", 1)
	p.logs(t, "DEBUG", 1)
	if text := p.log.String(); !strings.Contains(text, `"settings": ["page_limit", "resources"]`) {
		t.Error("page_limit and the new resource are not named as what waits for a restart")
	}
	n := c.rounds(t, "users")
	eventually(t, "rounds by the new schedule", func() bool { return c.rounds(t, "users") >= n+3 })
}

func TestThreeReplicasShareTheWorkAndOutliveEachOther(t *testing.T) {
	c := newCLI(t)
	c.set("XIAOQU_LOG_LEVEL", "info")
	c.xiaoqu.Seed(50, 50, 50)
	binary, path := build(t), configured(t, "@every 1s", "")
	var ps []*process
	for range 3 {
		ps = append(ps, c.daemon(t, binary, path))
	}
	eventually(t, "the first rounds", func() bool {
		return c.migrated(t) && c.rounds(t, "users") > 2
	})
	began, before := time.Now(), c.rounds(t, "users")
	eventually(t, "four more rounds", func() bool { return c.rounds(t, "users") >= before+4 })
	if most := 2 + int(time.Since(began)/time.Second); c.rounds(t, "users")-before > most {
		t.Errorf("%d rounds in %v at one each second: replicas do each other's work", c.rounds(t, "users")-before, time.Since(began))
	}
	for _, p := range ps[:2] {
		_ = p.Process.Kill()
		<-p.ended
		killed, n := time.Now(), c.rounds(t, "users")
		eventually(t, "a round by who is left", func() bool { return c.rounds(t, "users") > n })
		if took := time.Since(killed); took > 4*time.Second {
			t.Errorf("%v passed until another took over, and the period is 1s", took)
		}
	}
	c.xiaoqu.Edit("users", c.xiaoqu.IDs("users")[0], `{"name":"改名"}`)
	n := c.rounds(t, "users")
	eventually(t, "the change's round", func() bool { return c.rounds(t, "users") >= n+2 })
	ps[2].stop(t, syscall.SIGTERM)
	c.equal(t, "users")
	for _, p := range ps {
		if strings.Contains(p.log.String(), "stepping aside") {
			t.Error("a replica speaks of stepping aside at level info")
		}
	}
}
