package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// configured gives the installation a file beside its environment.
func (c *cli) configured(t *testing.T, yaml string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "xiaoqu-sync.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTypedColumnsFromSuggestionToView(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(5, 4, 30)
	c.must(t, "sync")
	yaml := c.must(t, "columns", "suggest", "contracts").out
	if !strings.Contains(yaml, "status: {path: $.status, type: text}") {
		t.Fatalf("suggested:\n%s", yaml)
	}
	file := c.configured(t, yaml+"  users:\n  properties:\n")
	c.must(t, "sync", "--config", file)
	if rows := c.read(t, "select count(*) from xiaoqu.contracts_live where status is not null"); rows[0][0] != "30" {
		t.Errorf("%v rows have a status", rows)
	}

	// One that misfits is null, and said; so is a path that leads nowhere.
	file = c.configured(t, "resources:\n  users:\n  contracts: {columns: {status: {path: $.status, type: integer}, state: {path: $.state, type: text}}}\n")
	if r := c.must(t, "migrate", "--config", file); !strings.Contains(r.out, "views of contracts") {
		t.Errorf("migrate:\n%s", r.out)
	}
	r := c.must(t, "status", "--config", file)
	for _, want := range []string{"30 values do not fit column status", "column state is null everywhere"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("status: no %q in\n%s", want, r.err)
		}
	}
}

func TestAColumnThatADependentViewNeedsIsNotTakenAway(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(2, 2, 2)
	old := c.configured(t, "resources: {contracts: {columns: {status: {path: $.status, type: text}}}}")
	c.must(t, "sync", "--config", old)
	c.read(t, "create view public.report as select status from xiaoqu.contracts_live")
	without := c.configured(t, "resources: {contracts: {}}")
	r := c.run(t, "migrate", "--config", without)
	if r.exit != exitUsage || !strings.Contains(r.err, "public.report stands on it") {
		t.Errorf("migrate: exit %d\n%s", r.exit, r.err)
	}
	// The mirror is kept all the same.
	if r := c.must(t, "sync", "--config", without); !strings.Contains(r.err, "public.report") {
		t.Errorf("sync does not warn:\n%s", r.err)
	}
	c.equal(t, "contracts")
}

func TestARunWithoutAFileKeepsColumnsAndMasks(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(2, 2, 2)
	file := c.configured(t, "resources: {users: {columns: {name: {path: $.name, type: text, index: true}}, masked: [$.mobile]}}")
	c.must(t, "migrate", "--config", file, "--masked", "--grant-reader", "pg_monitor")
	for _, args := range [][]string{{"sync"}, {"migrate"}, {"migrate", "--dry-run"}} {
		if r := c.must(t, args...); !strings.Contains(r.err, "--config") {
			t.Errorf("%v says nothing:\n%s", args, r.err)
		}
		const look = `select (select count(name) from xiaoqu.users_live), has_table_privilege('pg_monitor', 'xiaoqu.users_masked', 'select'),
			(select count(*) from pg_indexes where schemaname = 'xiaoqu' and tablename = 'users')`
		if rows := c.read(t, look); rows[0][0] != "2" || rows[0][1] != "t" || rows[0][2] != "3" {
			t.Errorf("after %v: names, grant, indexes: %v", args, rows[0])
		}
	}
	// A file that names neither is another matter.
	c.must(t, "sync", "--config", c.configured(t, "resources: {users: {}}"))
	if rows := c.read(t, "select to_regclass('xiaoqu.users_masked') is null"); rows[0][0] != "t" {
		t.Error("the masked view outlives a file without masks")
	}
}

func TestAMaskThatHidesNothingIsSaid(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(2, 2, 2)
	file := c.configured(t, "resources: {users: {masked: [$.mobile]}, contracts: {masked: [$.mobile, $.customer_mobile]}}\nagents: {reader_role: postgres}")
	c.must(t, "sync", "--config", file)
	for _, verb := range []string{"status", "agent check"} {
		r := c.run(t, append(strings.Fields(verb), "--config", file)...)
		said := r.out + r.err
		if n := strings.Count(said, "$.mobile"); n != 1 || strings.Contains(said, "$.customer_mobile") {
			t.Errorf("%s:\n%s", verb, said)
		}
	}
}

