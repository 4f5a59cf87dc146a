package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

func TestColumnsStandAlsoUnderColours(t *testing.T) {
	show := func(coloured bool) string {
		var b bytes.Buffer
		tab := newTable(&b, "NAME", "N")
		if coloured {
			tab = newTable(display{&b}, "NAME", "N")
		}
		tab.row(green, "客户", 1)
		tab.row(red, "long\tname\nin two lines", 22)
		tab.flush()
		return b.String()
	}
	pipe, terminal := show(false), show(true)
	if strings.Contains(pipe, "\x1b") || len(strings.Split(strings.TrimSpace(pipe), "\n")) != 3 {
		t.Errorf("in a pipe:\n%q", pipe)
	}
	if bare := strings.NewReplacer(string(green), "", string(red), "", colourOff, "").Replace(terminal); bare != pipe || bare == terminal {
		t.Errorf("on a terminal:\n%q\nin a pipe:\n%q", terminal, pipe)
	}
}

func TestALogLineTakesTheProgressLineAway(t *testing.T) {
	var b bytes.Buffer
	s := newScreen(&b)
	l := newProgressLine(s, []string{"users", "contracts"})
	watch := l.watch()
	watch(sync.Progress{Resource: "users", Pages: 3, Records: 600})
	if _, err := s.Write([]byte("a log line\n")); err != nil {
		t.Fatal(err)
	}
	watch(sync.Progress{Resource: "contracts", Pages: 1, Records: 200})
	l.clear()
	parts := strings.Split(b.String(), eraseLine)
	if len(parts) != 3 || !strings.HasPrefix(parts[0], "users 3 pages 600 records") ||
		!strings.HasPrefix(parts[1], "a log line\nusers 3 pages 600 records  contracts 1 pages 200 records") || parts[2] != "" {
		t.Errorf("the screen saw %q", b.String())
	}
	if newProgressLine(nil, nil).watch() != nil {
		t.Error("progress without a terminal")
	}
}
