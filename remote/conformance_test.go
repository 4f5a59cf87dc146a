package remote_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// outside holds the protocol authors' conformance suite and example server, at the versions that
// testdata/conformance/package-lock.json pins, where .ci/conformance puts them.
const outside = "../.tools/conformance/node_modules"

// Programs of outside.
const (
	suite      = "@modelcontextprotocol/conformance/dist/index.js"
	everything = "@modelcontextprotocol/server-everything/dist/index.js"
)

// program is a command that runs one of outside's programs; the test is skipped where it cannot run.
func program(ctx context.Context, t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(outside, script)
	if _, err := os.Stat(path); err != nil {
		t.Skip("the conformance programs are not here: .ci/conformance brings them")
	}
	cmd := exec.CommandContext(ctx, node(t), append([]string{"--import", "./testdata/conformance/loopback.mjs", path}, args...)...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// node finds a Node of version 22 or later, which the programs need: the one among them, or the machine's.
func node(t *testing.T) string {
	t.Helper()
	architecture := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if architecture == "" {
		architecture = runtime.GOARCH
	}
	own, _ := filepath.Abs(filepath.Join(outside, "node-"+runtime.GOOS+"-"+architecture, "bin", "node"))
	if _, err := os.Stat(own); err == nil {
		return own
	}
	version, err := exec.CommandContext(t.Context(), "node", "--version").Output()
	major, _, _ := strings.Cut(strings.TrimPrefix(string(version), "v"), ".")
	if n, _ := strconv.Atoi(major); err != nil || n < 22 {
		t.Skip("no Node of version 22 or later: .ci/conformance brings one")
	}
	return "node"
}

// conform runs one scenario and reports its checks.
func conform(t *testing.T, side, scenario string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	cmd := program(t.Context(), t, suite, append([]string{side, "--scenario", scenario, "-o", dir}, args...)...)
	cmd.Env = append(os.Environ(), asClient+"=1")
	said, err := cmd.CombinedOutput()
	files, _ := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if len(files) != 1 {
		t.Fatalf("no checks: %v\n%s", err, said)
	}
	text, readErr := os.ReadFile(files[0])
	if readErr != nil {
		t.Fatal(readErr)
	}
	var checks []check
	if err := json.Unmarshal(text, &checks); err != nil {
		t.Fatal(err)
	}
	passed, failed := 0, 0
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			passed++
		case "FAILURE", "WARNING", "SKIPPED":
			failed++
			t.Errorf("%s: %s: %s %s", c.Status, c.Description, c.ErrorMessage, c.Details)
		}
	}
	t.Logf("%s scenario %s: %d checks passed, %d failed", side, scenario, passed, failed)
	if err != nil || passed == 0 {
		t.Errorf("%v\n%s", err, said)
	}
}

// The scenarios that a client of tools without OAuth can play, among those of protocol 2025-06-18, and the one that
// says how a broken stream is resumed.
func TestConformanceOfTheClient(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range []string{"initialize", "tools_call", onlyNewer} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			version := "2025-06-18"
			if scenario == onlyNewer {
				version = newerVersion
				t.Logf("%s: its server speaks only %s; its answer to initialize was renamed to ours", scenario, version)
			}
			conform(t, "client", scenario, "--command", self, "--spec-version", version)
		})
	}
}

// The scenarios of protocol 2025-06-18 that fit a server with tools alone. The suite sends no token: a proxy adds it.
func TestConformanceOfTheSimulator(t *testing.T) {
	sim := remotetest.Start(t, remotetest.Options{})
	token, _, err := exchangeToken(t, sim).Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	base, err := url.Parse(sim.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(base)
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}})
	t.Cleanup(proxy.Close)
	for _, scenario := range []string{"server-initialize", "server-session-lifecycle", "ping", "tools-list"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			conform(t, "server", scenario, "--url", proxy.URL+"/mcp", "--spec-version", "2025-06-18")
		})
	}
}
