package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

func (p *program) syncVerb() *cobra.Command {
	var strict bool
	c := &cobra.Command{
		Use:   "sync [RESOURCE…]",
		Short: "Bring the mirror up to date once",
		Long: `Bring the mirror up to date once: every resource of the configuration, or
those named. Pages go into PostgreSQL one by one, each with its checkpoint; a
stopped run goes on where it stood. If another run holds a resource, this one
steps aside and exits 0.`,
		Example: `  xiaoqu-sync sync
  xiaoqu-sync sync users contracts --output json
  XIAOQU_LOG_LEVEL=debug xiaoqu-sync sync`,
		RunE: p.verb(func(ctx context.Context, a *app, args []string) (answer, error) {
			report, err := a.work(ctx, args, 0, (*sync.Engine).Sync)
			if err != nil {
				return nil, err
			}
			return report, report.err(strict)
		}),
	}
	p.offerMetricsFile(c)
	c.Flags().BoolVar(&strict, "strict", false, "exit 9 when records were quarantined")
	return c
}

// work does a task that asks the remote, on the resources that were named.
func (a *app) work(ctx context.Context, names []string, wait time.Duration,
	task func(*sync.Engine, context.Context, []string) []sync.Outcome,
) (syncReport, error) {
	resources, err := a.chosen(names)
	if err != nil {
		return syncReport{}, err
	}
	if _, err := a.alerter(); err != nil {
		return syncReport{}, err
	}
	client, err := a.remote(ctx, credentials.DefaultGrace)
	if err != nil {
		return syncReport{}, a.tellOfAll(ctx, resources, err)
	}
	return a.run(ctx, client, resources, wait, task)
}

// run does a task on resources; source may be nil for one that asks nobody.
func (a *app) run(ctx context.Context, source sync.Source, resources []string, wait time.Duration,
	task func(*sync.Engine, context.Context, []string) []sync.Outcome,
) (syncReport, error) {
	if err := a.prepare(ctx, resources); err != nil {
		return syncReport{}, a.tellOfAll(ctx, resources, err)
	}
	line := a.progressLine(resources)
	o := a.engineOptions()
	o.Wait, o.Watch = wait, a.watched(line.watch())
	engine := sync.NewEngine(source, a.mirror, o)
	outcomes := task(engine, ctx, resources)
	line.clear()
	a.tell(ctx, outcomes)
	a.counted(outcomes)
	return syncReport{Resources: outcomes, notes: a.vaultTrouble()}, nil
}

// chosen checks the names on the command line against the configuration.
func (a *app) chosen(names []string) ([]string, error) {
	known := a.config.Names()
	if len(names) == 0 {
		return known, nil
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, usageError{fmt.Errorf("no resource %q is configured; configured are: %s", n, strings.Join(known, ", "))}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// syncReport is the answer of the verbs that work on resources.
type syncReport struct {
	Resources []sync.Outcome `json:"resources"`
	notes     []string       // on what the run went through
}

func (r syncReport) text(w io.Writer) {
	t := newTable(w, "RESOURCE", "RESULT", "MODE", "PAGES", "RECEIVED", "NEW", "CHANGED", "DELETED", "UNCHANGED", "QUARANTINED", "TIME")
	for _, o := range r.Resources {
		t.row(resultColour(o.Result), o.Resource, string(o.Result), o.Mode, o.Pages, o.Counts.Received, o.Counts.Inserted,
			o.Counts.Updated+o.Counts.Revived, o.Counts.Deleted, o.Counts.Unchanged, o.Counts.Quarantined,
			fmt.Sprintf("%.1fs", o.Seconds))
	}
	t.flush()
	for _, o := range r.Resources {
		if o.Difference != nil {
			describe(w, o)
		}
	}
}

func resultColour(r sync.Result) colour {
	switch r {
	case sync.Synced, sync.Verified:
		return green
	case sync.Failed, sync.Drifted, sync.Held:
		return red
	default:
		return yellow
	}
}

func (r syncReport) warnings() []string {
	ws := slices.Clone(r.notes)
	for _, o := range r.Resources {
		if o.Result == sync.SteppedAside && o.Holder != nil {
			ws = append(ws, fmt.Sprintf("%s: another run holds it (host %s, pid %d, since %s)",
				o.Resource, o.Holder.Host, o.Holder.PID, o.Holder.Since.Format("2006-01-02 15:04:05")))
		}
		if n := o.Counts.Quarantined + o.Counts.Mended; n > 0 {
			ws = append(ws, fmt.Sprintf("%s: %d records quarantined, %d mended", o.Resource, o.Counts.Quarantined, o.Counts.Mended))
		}
	}
	return ws
}

// err is nil when every resource is up to date or held by another run.
func (r syncReport) err(strict bool) error {
	var failed []sync.Outcome
	quarantined := int64(0)
	for _, o := range r.Resources {
		if o.Err != nil && o.Result != sync.SteppedAside {
			failed = append(failed, o)
		}
		quarantined += o.Counts.Quarantined + o.Counts.Mended
	}
	if len(failed) > 0 {
		return &runError{report: r, failed: failed}
	}
	if strict && quarantined > 0 {
		return quarantinedError{quarantined, r}
	}
	return nil
}

// runError is a run in which at least one resource failed.
type runError struct {
	report syncReport
	failed []sync.Outcome
}

// Error names each error once, with the resources that met it.
func (e *runError) Error() string {
	var texts []string
	by := map[string][]string{}
	for _, o := range e.failed {
		text := o.Err.Error()
		if by[text] == nil {
			texts = append(texts, text)
		}
		by[text] = append(by[text], o.Resource)
	}
	for i, text := range texts {
		texts[i] = strings.Join(by[text], ", ") + ": " + text
	}
	return strings.Join(texts, "; ")
}

// failure is the worst of the resources' failures, with all of them in its
// details.
func (e *runError) failure() failure {
	type detail struct {
		sync.Outcome
		Code  string `json:"code,omitempty"`
		Error string `json:"error,omitempty"`
	}
	var fs []failure
	details := make([]detail, len(e.report.Resources))
	for i, o := range e.report.Resources {
		details[i].Outcome = o
		if o.Err == nil || o.Result == sync.SteppedAside {
			continue
		}
		f := classify(o.Err)
		details[i].Code, details[i].Error = f.code, o.Err.Error()
		fs = append(fs, f)
	}
	f := worst(fs)
	f.message = e.Error()
	f.details = map[string]any{"resources": details}
	return f
}

// quarantinedError is a run that did everything, under --strict, and found
// records that it had to set aside.
type quarantinedError struct {
	n      int64
	report syncReport
}

func (q quarantinedError) Error() string {
	return fmt.Sprintf("done, but %d records are in quarantine", q.n)
}
