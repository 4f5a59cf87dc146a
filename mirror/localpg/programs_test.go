package localpg

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// programs makes directories that look like installed servers.
func programs(t *testing.T, dirs ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range dirs {
		for _, name := range []string{"initdb", "postgres"} {
			write(t, filepath.Join(root, dir, name), "#!/bin/sh\n", 0o755)
		}
	}
	return root
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestInstalledPrefersPathThenTheNewestVersion(t *testing.T) {
	root := programs(t, "lib/9/bin", "lib/15/bin", "lib/16/bin", "mine/bin")
	write(t, filepath.Join(root, "lib/17/bin/initdb"), "no server beside it", 0o755)
	write(t, filepath.Join(root, "half/initdb"), "no server beside it", 0o755)
	if err := os.MkdirAll(filepath.Join(root, "links"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"initdb", "postgres"} {
		if err := os.Symlink(filepath.Join(root, "lib/15/bin", name), filepath.Join(root, "links", name)); err != nil {
			t.Fatal(err)
		}
	}
	pattern := []string{filepath.Join(root, "lib/*/bin")}
	for name, tt := range map[string]struct {
		path     string
		patterns []string
		want     string
	}{
		"on PATH":                       {path: "/nowhere:" + root + "/mine/bin", patterns: pattern, want: "mine/bin"},
		"a link on PATH is followed":    {path: root + "/links", patterns: pattern, want: "lib/15/bin"},
		"initdb alone is not enough":    {path: root + "/half", patterns: pattern, want: "lib/16/bin"},
		"newest by number, not by text": {patterns: pattern, want: "lib/16/bin"},
		"nothing":                       {path: "/nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := installed(tt.path, tt.patterns)
			if ok != (tt.want != "") {
				t.Fatalf("found %v (%s)", ok, got)
			}
			if ok && got != filepath.Join(root, tt.want) {
				t.Errorf("got %s, want %s below the root", got, tt.want)
			}
		})
	}
}

func TestTheNamedDirectoryIsTakenOrRefused(t *testing.T) {
	root := programs(t, "bin")
	t.Setenv(binDirVariable, filepath.Join(root, "bin"))
	if got, err := findPrograms(t.Context()); err != nil || got != filepath.Join(root, "bin") {
		t.Errorf("got %s, %v", got, err)
	}
	t.Setenv(binDirVariable, root)
	if _, err := findPrograms(t.Context()); err == nil || !strings.Contains(err.Error(), binDirVariable) {
		t.Errorf("error %v does not name the variable", err)
	}
}

func TestPackedNameReadsBothForms(t *testing.T) {
	for in, want := range map[string]string{
		`[{"filename":"a-1.tgz"}]`:            "a-1.tgz",
		`{"a@1":{"filename":"a-1.tgz"}}`:      "a-1.tgz",
		`[]`:                                  "",
		`[{"filename":""}]`:                   "",
		`{}`:                                  "",
		`npm ERR! code E404`:                  "",
		`[{"filename":"a"},{"filename":"b"}]`: "",
	} {
		got, err := packedName([]byte(in))
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v", in, got, err)
		}
	}
}

// archive is a package as npm packs it, and its sha512.
func archive(t *testing.T, files map[string]string) (path, sha string) {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	tw := tar.NewWriter(gz)
	for name, text := range files {
		if err := tw.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "package.tgz")
	write(t, path, b.String(), 0o600)
	sum := sha512.Sum512(b.Bytes())
	return path, base64.StdEncoding.EncodeToString(sum[:])
}

func TestUnpackTakesTheServerAndMakesItsLinks(t *testing.T) {
	path, sha := archive(t, map[string]string{
		"package/package.json":              "{}",
		"package/native/bin/postgres":       "server",
		"package/native/lib/libx.so.1.2":    "library",
		"package/native/../../escape":       "out",
		"package/native/pg-symlinks.json":   `[{"source":"native/lib/libx.so.1.2","target":"native/lib/libx.so.1"}]`,
		"elsewhere/native/bin/not-this-one": "no",
	})
	to := filepath.Join(t.TempDir(), "pg")
	if err := unpack(path, sha, to); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range []string{"bin/postgres", "lib/libx.so.1", "../escape", "../../escape", "bin/not-this-one", "package.json"} {
		if b, err := os.ReadFile(filepath.Join(to, name)); err == nil {
			got[name] = string(b)
		}
	}
	want := map[string]string{"bin/postgres": "server", "lib/libx.so.1": "library"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUnpackRefuses(t *testing.T) {
	good, goodSHA := archive(t, map[string]string{"package/native/pg-symlinks.json": "[]"})
	out, outSHA := archive(t, map[string]string{"package/native/pg-symlinks.json": `[{"source":"native/../../../etc/passwd","target":"native/x"}]`})
	for name, tt := range map[string]struct{ path, sha, want string }{
		"another hash":          {good, outSHA, "pinned"},
		"a link that leads out": {out, outSHA, "leads out"},
		"a missing archive":     {good + "x", goodSHA, "no such file"},
		"no list of links, so no package": func() struct{ path, sha, want string } {
			p, s := archive(t, map[string]string{"package/native/bin/x": ""})
			return struct{ path, sha, want string }{p, s, "pg-symlinks.json"}
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			err := unpack(tt.path, tt.sha, filepath.Join(t.TempDir(), "pg"))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestALockIsHeldByOneAndEndsWithItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := tryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tryLock(path); !errors.Is(err, errLocked) {
		t.Fatalf("second lock: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := waitLock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("waited: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := waitLock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}

// ownCache gives the test a cache that it may damage.
func ownCache(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CACHE_HOME", dir)
}

func TestATornTemplateIsReplaced(t *testing.T) {
	ownCache(t)
	c, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	cache, err := cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	control := filepath.Join(cache, "initdb-"+c.templateKey(), "global", "pg_control")
	if err := os.Truncate(control, 0); err != nil {
		t.Fatal(err)
	}
	if c, err = Start(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(control); err != nil || info.Size() != controlSize {
		t.Errorf("the template was not made anew: %v", err)
	}
}

// TestFetch needs npm and its registry, so it runs only when it is asked for.
func TestFetch(t *testing.T) {
	if os.Getenv("LOCALPG_TEST_FETCH") == "" {
		t.Skip("set LOCALPG_TEST_FETCH=1 to fetch the pinned package")
	}
	bin, err := fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(binDirVariable, bin)
	c, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
}
