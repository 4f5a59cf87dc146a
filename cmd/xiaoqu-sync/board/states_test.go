package board_test

import (
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

// well is a mirror with nothing to say about it.
func well(t testing.TB) world {
	w := newWorld(t)
	for _, r := range resources() {
		w.synced(t, r, records(0, 40))
	}
	return w
}

// troubled has one resource of each kind of trouble.
func troubled(t testing.TB) world {
	w := newWorld(t)
	w.holdBack(t, "users")
	w.synced(t, "properties", append(records(0, 1234), []byte(`{"name":"`+canary+`"}`), []byte(`[]`), []byte(`{"id":"x","name":"\u0000"}`)))
	w.failed(t, "properties", "failed", "RATE_LIMITED")
	w.working(t, "contracts")
	return w
}

// nobody is a mirror whose database is away.
func nobody(t testing.TB) *mirror.Mirror {
	return open(t, "postgres://someone:"+canary+"@127.0.0.1:1/nowhere?sslmode=disable")
}

// canary stands where no page may look: in records, texts of errors, passwords.
const canary = "canary-7f3a-13912345678"

// state is one that a page must tell, in both languages.
type state struct {
	name  string
	bring func(t *testing.T, w world)
	en    []string
	zh    []string
}

func states() []state {
	return []state{
		{
			"fresh", func(*testing.T, world) {},
			[]string{"Worth a look", "Not as it should be: 3 of 3", "users Not complete yet", "There was no run yet."},
			[]string{"请留意", "users 尚不完整", "还没有运行过。"},
		},
		{
			"well", func(t *testing.T, w world) {
				for _, r := range resources() {
					w.synced(t, r, records(0, 1234))
				}
			},
			[]string{"All is well", "the oldest data is 2 min old", "1,234", "in 4 min", "Time per run, last 40"},
			[]string{"一切正常", "数据距今 2 分钟", "4 分钟后"},
		},
		{
			"running", func(t *testing.T, w world) { w.working(t, "users") },
			[]string{"At work", "sync-7d9f-x2x · 1", "at work", "first sync"},
			[]string{"同步中", "进行中", "首次同步"},
		},
		{
			"held", func(t *testing.T, w world) { w.holdBack(t, "users") },
			[]string{"Action needed", "it would delete 90 of 150 rows", "u-0060", "u-0069", "xiaoqu-sync rebuild users --accept-deletes"},
			[]string{"需要处理", "它将删除 90 行（共 150 行）"},
		},
		{
			"quarantined", func(t *testing.T, w world) {
				for _, r := range resources() {
					w.synced(t, r, append(records(0, 3), []byte(`{}`), []byte(`[]`)))
				}
			},
			[]string{"All is well", "In quarantine 2", "no id refused 1", "not a JSON object refused 1"},
			[]string{"隔离记录 2", "拒收"},
		},
		{
			"failed for good", func(t *testing.T, w world) { w.failed(t, "users", "failed", "PERMISSION_DENIED") },
			[]string{"Action needed", "The last run failed (PERMISSION_DENIED)", "ask the Xiaoqu administrator", "r_abc123"},
			[]string{"需要处理", "请联系小趣管理员"},
		},
		{
			"failed for now", func(t *testing.T, w world) { w.failed(t, "users", "failed", "RATE_LIMITED") },
			[]string{"Worth a look", "The last run failed (RATE_LIMITED). The next one tries again."},
			[]string{"请留意", "下次会自动重试"},
		},
		{
			"late", func(t *testing.T, w world) {
				w.synced(t, "users", records(0, 3))
				w.exec(t, "update xiaoqu_sync.state set last_success_at = now() - interval '26 hours 5 minutes'")
			},
			[]string{"Action needed", "No complete round for 1 d 2 h; 1 h is allowed."},
			[]string{"已有 1 天 2 小时 没有完成一轮同步"},
		},
	}
}
