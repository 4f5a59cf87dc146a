package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// screen is standard error shared by log lines and one progress line: a log
// line takes the progress line away before it is written, and the next page
// draws it again. A channel of one token is its lock.
type screen struct {
	w     io.Writer
	token chan struct{}
	drawn bool
}

func newScreen(w io.Writer) *screen {
	s := &screen{w: w, token: make(chan struct{}, 1)}
	s.token <- struct{}{}
	return s
}

const eraseLine = "\r\x1b[K"

// Write is for log lines.
func (s *screen) Write(b []byte) (int, error) {
	<-s.token
	defer func() { s.token <- struct{}{} }()
	s.erase()
	return s.w.Write(b)
}

func (s *screen) draw(line string) {
	<-s.token
	defer func() { s.token <- struct{}{} }()
	s.erase()
	_, _ = io.WriteString(s.w, line)
	s.drawn = line != ""
}

func (s *screen) erase() {
	if s.drawn {
		_, _ = io.WriteString(s.w, eraseLine)
		s.drawn = false
	}
}

// progressLine shows how far each resource is, on a terminal only.
type progressLine struct {
	screen    *screen // nil: not a terminal
	resources []string
	began     time.Time
	seen      chan map[string]sync.Progress // the map is held by whoever took it
}

func newProgressLine(s *screen, resources []string) *progressLine {
	l := &progressLine{screen: s, resources: resources, began: time.Now(), seen: make(chan map[string]sync.Progress, 1)}
	l.seen <- map[string]sync.Progress{}
	return l
}

// watch is the engine's view of the line; nil when there is nobody to see it.
func (l *progressLine) watch() func(sync.Progress) {
	if l.screen == nil {
		return nil
	}
	return func(p sync.Progress) {
		seen := <-l.seen
		seen[p.Resource] = p
		line := l.render(seen)
		l.seen <- seen
		l.screen.draw(line)
	}
}

func (l *progressLine) render(seen map[string]sync.Progress) string {
	var b strings.Builder
	total := int64(0)
	for _, r := range l.resources {
		p := seen[r]
		total += p.Records
		fmt.Fprintf(&b, "%s %d pages %d records  ", r, p.Pages, p.Records)
	}
	elapsed := time.Since(l.began)
	fmt.Fprintf(&b, "%.0f/s  %s", float64(total)/max(elapsed.Seconds(), 0.001), elapsed.Round(time.Second))
	return b.String()
}

func (l *progressLine) clear() {
	if l.screen != nil {
		l.screen.draw("")
	}
}
