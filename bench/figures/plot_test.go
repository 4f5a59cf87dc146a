package figures_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/bench/figures"
)

func TestThePlotIsXMLThatShowsEveryPoint(t *testing.T) {
	var b bytes.Buffer
	curve := []figures.Point{
		{Rows: 10_000, WorkerCPU: 12, ServerCPU: 30, PeakMemory: 25},
		{Rows: 100_000, WorkerCPU: 11, ServerCPU: 31, PeakMemory: 28},
		{Rows: 1_000_000, WorkerCPU: 11, ServerCPU: 33, PeakMemory: 30},
	}
	if err := figures.Plot(&b, curve); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	d := xml.NewDecoder(&b)
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(text, "<circle"); n != 9 {
		t.Errorf("%d circles for three points of three lines", n)
	}
	for _, want := range []string{"10 k", "100 k", "1 M", "prefers-color-scheme:dark"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if err := figures.Plot(io.Discard, curve[:1]); err == nil {
		t.Error("a line through one point")
	}
}
