package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/bench/figures"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

func TestTheCheckFailsAndNamesWhatBecameWorse(t *testing.T) {
	baseline := filepath.Join(t.TempDir(), "baseline.json")
	before := figures.Report{Figures: []figures.Figure{
		figures.Of("drain", "20ms", figures.Ratio, 1.05).Toward(figures.Lower, 0),
		figures.Of("peer", "rows/s", figures.Ratio, 6).Toward(figures.Higher, 0),
	}}
	if err := toFile(baseline, before.Write); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := check(baseline, before, &out); err != nil {
		t.Errorf("the baseline itself: %v", err)
	}
	slower := figures.Report{Figures: []figures.Figure{
		figures.Of("drain", "20ms", figures.Ratio, 1.4).Toward(figures.Lower, 0),
		before.Figures[1],
	}}
	out.Reset()
	if err := check(baseline, slower, &out); err == nil || !strings.Contains(out.String(), "worse by 33 %: drain: 20ms: 1.4, was 1.05") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestTheCommittedBaselineIsOneThatCanBeComparedWith(t *testing.T) {
	f, err := os.Open("baseline.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	baseline, err := figures.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	judged := 0
	for _, f := range baseline.Figures {
		if f.Unit == figures.Ratio && f.Better != "" {
			judged++
		}
	}
	if judged < 10 {
		t.Errorf("only %d ratios in it are ever compared", judged)
	}
}

// The floor has to be of the same pages: all of them, and the token at the end.
func TestTheBareClientDrainsWhatTheSimulatorHas(t *testing.T) {
	orders, give := io.Pipe()
	heard, answers := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- simulate(orders, answers) }()
	s := &simulator{orders: give, answers: bufio.NewReader(heard)}
	first, err := s.hear()
	if err != nil {
		t.Fatal(err)
	}
	s.url, s.key = first.URL, first.Key
	if err := s.fill(0, 0, 2*pageSize+1); err != nil {
		t.Fatal(err)
	}
	if err := s.pace(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for _, raw := range []bool{false, true} {
		c, err := shake(t.Context(), s, raw)
		if err != nil {
			t.Fatal(err)
		}
		token, pages, err := c.drain(t.Context(), fat, "")
		if err != nil || pages != 3 || token == "" {
			t.Fatalf("raw %v: %d pages, token %q, %v", raw, pages, token, err)
		}
		if _, pages, err = c.drain(t.Context(), fat, token); err != nil || pages != 1 {
			t.Errorf("raw %v: nothing changed, and %d pages came, %v", raw, pages, err)
		}
	}
	if n, err := s.ask(order{Do: "last"}); err != nil || n.Last.IsZero() {
		t.Errorf("no handshake was noted: %v", err)
	}
	if err := give.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestRenderedPagesAreOfOneRoundAndDifferAsAsked(t *testing.T) {
	collect := func(r *rendered) (all []json.RawMessage) {
		cursor := ""
		for {
			p, err := r.Changes(t.Context(), remote.Query{Resource: fat, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, p.Records...)
			if cursor = p.NextCursor; !p.HasMore {
				return all
			}
		}
	}
	base, other := collect(madeOnDemand(1050, 0)), collect(madeOnDemand(1050, 10))
	if len(base) != 1050 {
		t.Fatalf("%d rows", len(base))
	}
	different := 0
	for i := range base {
		if !json.Valid(base[i]) || !bytes.Contains(base[i], []byte(idOf(i))) {
			t.Fatalf("row %d: %s", i, base[i])
		}
		if !bytes.Equal(base[i], other[i]) {
			different++
		}
	}
	if different != 110 {
		t.Errorf("%d of 1050 differ at 10 %%, want 110", different)
	}
}
