package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// agentWait is how long a job of an agent's waits for another worker; after that
// its task is put off.
const agentWait = 20 * time.Second

// hands are the worker as agents know it: they do what the verbs do.
type hands struct {
	app    *app
	source sync.Source
}

// Work does a job on its resources, each under its lease.
func (h hands) Work(ctx context.Context, job agent.Job) (agent.Report, error) {
	o := h.app.engineOptions()
	if job.Kind == agent.JobApply || job.Kind == agent.JobResolve {
		done, err := h.decided(ctx, job, &o.Staged)
		if err != nil {
			return agent.Report{}, h.app.told(err)
		}
		if done {
			return doneBefore(job), nil
		}
	}
	if err := h.app.mirror.Ready(ctx, job.Resources); err != nil {
		return agent.Report{}, h.app.told(err)
	}
	o.Wait, o.Watch = agentWait, h.app.watched(nil)
	outcomes := task(job)(sync.NewEngine(h.source, h.app.mirror, o), ctx, job.Resources)
	if !o.Staged.IsZero() && sync.NotApplicable(outcomes[0].Err) {
		// Somebody was quicker: it may be what was to be done.
		if done, err := h.decided(ctx, job, &o.Staged); err != nil || done {
			return doneBefore(job), err
		}
	}
	h.app.tell(ctx, outcomes)
	h.app.counted(outcomes)
	return h.report(ctx, job, outcomes)
}

func task(job agent.Job) func(*sync.Engine, context.Context, []string) []sync.Outcome {
	if job.Kind == agent.JobResolve {
		return map[agent.Choice]func(*sync.Engine, context.Context, []string) []sync.Outcome{
			agent.AcceptAll: (*sync.Engine).Accept, agent.WithoutDeletes: (*sync.Engine).AcceptWithoutDeletes, agent.Abort: (*sync.Engine).Abort,
		}[job.Choice]
	}
	return map[agent.JobKind]func(*sync.Engine, context.Context, []string) []sync.Outcome{
		agent.JobSync: (*sync.Engine).Sync, agent.JobVerify: (*sync.Engine).Verify, agent.JobPlan: (*sync.Engine).Plan,
		agent.JobApply: func(e *sync.Engine, ctx context.Context, rs []string) []sync.Outcome { return e.Apply(ctx, rs, false) },
	}[job.Kind]
}

// planForm is how a full pass is called: no two of a resource began in the same moment.
const planForm = "20060102T150405.000000Z"

func planName(began time.Time) string { return began.UTC().Format(planForm) }

func planGone() *agent.Failure {
	return &agent.Failure{
		Class: agent.Permanent, Code: "plan_gone", Message: "this plan is not there any more: another one was made, or it was applied or dropped",
		Suggestions: []string{"make a plan anew with rebuild.plan, or ask mirror.status what is held now"},
	}
}

func doneBefore(job agent.Job) agent.Report {
	return agent.Report{Resources: []agent.ResourceReport{{Resource: job.Resources[0], Outcome: "done"}}}
}

// decided finds the pass that the job is for, which goes into staged while it is
// there. done tells that what was to be done with it has been done: the process died
// between that and noting the task's end, or somebody else did the same. A pass that
// met another end, or none that is known, is a plan that is gone.
func (h hands) decided(ctx context.Context, job agent.Job, staged *time.Time) (done bool, err error) {
	meant, err := time.Parse(planForm, job.Plan)
	if err != nil {
		return false, planGone()
	}
	p, found, err := h.app.mirror.Pass(ctx, job.Resources[0])
	if err != nil {
		return false, err
	}
	if found && p.StartedAt.Equal(meant) {
		*staged = meant
		return false, nil
	}
	merged, spared, err := h.app.mirror.Merged(ctx, job.Resources[0])
	switch {
	case err != nil:
		return false, err
	case merged.Equal(meant) && job.Choice != agent.Abort && spared == (job.Choice == agent.WithoutDeletes):
		return true, nil
	case !merged.Equal(meant) && job.Choice == agent.Abort && !found:
		if done, err = h.dropped(ctx, job.Resources[0], meant); err != nil || done {
			return done, err
		}
	}
	return false, planGone()
}

