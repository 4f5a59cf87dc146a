package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/xiaoqu-sync/xiaoqu-sync/bench/figures"
)

const groupPeer = "the script that a user would write instead (bench/peer), no latency"

// peerRows is how many rows the script reads in a turn.
const peerRows = 10_000

// peerAnswer is the script's one line: what it did from its first call on. That
// node takes a while to start is not held against it.
type peerAnswer struct {
	Rows    int     `json:"rows"`
	Seconds float64 `json:"seconds"`
}

// measurePeer runs script and worker in turns, on the same remote and database.
func measurePeer(ctx context.Context, b *bench) error {
	script, why := findPeer()
	if why != "" {
		b.say("peer: %s", why)
		b.report.Notes = append(b.report.Notes, "The peer script was not measured: "+why+".")
		return nil
	}
	rows := min(peerRows, b.rows)
	b.say("peer: %d rows", rows)
	s, err := startSimulator(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.fill(0, 0, rows); err != nil {
		return err
	}
	worker, err := client(s)
	if err != nil {
		return err
	}
	defer func() { _ = worker.Close() }()
	var theirs []float64
	ms, err := b.turns(ctx, b.rounds,
		contender{before: b.dropPeer, do: func(ctx context.Context) error {
			took, err := b.runPeer(ctx, script, s, rows)
			theirs = append(theirs, took)
			return err
		}},
		contender{before: b.empty, do: func(ctx context.Context) error { return b.bring(ctx, worker, resources(1)) }})
	if err != nil {
		return err
	}
	theirs = theirs[1:] // the first turn does not count
	b.report.Add(
		figures.Of(groupPeer, "rows/s, ours against the script's", figures.Ratio, figures.Ratios(theirs, ms[1].wall)...).Toward(figures.Higher, 5),
		figures.Of(groupPeer, "the script", "rows/s", rates(rows, theirs)...),
		figures.Of(groupPeer, "xiaoqu-sync", "rows/s", rates(rows, ms[1].wall)...),
	)
	return b.dropPeer(ctx)
}

// findPeer says where the script is, or why it cannot be run.
func findPeer() (script, why string) {
	script = filepath.Join("bench", "peer", "sync.mjs")
	if _, err := exec.LookPath("node"); err != nil {
		return "", "node is not installed"
	}
	if _, err := os.Stat(script); err != nil {
		return "", "run the benchmarks from the repository's root"
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(script), "node_modules")); err != nil {
		return "", "its modules are missing (npm ci --prefix bench/peer)"
	}
	return script, ""
}

func (b *bench) runPeer(ctx context.Context, script string, s *simulator, rows int) (seconds float64, err error) {
	node := exec.CommandContext(ctx, "node", script, fat)
	node.Env, node.Stderr = s.environment(b.url), os.Stderr
	out, err := node.Output()
	if err != nil {
		return 0, fmt.Errorf("the script: %w", err)
	}
	var a peerAnswer
	if err := json.Unmarshal(out, &a); err != nil || a.Rows != rows {
		return 0, fmt.Errorf("the script brought %d rows of %d: %w", a.Rows, rows, err)
	}
	return a.Seconds, nil
}

func (b *bench) dropPeer(ctx context.Context) error {
	_, err := b.sql.Exec(ctx, "drop schema if exists peer cascade")
	return err
}
