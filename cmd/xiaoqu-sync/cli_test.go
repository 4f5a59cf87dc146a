package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

func TestMain(m *testing.M) {
	exit := localpg.Main(m)
	_ = os.RemoveAll(binaryDir())
	os.Exit(exit)
}

// golden rewrites the files of testdata with what the program says now.
func golden() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

// The flag belongs to the test binary alone.
var _ = flag.Bool("update", false, "rewrite the golden files")

// cli is an operator: a remote, a database, an environment, and the program.
type cli struct {
	xiaoqu *remotetest.Server
	url    string
	env    []string
}

func newCLI(t testing.TB, change ...func(*remotetest.Options)) *cli {
	t.Helper()
	o := remotetest.Options{Strict: true, Seed: 7}
	for _, f := range change {
		f(&o)
	}
	c := &cli{xiaoqu: remotetest.Start(t, o), url: localpg.Database(t)}
	c.env = []string{
		"XIAOQU_HTTP_LISTEN=",
		"XIAOQU_BASE_URL=" + c.xiaoqu.URL(), "XIAOQU_SERVICE_NAME=crm", "XIAOQU_OPEN_KEY=" + c.xiaoqu.Key(),
		"XIAOQU_DATABASE_URL=" + localpg.Door(c.url), "XIAOQU_LOG_LEVEL=warn",
	}
	return c
}

// set changes one variable of the environment.
func (c *cli) set(name, value string) { c.env = append(c.env, name+"="+value) }

type ran struct {
	exit     int
	out, err string
}

func (c *cli) run(t testing.TB, args ...string) ran {
	t.Helper()
	var out, errOut bytes.Buffer
	exit := run(t.Context(), args, c.env, &out, &errOut)
	return ran{exit, out.String(), errOut.String()}
}

// must runs where exit 0 is expected.
func (c *cli) must(t testing.TB, args ...string) ran {
	t.Helper()
	r := c.run(t, args...)
	if r.exit != 0 {
		t.Fatalf("xiaoqu-sync %s: exit %d\n%s%s", strings.Join(args, " "), r.exit, r.out, r.err)
	}
	return r
}

// wire is the envelope as a script reads it.
type wire struct {
	OK    bool
	Data  json.RawMessage
	Error struct {
		Code, Message string
		Retryable     bool
		Suggestions   []string
		RequestID     string `json:"request_id"`
		Details       json.RawMessage
	}
	Meta struct {
		SchemaVersion string `json:"schema_version"`
	}
}

func (r ran) envelope(t testing.TB) wire {
	t.Helper()
	var w wire
	if err := json.Unmarshal([]byte(r.out), &w); err != nil {
		t.Fatalf("standard output is not one JSON value: %v\n%s", err, r.out)
	}
	return w
}

// volatile is what differs from run to run, and what stands for it.
func volatile() []struct{ what, with string } {
	return []struct{ what, with string }{
		{`op-[0-9a-f]{16}`, "op-0000000000000000"},
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`, "2026-01-01T00:00:00Z"},
		{`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`, "2026-01-01 00:00:00Z"},
		{`"(seconds|age_seconds)": [0-9.e-]+`, `"$1": 0`},
		{`"pid": \d+`, `"pid": 1`},
		{`"host": "[^"]*"`, `"host": "host"`},
		{`req-\d+`, "req-0"},
		{`127\.0\.0\.1:\d+`, "127.0.0.1:1"},
		{`test_[0-9a-z]+`, "test_db"},
		{`PostgreSQL [0-9][^"]*`, "PostgreSQL 15"},
	}
}

// sameAsGolden compares with a file of testdata, after taking out what is
// different every time.
func sameAsGolden(t testing.TB, name, got string) {
	t.Helper()
	for _, v := range volatile() {
		got = regexp.MustCompile(v.what).ReplaceAllString(got, v.with)
	}
	path := filepath.Join("testdata", name)
	if golden() {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", path, diff)
	}
}
