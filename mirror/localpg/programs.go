package localpg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	binDirVariable = "XIAOQU_PG_BINDIR"
	cacheName      = "xiaoqu-sync"
)

// errNoPrograms is the end of the search. It names the one thing to do.
var errNoPrograms = errors.New("no PostgreSQL server on this machine: install one (apt-get install postgresql) or set " + binDirVariable + " to the directory of initdb and postgres")

// findPrograms is the directory of initdb and postgres: the one that the
// environment names, else on PATH, else where packages put it, else fetched.
func findPrograms(ctx context.Context) (string, error) {
	if dir := os.Getenv(binDirVariable); dir != "" {
		if !hasPrograms(dir) {
			return "", fmt.Errorf("%s=%s holds no initdb and postgres", binDirVariable, dir)
		}
		return filepath.Abs(dir)
	}
	if dir, ok := installed(os.Getenv("PATH"), packageDirs()); ok {
		return dir, nil
	}
	dir, err := fetch(ctx)
	if err != nil {
		return "", fmt.Errorf("%w; fetching one failed: %w", errNoPrograms, err)
	}
	return dir, nil
}

func packageDirs() []string {
	return []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
		"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin",
	}
}

// installed looks along a PATH and then at patterns, newest version first.
func installed(path string, patterns []string) (string, bool) {
	for _, dir := range filepath.SplitList(path) {
		if dir == "" || !hasPrograms(dir) {
			continue
		}
		// A link on PATH leads to the directory that also holds the libraries.
		if real, err := filepath.EvalSymlinks(filepath.Join(dir, "initdb")); err == nil && hasPrograms(filepath.Dir(real)) {
			return filepath.Dir(real), true
		}
		return dir, true
	}
	var found []string
	for _, pattern := range patterns {
		dirs, err := filepath.Glob(pattern)
		if err == nil {
			found = append(found, dirs...)
		}
	}
	found = slices.DeleteFunc(found, func(dir string) bool { return !hasPrograms(dir) })
	if len(found) == 0 {
		return "", false
	}
	return slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) }), true
}

// version is the last number in a path: /usr/lib/postgresql/15/bin is 15.
func version(path string) int {
	fields := strings.FieldsFunc(path, func(r rune) bool { return r < '0' || r > '9' })
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		return 0
	}
	return n
}

func hasPrograms(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// cacheDir is the user's cache. Root's own is usually closed to the account that
// the server runs as, so then it is the machine's.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if os.Geteuid() == 0 && (err != nil || !reachableByOthers(base)) {
		base, err = "/var/cache", nil
	}
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, cacheName)
	return dir, os.MkdirAll(dir, 0o755)
}

func reachableByOthers(dir string) bool {
	nobody := account{uid: ^uint32(0), gid: ^uint32(0)}
	for {
		if _, err := os.Stat(dir); err == nil {
			return nobody.reaches(dir)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}
