package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// rebuildFlags choose what rebuild does; at most one of the first three.
type rebuildFlags struct {
	dryRun, apply, abort, acceptDeletes, withoutDeletes bool
	wait                                                time.Duration
}

func (p *program) rebuildVerb() *cobra.Command {
	var f rebuildFlags
	c := &cobra.Command{
		Use:   "rebuild RESOURCE…",
		Short: "Make the mirror of a resource anew, unnoticed by its readers",
		Long: `Make the mirror of a resource anew. The whole of it is fetched into staging;
then one transaction writes the differences: what changed, what is new, and what
is no longer upstream. Readers see the rows of before until then. A rebuild that
was stopped goes on where it stood, at the next rebuild or sync.

A rebuild that would delete too large a share (rebuild.max_delete_ratio) is held:
nothing changes, the exit code is 8, and --accept-deletes lets that very result
through; --without-deletes lets all of it through but the deletions.`,
		Example: `  xiaoqu-sync rebuild users
  xiaoqu-sync rebuild users --dry-run      fetch, compare, say what would change
  xiaoqu-sync rebuild users --apply        merge what the dry run staged
  xiaoqu-sync rebuild users --abort        drop what is staged
  xiaoqu-sync rebuild users --accept-deletes
  xiaoqu-sync rebuild users --without-deletes`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("name the resources to rebuild")}
			}
			return f.check()
		},
		RunE: p.verb(func(ctx context.Context, a *app, args []string) (answer, error) {
			report, err := a.rebuild(ctx, args, f)
			if err != nil {
				return nil, err
			}
			report.notes = append(report.notes, a.remarks(report, f)...)
			return report, report.err(false)
		}),
	}
	flags := c.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "fetch and compare, and change nothing")
	flags.BoolVar(&f.apply, "apply", false, "merge what the last dry run staged, if the mirror has not moved since")
	flags.BoolVar(&f.abort, "abort", false, "drop a rebuild or a dry run")
	flags.BoolVar(&f.acceptDeletes, "accept-deletes", false, "let a held rebuild through; with --apply, do not hold it")
	flags.BoolVar(&f.withoutDeletes, "without-deletes", false, "let a held rebuild through but for its deletions: those rows stay")
	flags.DurationVar(&f.wait, "wait", time.Minute, "how long to wait while another run works on the resource")
	p.offerMetricsFile(c)
	return c
}

func (f rebuildFlags) check() error {
	n := 0
	for _, set := range []bool{f.dryRun, f.apply, f.abort} {
		if set {
			n++
		}
	}
	switch {
	case n > 1:
		return usageError{errors.New("--dry-run, --apply and --abort exclude each other")}
	case f.acceptDeletes && (f.dryRun || f.abort):
		return usageError{errors.New("--accept-deletes goes with a held rebuild, or with --apply")}
	case f.withoutDeletes && (n > 0 || f.acceptDeletes):
		return usageError{errors.New("--without-deletes goes with a held rebuild, and with no other of these flags")}
	case f.wait < 0 || f.wait > 24*time.Hour:
		return usageError{errors.New("--wait takes 0 to 24h")}
	}
	return nil
}

func (a *app) rebuild(ctx context.Context, names []string, f rebuildFlags) (syncReport, error) {
	switch {
	case f.dryRun:
		return a.work(ctx, names, f.wait, (*sync.Engine).Plan)
	case f.apply:
		return a.local(ctx, names, f.wait, func(e *sync.Engine, ctx context.Context, rs []string) []sync.Outcome {
			return e.Apply(ctx, rs, f.acceptDeletes)
		})
	case f.abort:
		return a.local(ctx, names, f.wait, (*sync.Engine).Abort)
	case f.acceptDeletes:
		return a.local(ctx, names, f.wait, (*sync.Engine).Accept)
	case f.withoutDeletes:
		return a.local(ctx, names, f.wait, (*sync.Engine).AcceptWithoutDeletes)
	default:
		return a.work(ctx, names, f.wait, (*sync.Engine).Rebuild)
	}
}

// remarks are what the counts of a run that went well do not show.
func (a *app) remarks(report syncReport, f rebuildFlags) []string {
	var ws []string
	ruling := mirror.Ruling{MaxDeleteRatio: a.config.Rebuild.MaxDeleteRatio}
	for _, o := range report.Resources {
		switch d := o.Difference; {
		case o.Result == sync.Planned && d != nil && ruling.Holds(*d):
			ws = append(ws, fmt.Sprintf("%s: --apply would be held: it marks %d of %d live rows as deleted, and rebuild.max_delete_ratio is %g",
				o.Resource, d.Deletes(), d.Live, ruling.MaxDeleteRatio))
		case o.Result == sync.Synced && f.withoutDeletes:
			ws = append(ws, o.Resource+": rows that are no longer upstream stay live; xiaoqu-sync verify "+o.Resource+" names them")
		}
	}
	return ws
}

// local does a task that asks nobody but the database.
func (a *app) local(ctx context.Context, names []string, wait time.Duration,
	task func(*sync.Engine, context.Context, []string) []sync.Outcome,
) (syncReport, error) {
	resources, err := a.chosen(names)
	if err != nil {
		return syncReport{}, err
	}
	if _, err := a.alerter(); err != nil {
		return syncReport{}, err
	}
	return a.run(ctx, nil, resources, wait, task)
}
