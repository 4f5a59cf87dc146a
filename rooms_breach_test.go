package xiaoqusync_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const ours = "github.com/xiaoqu-sync/xiaoqu-sync/"

// tree makes a small house: documented rooms, and the files given.
func tree(files map[string]string) fstest.MapFS {
	small := fstest.MapFS{}
	for _, name := range []string{"sync", "remote", "remote/remotetest", "mirror", "config", "cmd/xiaoqu-sync"} {
		small[name+"/doc.go"] = &fstest.MapFile{Data: []byte("// Package p is a room.\npackage p\n")}
	}
	for name, text := range files {
		small[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return small
}

func breaches(t *testing.T, files map[string]string) []string {
	t.Helper()
	parsed, err := parseTree(tree(files))
	if err != nil {
		t.Fatal(err)
	}
	return inspect(house(), parsed)
}

func imports(paths ...string) string {
	return "package p\n\nimport (\n\t" + strings.Join(paths, "\n\t") + "\n)\n"
}

func TestRoomsBreachIsNamed(t *testing.T) {
	quoted := func(room string) string { return `"` + ours + room + `"` }
	for name, test := range map[string]struct{ file, text, want string }{
		"forbidden door": {
			"sync/engine.go", imports(`"context"`, quoted("credentials")),
			`sync/engine.go:5: imports credentials; the doors of "sync" are: remote, mirror`,
		},
		"room without doors": {
			"config/a.go", imports(quoted("remote")),
			`config/a.go:4: imports remote; the doors of "config" are: none`,
		},
		"test tool in production": {
			"cmd/xiaoqu-sync/a.go", imports(quoted("mirror/localpg")),
			`cmd/xiaoqu-sync/a.go:4: imports mirror/localpg; the doors of "cmd/xiaoqu-sync" are: ` + doorsOf("cmd/xiaoqu-sync"),
		},
		"simulator that knows the client": {
			"remote/remotetest/a_test.go", imports(quoted("remote")),
			`remote/remotetest/a_test.go:4: imports remote; the doors of "remote/remotetest" are: remote/remotetest`,
		},
		"test beyond its doors": {
			"mirror/a_test.go", imports(quoted("sync")),
			`mirror/a_test.go:4: imports sync; the doors of "mirror" are: ` + doorsOf("mirror") + ", mirror, " + strings.Join(house().testTools, ", "),
		},
		"SQL outside mirror": {
			"sync/a.go", imports(`"github.com/jackc/pgx/v5/pgxpool"`),
			"sync/a.go:4: imports github.com/jackc/pgx/v5/pgxpool, which is confined to " + strings.Join(house().confined[0].rooms, ", "),
		},
		"SDK outside remote": {
			"remote/remotetest/a.go", imports(`"github.com/modelcontextprotocol/go-sdk/mcp"`),
			"remote/remotetest/a.go:4: imports github.com/modelcontextprotocol/go-sdk/mcp, which is confined to remote, agent/mcp",
		},
		"cron outside sync": {
			"config/a.go", imports(`cron "github.com/robfig/cron/v3"`),
			"config/a.go:4: imports github.com/robfig/cron/v3, which is confined to sync",
		},
		"the other sync in sync": {
			"sync/a_test.go", imports(`"sync"`),
			`sync/a_test.go:4: imports the standard library's "sync" inside the room sync, where the word means us; use errgroup or channels`,
		},
		"sync under another name": {
			"cmd/xiaoqu-sync/a.go", imports("engine " + quoted("sync")),
			"cmd/xiaoqu-sync/a.go:4: imports sync under the name engine; it is imported unaliased",
		},
		"room that is not drawn": {
			"util/doc.go", "// Package util is a room nobody drew.\npackage util\n",
			`util/doc.go:2: folder "util" is no room of the drawing in rooms_test.go`,
		},
		"init":              {"config/a.go", "package p\n\nfunc init() {}\n", "config/a.go:3: there is no init() in this house"},
		"long file":         {"config/a.go", "package p\n" + strings.Repeat("\n", 350), "config/a.go:1: the file has 351 lines, at most 350"},
		"long function":     {"config/a.go", "package p\n\nfunc f() {\n" + strings.Repeat("\n", 69) + "}\n", "config/a.go:3: f has 71 lines, at most 70"},
		"func uncommented":  {"config/a.go", "package p\n\nfunc F() {}\n", "config/a.go:3: F has no doc comment"},
		"const uncommented": {"config/a.go", "package p\n\nconst (\n\tA = 1\n)\n", "config/a.go:4: A has no doc comment"},
		"method uncommented": {
			"config/a.go", "package p\n\n// T is.\ntype T[K any] struct{}\n\nfunc (*T[K]) M() {}\n",
			"config/a.go:6: M has no doc comment",
		},
		"undocumented room": {"agent/a.go", "package p\n", `agent/a.go:1: the room "agent" has no doc.go with a package comment`},
	} {
		t.Run(name, func(t *testing.T) {
			got := breaches(t, map[string]string{test.file: test.text})
			if diff := cmp.Diff([]string{test.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRoomsWithinTheDrawingPass(t *testing.T) {
	got := breaches(t, map[string]string{
		"sync/a.go":               imports(`"sync/atomic"`, `"golang.org/x/sync/errgroup"`, `"`+ours+`remote"`, `"`+ours+`mirror"`),
		"sync/a_test.go":          imports(`"`+ours+`sync"`, `"`+ours+`remote/remotetest"`, `"`+ours+`mirror/localpg"`, `"github.com/jackc/pgx/v5"`),
		"mirror/a.go":             imports(`"sync"`, `"github.com/jackc/pgx/v5"`),
		"cmd/xiaoqu-sync/a.go":    imports(`"`+ours+`sync"`, `"`+ours+`config"`),
		"config/names.go":         "package p\n\n// The names.\nconst (\n\tA = 1\n\tB = 2\n)\n\ntype t int\n\nfunc (t) Exported() {}\n\n// E is.\ntype E struct{}\n\nfunc (E) Error() string { return \"\" }\n",
		"config/testdata/a/b.go":  imports(`"` + ours + `sync"`),
		"test/other/go.mod":       "module example.test/other\n",
		"test/other/main.go":      imports(`"github.com/hashicorp/vault/api"`),
		".tools/x/generated/a.go": "package broken",
		"config/long.go":          "package p\n\nfunc f() {\n" + strings.Repeat("\n", 68) + "}\n",
	})
	if len(got) > 0 {
		t.Errorf("breaches where there are none:\n%s", strings.Join(got, "\n"))
	}
}

// doorsOf is a room's doors as a breach names them.
func doorsOf(room string) string { return strings.Join(house().rooms[room].doors, ", ") }
