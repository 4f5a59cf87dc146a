package remote_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// startEverything runs the example server on a port until the function that it gives is called.
func startEverything(t *testing.T, port string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := program(ctx, t, everything, "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT="+port)
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		cancel()
		_ = cmd.Wait() // killed
	}
	t.Cleanup(stop)
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if strings.Contains(lines.Text(), "listening on port") {
			return stop
		}
	}
	t.Fatal("the example server did not start")
	return nil
}

// freePort gives a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

// The authors' example server is somebody else's reading of the protocol: handshake, list and calls, and a session that
// is gone with the server's process, of which it says 400.
func TestConformanceWithTheExampleServer(t *testing.T) {
	port := freePort(t)
	stop := startEverything(t, port)
	c := client(t, "http://127.0.0.1:"+port, nil)
	tools, err := c.Tools(t.Context())
	if err != nil || !slices.Contains(tools, "get-sum") || len(tools) < 10 {
		t.Fatalf("tools %q, %v", tools, err)
	}
	for tool, call := range map[string]struct {
		arguments map[string]any
		want      string
	}{
		"get-sum":                {map[string]any{"a": 19, "b": 23}, "42"},
		"echo":                   {map[string]any{"message": "你好, 𠮷🏠"}, "你好, 𠮷🏠"},
		"get-structured-content": {map[string]any{"location": "Chicago"}, `"structuredContent":{`},
	} {
		if got, err := c.Call(t.Context(), tool, call.arguments); err != nil || !strings.Contains(string(got), call.want) {
			t.Errorf("%s: %s, %v", tool, got, err)
		}
	}
	_, err = c.Changes(t.Context(), users())
	var e *remote.Error
	if !errors.As(err, &e) || e.Code != remote.InvalidArgument && e.Code != remote.Unreachable {
		t.Errorf("a tool that is not there: %v", err)
	}
	stop()
	startEverything(t, port)
	if _, err := c.Call(t.Context(), "echo", map[string]any{"message": "x"}); !errors.As(err, &e) || e.Code != remote.SessionLost {
		t.Errorf("after a restart: %v", err)
	}
	if _, err := c.Call(t.Context(), "echo", map[string]any{"message": "x"}); err != nil {
		t.Errorf("in the new session: %v", err)
	}
	t.Logf("the example server lists %d tools and answers; a restart of it costs one new session", len(tools))
}
