package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// tools is where .ci/conformance puts programs of others, at the versions that
// package-lock.json files pin.
const tools = "../../.tools"

// Programs of the protocol's authors.
const (
	suite     = "conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js"
	inspector = "inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
)

// program is a command that runs one of them; the test is skipped where it cannot run.
func program(ctx context.Context, t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(tools, script)
	if _, err := os.Stat(path); err != nil {
		t.Skip("the program is not here: .ci/conformance brings it")
	}
	cmd := exec.CommandContext(ctx, node(t), append([]string{path}, args...)...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// node finds a Node of version 22 or later, which the programs need.
func node(t *testing.T) string {
	t.Helper()
	architecture := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if architecture == "" {
		architecture = runtime.GOARCH
	}
	own, _ := filepath.Abs(filepath.Join(tools, "conformance/node_modules/node-"+runtime.GOOS+"-"+architecture, "bin", "node"))
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

// The suite's scenarios for a server with tools alone, in each revision that has them.
// It sends no context, and these need none; its good origin is the server's own. One scenario
// looks at a schema of its own, so it is among the tools.
func TestConformanceOfTheDoor(t *testing.T) {
	schema, err := os.ReadFile("testdata/suite_schema.json")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, func(st *stage) {
		st.door.Origins = []string{st.door.PublicURL}
		st.more = &agent.Capability{ID: "json_schema_2020_12_tool", Title: "Schemas", Description: "The tool that the suite looks for.", Input: schema, Output: []byte(`{"type":"object"}`)}
	})
	for scenario, versions := range map[string][]string{
		"server-initialize": {"2025-06-18", "2025-11-25"}, "server-session-lifecycle": {"2025-03-26", "2025-06-18", "2025-11-25"},
		"ping": {"2025-06-18", "2025-11-25"}, "tools-list": {"2025-06-18", "2025-11-25"}, "dns-rebinding-protection": {"2025-11-25"}, "server-sse-multiple-streams": {"2025-11-25"}, "json-schema-2020-12": {"2025-11-25"},
	} {
		for _, version := range versions {
			t.Run(scenario+" "+version, func(t *testing.T) {
				dir := t.TempDir()
				cmd := program(t.Context(), t, suite, "server", "--scenario", scenario, "--url", s.url+"/mcp", "--spec-version", version, "-o", dir)
				said, err := cmd.CombinedOutput()
				passed := checks(t, dir)
				t.Logf("server scenario %s of %s: %d checks passed", scenario, version, passed)
				if err != nil || passed == 0 {
					t.Errorf("%v\n%s", err, said)
				}
			})
		}
	}
}

// checks counts what passed in a scenario's report, and reports the rest.
func checks(t *testing.T, dir string) (passed int) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if len(files) != 1 {
		t.Fatal("there is no report")
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Status, Description, ErrorMessage string
		Details                           json.RawMessage
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		switch c.Status {
		case "SUCCESS":
			passed++
		case "FAILURE", "WARNING", "SKIPPED":
			t.Errorf("%s: %s: %s %s", c.Status, c.Description, c.ErrorMessage, c.Details)
		}
	}
	return passed
}

// The authors' inspector lists every tool, finds nothing to complain of in its
// schemas, calls each one and checks what it gets against the output schema.
func TestConformanceOfEveryToolInTheInspector(t *testing.T) {
	s := open(t, func(st *stage) { st.door.Context.AllowUnsigned = true })
	s.put(t, "c-1", `{"id":"c-1","rent":1.10}`)
	home := t.TempDir()
	inspect := func(args ...string) []byte {
		cmd := program(t.Context(), t, inspector, append([]string{"--cli", s.url + "/mcp", "--transport", "http"}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+home)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) || err != nil {
			t.Errorf("%v: %v\n%s%s", args, err, out, said.String())
		}
		return out
	}
	var listed struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(inspect("--method", "tools/list", "--strict"), &listed); err != nil || len(listed.Tools) != 11 {
		t.Fatalf("%d tools, %v", len(listed.Tools), err)
	}
	arguments := map[string][]string{
		"records_get": {"resource=contracts", "id=c-1"}, "records_search": {"resource=contracts"}, "changes_list": {"resource=contracts", "after=0"},
		"quarantine_list": {"resource=users"}, "rebuild_apply": {"resource=users", "plan=p-1"}, "rebuild_resolve": {"resource=users", "choice=abort"},
	}
	for _, tool := range listed.Tools {
		args := []string{"--method", "tools/call", "--tool-name", tool.Name}
		for _, a := range arguments[tool.Name] {
			args = append(args, "--tool-arg", a)
		}
		var got outcome
		out := inspect(args...)
		if err := json.Unmarshal(out, &got); err != nil || got.IsError || got.Body.Status == "" {
			t.Errorf("%s: %s, %v", tool.Name, out, err)
		}
	}
	t.Logf("the inspector lists %d tools and calls each", len(listed.Tools))
}
