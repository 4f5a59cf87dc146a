package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

func TestQuarantineIsListedReplayedAndDropped(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(2, 0, 0)
	c.xiaoqu.PutRaw("users", "x", `{"name":"no id"}`)
	c.xiaoqu.PutRaw("users", "y", `{"id":"y","name":"a\u0000b"}`)
	c.must(t, "sync", "users")

	var listed struct{ Records []mirror.Quarantined }
	r := c.must(t, "quarantine", "list", "users", "--raw", "--limit", "2", "-o", "json")
	if err := json.Unmarshal(r.envelope(t).Data, &listed); err != nil || len(listed.Records) != 2 || string(listed.Records[0].Raw) != `{"name":"no id"}` {
		t.Fatalf("%v: %s", err, r.out)
	}
	if !strings.Contains(r.out, "--after") {
		t.Errorf("a full part does not say how to go on: %s", r.out)
	}
	if out := c.must(t, "quarantine", "list").out; !strings.Contains(out, "no id") || strings.Contains(out, `"name"`) {
		t.Errorf("the list in text:\n%s", out)
	}

	// An older release could not store it.
	c.read(t, "update xiaoqu_sync.quarantine set kind = 'refused', raw = '{\"id\":\"new\"}', raw_length = 12, record_id = 'new' where record_id = 'y'")
	if out := c.must(t, "quarantine", "replay").out; !strings.Contains(out, "users") {
		t.Errorf("replay:\n%s", out)
	}
	if n := c.read(t, "select count(*) from xiaoqu.users where id = 'new'"); n[0][0] != "1" {
		t.Error("what can be stored now is not in the mirror")
	}

	if out := c.must(t, "quarantine", "drop", "--all").out; !strings.Contains(out, "users: 1 records dropped") {
		t.Errorf("drop:\n%s", out)
	}
	if out := c.must(t, "quarantine", "list").out; out != "nothing is in quarantine\n" {
		t.Errorf("%q", out)
	}
	c.must(t, "sync", "users")
}

func TestQuarantineRefusesWhatDoesNotGoTogether(t *testing.T) {
	c := newCLI(t)
	c.must(t, "migrate")
	for _, args := range []string{
		"quarantine lists", "quarantine drop", "quarantine drop --all --id 1", "quarantine list --kind bad",
		"quarantine list --limit 10001", "quarantine list --raw", "quarantine replay nothing",
	} {
		if r := c.run(t, strings.Fields(args)...); r.exit != exitUsage {
			t.Errorf("%s: exit %d\n%s%s", args, r.exit, r.out, r.err)
		}
	}
}
