package sync_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// TestARecordThatCannotBeStoredIsNotTakenForDeleted holds that a rebuild keeps
// the last good row of a record that upstream still has.
func TestARecordThatCannotBeStoredIsNotTakenForDeleted(t *testing.T) {
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	for name, bad := range map[string]string{
		"nested too deeply": `{"id":%s,"x":` + deep + `}`,
		"number too large":  `{"x":1e5000,"id":%s}`,
		"id as a string":    `{"x":1e5000,"id":"%s"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.xiaoqu.Seed(20, 0, 0)
			w.mustRun(t, "users")
			id := w.xiaoqu.IDs("users")[7]
			w.xiaoqu.PutRaw("users", id, fmt.Sprintf(bad, id))
			w.xiaoqu.PutRaw("users", "x", `{"name":"no id at all"}`)
			if o := w.task(t.Context(), (*sync.Engine).Verify, "users")["users"]; o.Result != sync.Verified {
				t.Errorf("verify: %s %+v, %v", o.Result, o.Difference, o.Err)
			}
			o := w.task(t.Context(), (*sync.Engine).Rebuild, "users")["users"]
			if o.Result != sync.Synced || o.Counts.Stored() != 0 || o.Counts.Quarantined != 2 || o.Counts.Unchanged != 19 {
				t.Fatalf("%+v, %v", o, o.Err)
			}
			if n := w.count(t, "select count(*) from xiaoqu.users_live"); n != 20 {
				t.Errorf("%d live rows, want 20", n)
			}
			if rows := w.read(t, "select record_id from xiaoqu_sync.quarantine where record_id is not null"); len(rows) != 1 || rows[0][0] != id {
				t.Errorf("quarantine names %v, want %s", rows, id)
			}
		})
	}
}