// dropped reports whether somebody dropped what was staged since then: one who said
// so at the end, or died before.
func (h hands) dropped(ctx context.Context, resource string, since time.Time) (bool, error) {
	runs, err := h.app.mirror.Runs(ctx, resource, 20)
	return slices.ContainsFunc(runs, func(r mirror.Run) bool {
		said := r.Outcome == string(sync.Aborted) || r.Outcome == mirror.OutcomeAbandoned || r.EndedAt == nil
		return r.Mode == "abort" && said && r.StartedAt.After(since)
	}), err
}

// report makes outcomes a report, or a failure that has the report in its details.
func (h hands) report(ctx context.Context, job agent.Job, outcomes []sync.Outcome) (agent.Report, error) {
	r := agent.Report{Resources: make([]agent.ResourceReport, len(outcomes))}
	var errs []failure
	aside := false
	for i, o := range outcomes {
		x := reported(o)
		aside = aside || o.Result == sync.SteppedAside
		if o.Result == sync.Planned {
			x.Plan = planName(o.Staged)
		}
		if failedAt(o, job) {
			f := classify(o.Err)
			x.Code, x.Message, x.RequestID = strings.ToLower(f.code), h.app.program.redactor.String(f.message), f.requestID
			f.code = wordOf(o.Err, f.code)
			errs = append(errs, f)
		}
		r.Resources[i] = x
	}
	details, err := json.Marshal(r)
	switch {
	case err != nil:
		return r, err
	case len(errs) > 0:
		f := h.app.failureOf(worst(errs))
		f.Details = details
		return r, f
	case aside:
		return r, &agent.Failure{Class: agent.Busy, Code: "busy", Message: "another worker is at work on it", Details: details, RetryAfter: 5 * time.Second}
	}
	return r, nil
}

// failedAt tells that an outcome is not what was asked for. Drift is what a
// verification is for, and a held rebuild is a result where nobody asked to apply it.
func failedAt(o sync.Outcome, job agent.Job) bool {
	switch o.Result {
	case sync.SteppedAside, sync.Drifted:
		return false
	case sync.Held:
		return job.Kind == agent.JobApply
	default:
		return o.Err != nil
	}
}

func reported(o sync.Outcome) agent.ResourceReport {
	words := map[sync.Result]string{
		sync.Synced: "done", sync.Aborted: "done", sync.Verified: "done", sync.Planned: "planned", sync.Drifted: "drift",
		sync.Held: "held", sync.SteppedAside: "busy",
	}
	word, ok := words[o.Result]
	if !ok {
		word = "failed"
	}
	return agent.ResourceReport{
		Resource: o.Resource, Outcome: word, Inserted: o.Counts.Inserted, Updated: o.Counts.Updated + o.Counts.Revived, Deleted: o.Counts.Deleted,
		Unchanged: o.Counts.Unchanged, Pages: o.Pages, Difference: differenceOf(o.Difference), RequestID: o.RequestID,
	}
}

// differenceOf says it in an agent's words; the sample is of what would go.
func differenceOf(d *mirror.Difference) *agent.Difference {
	if d == nil {
		return nil
	}
	sample := append(append([]string{}, d.Samples["absent"]...), d.Samples["tombstoned"]...)
	return &agent.Difference{Inserts: d.Inserted, Updates: d.Updated + d.Revived, Deletes: d.Deletes(), Sample: sample}
}

// wordOf sets what the remote says apart from what this program says: its
// UNAUTHENTICATED is not about who asks here.
func wordOf(err error, code string) string {
	var e *remote.Error
	if errors.As(err, &e) {
		return "remote_" + code
	}
	return code
}

// told makes any error a failure that an agent may be told.
func (a *app) told(err error) *agent.Failure {
	var f *agent.Failure
	if errors.As(err, &f) {
		return f
	}
	c := classify(err)
	c.code = wordOf(err, c.code)
	return a.failureOf(c)
}

// failureOf is the one table from exit codes to what an agent is told.
func (a *app) failureOf(f failure) *agent.Failure {
	out := &agent.Failure{
		Class: agent.Permanent, Code: strings.ToLower(f.code), Message: a.program.redactor.String(f.message),
		Suggestions: f.suggestions, RequestID: f.requestID,
	}
	switch {
	case f.exit == exitInternal && !f.retryable:
		out.Class = agent.Internal
	case f.code == "BUSY":
		out.Class, out.RetryAfter = agent.Busy, 5*time.Second
	case f.retryable:
		out.Class, out.RetryAfter = agent.Temporary, 5*time.Second
	}
	return out
}