func TestColumnsThatAreWrongAreNamedWithTheirPlace(t *testing.T) {
	c := newCLI(t)
	file := c.configured(t, "resources:\n  contracts:\n    columns:\n      amount: {path: fee.amount, type: numeric}\n      id: {path: $.id, type: text}\n    masked: [mobile, $.id]\n")
	r := c.run(t, "config", "validate", "--config", file)
	for _, want := range []string{":4:", "a path begins with $", ":5:", "has a column id already", ":6:", "id is a column of every view"} {
		if r.exit != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("exit %d, no %q in\n%s", r.exit, want, r.err)
		}
	}
}

func TestReadersAreGranted(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Seed(1, 1, 1)
	file := c.configured(t, "resources: {users: {masked: [$.mobile]}}")
	if r := c.run(t, "migrate", "--grant-reader", "nobody_of_that_name"); r.exit != exitUsage {
		t.Errorf("exit %d\n%s", r.exit, r.err)
	}
	if r := c.run(t, "migrate", "--masked"); r.exit != exitUsage {
		t.Errorf("exit %d\n%s", r.exit, r.err)
	}
	if r := c.run(t, "migrate", "--masked", "--grant-reader", "pg_monitor"); r.exit != exitUsage || !strings.Contains(r.err, "masked") {
		t.Errorf("exit %d\n%s", r.exit, r.err)
	}
	if r := c.must(t, "migrate", "--config", file, "--masked", "--grant-reader", "pg_monitor"); !strings.Contains(r.out, "pg_monitor may read") {
		t.Errorf("%s", r.out)
	}
	if rows := c.read(t, "select has_table_privilege('pg_monitor', 'xiaoqu.users_masked', 'select'), has_table_privilege('pg_monitor', 'xiaoqu.users_live', 'select')"); rows[0][0] != "t" || rows[0][1] != "f" {
		t.Errorf("%v", rows)
	}
}

// outputSchema is what a remote could declare of contracts.changes.list.
const outputSchema = `{"type":"object","properties":{"request_id":{"type":"string"},"data":{"type":"object","properties":{"records":{"type":"array","items":{"$ref":"#/$defs/contract"}},
	"has_more":{"type":"boolean"}}}},"$defs":{"contract":{"type":"object","properties":{"id":{"type":["string","integer"]},"status":{"type":"string"},"amount":{"type":"number"},
	"ends":{"anyOf":[{"type":"string","format":"date"},{"type":"null"}]}}}}}`

func TestColumnsAreSuggestedFromWhatTheRemoteDeclares(t *testing.T) {
	c := newCLI(t)
	c.xiaoqu.Vary(func(v *remotetest.Variants) {
		v.OutputSchemas = map[string]json.RawMessage{"contracts.changes.list": json.RawMessage(outputSchema)}
	})
	lines := []string{"status: {path: $.status, type: text} # declared", "amount: {path: $.amount, type: numeric} # declared", "ends: {path: $.ends, type: date} # declared"}
	for _, state := range []string{"no table", "no record"} {
		yaml := c.must(t, "columns", "suggest", "contracts").out
		for _, want := range lines {
			if !strings.Contains(yaml, want) {
				t.Errorf("%s: no %q in\n%s", state, want, yaml)
			}
		}
		c.must(t, "sync")
	}
	c.xiaoqu.Seed(0, 1, 20)
	c.must(t, "sync")
	yaml := c.must(t, "columns", "suggest", "contracts").out
	for _, want := range []string{"status: {path: $.status, type: text} # 20 records", "ends: {path: $.ends, type: date} # declared"} {
		if !strings.Contains(yaml, want) {
			t.Errorf("no %q in\n%s", want, yaml)
		}
	}

	// Without the remote it is what is mirrored, and that is said.
	c.set("XIAOQU_OPEN_KEY", "xqok-of-another-system")
	r := c.must(t, "columns", "suggest", "contracts")
	if strings.Contains(r.out, "ends") || !strings.Contains(r.out, "status") || !strings.Contains(r.err, "could not be asked") {
		t.Errorf("%s%s", r.out, r.err)
	}
}
