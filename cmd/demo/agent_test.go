package main

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// screen is an output that cancels the demo when a text has come.
type screen struct {
	text  bytes.Buffer
	until string
	end   context.CancelFunc
}

func (s *screen) Write(b []byte) (int, error) {
	n, err := s.text.Write(b)
	if strings.Contains(s.text.String(), s.until) {
		s.end()
	}
	return n, err
}

// The calls that the demo prints are the ones that it makes.
func TestEveryDoorAnswersTheCallThatIsPrinted(t *testing.T) {
	for _, tool := range []string{"sh", "curl", "openssl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s", tool)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s := &screen{until: "Ctrl-C ends it all", end: cancel}
	if err := run(ctx, []string{"--agent"}, s); err != nil {
		t.Fatalf("%v\n%s", err, &s.text)
	}
	if n := strings.Count(s.text.String(), "\n→ "); n != 3 {
		t.Errorf("%d answers\n%s", n, &s.text)
	}
}
