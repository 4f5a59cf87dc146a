package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// jobs are the capabilities that make the worker work. Each appears only when it
// is allowed by name.
func (s *Service) jobs() []*Capability {
	some := object(shape{"resources": s.someResources()}).encode()
	report := object(shape{"resources": list(reportShape(), 100)}, "resources").encode()
	job := Capability{Write: true, Async: true, Timeout: jobTime, Output: report}
	all := []Capability{
		{
			ID: string(JobSync), Title: "Sync now", TitleZH: "立即同步", Risk: Medium, Idempotent: true, Input: some, run: s.runSome(JobSync),
			Description: "Fetch what changed at the remote since the last sync. Does no more than the timetable would.",
		},
		{
			ID: string(JobVerify), Title: "Verify the mirror", TitleZH: "核对镜像", Risk: Medium, Idempotent: true, Input: some, run: s.runSome(JobVerify), Documents: true, Personal: []string{personalIDs},
			Description: "Read everything from the remote and compare it with the mirror. Changes nothing; the report says what differs.",
		},
		{
			ID: string(JobPlan), Title: "Plan a rebuild", TitleZH: "规划重建", Risk: Medium, Idempotent: true, Input: some, run: s.runSome(JobPlan), Documents: true, Personal: []string{personalIDs},
			Description: "Fetch everything into staging and say what a rebuild would change. Readers see no difference; rebuild.apply applies that very plan.",
		},
		{
			ID: string(JobApply), Title: "Apply a planned rebuild", TitleZH: "执行重建", Risk: High, Idempotent: true, run: s.apply,
			Input:       object(shape{"resource": s.oneResource(), "plan": text("The plan that rebuild.plan named.", 64)}, "resource", "plan").encode(),
			Description: "Merge what rebuild.plan staged, if the mirror has not moved since. Deletes what is no longer at the remote, unless that is too large a share.",
		},
		{
			ID: string(JobResolve), Title: "Decide on a held rebuild", TitleZH: "处理被拦下的重建", Risk: High, Idempotent: true, Choice: "choice", Personal: []string{personalIDs},
			Input: object(shape{
				"resource": s.oneResource(), "choice": oneOf("What becomes of it.", AcceptAll, WithoutDeletes, Abort),
				"plan": text("The held rebuild that was looked at, as mirror.status names it. A choice needs it: it is for that one alone.", 64),
			}, "resource").encode(),
			Description: "Say what becomes of a rebuild that would delete too large a share and is held: apply all of it, all but the deletions, or drop it. A person must choose.",
			run:         s.resolve, propose: s.proposals,
		},
	}
	out := make([]*Capability, len(all))
	for i := range all {
		c := &all[i]
		c.Write, c.Async, c.Timeout, c.Output = job.Write, job.Async, job.Timeout, job.Output
		out[i] = c
	}
	return out
}

func (s *Service) runSome(kind JobKind) func(context.Context, Call) (Result, error) {
	return func(ctx context.Context, call Call) (Result, error) {
		var in resourcesInput
		if err := json.Unmarshal(call.Input, &in); err != nil {
			return Result{}, err
		}
		return s.work(ctx, call, Job{Kind: kind, Resources: s.chosen(in.Resources)})
	}
}

func (s *Service) apply(ctx context.Context, call Call) (Result, error) {
	var in struct{ Resource, Plan string }
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return Result{}, err
	}
	return s.work(ctx, call, Job{Kind: JobApply, Resources: []string{in.Resource}, Plan: in.Plan})
}

type resolveInput struct {
	Resource string `json:"resource"`
	Choice   Choice `json:"choice"`
	Plan     string `json:"plan"`
}

func (s *Service) resolve(ctx context.Context, call Call) (Result, error) {
	var in resolveInput
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return Result{}, err
	}
	if in.Choice == "" || in.Plan == "" {
		return Result{}, s.undecided(ctx, call)
	}
	return s.work(ctx, call, Job{Kind: JobResolve, Resources: []string{in.Resource}, Choice: in.Choice, Plan: in.Plan})
}

// undecided says which choices there are, where no platform let a person choose.
func (s *Service) undecided(ctx context.Context, call Call) error {
	choices, err := s.proposals(ctx, call)
	if err != nil {
		return err
	}
	details, err := json.Marshal(map[string]any{"choices": choices})
	if err != nil {
		return fmt.Errorf("agent: the choices have no JSON: %w", err)
	}
	return &Failure{
		Class: Invalid, Code: "choice_required", Field: "choice", Message: "choice: a person must say what becomes of the held rebuild",
		Suggestions: []string{"show the choices to a person, and pass accept_all, without_deletes or abort, with the plan that they are about"}, Details: details,
	}
}

// proposals are the ways on from a held rebuild.
func (s *Service) proposals(ctx context.Context, call Call) ([]Proposal, error) {
	var in resolveInput
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return nil, err
	}
	all, err := s.options.Mirror.Status(ctx, []string{in.Resource})
	if err != nil {
		return nil, err
	}
	if len(all) != 1 || all[0].Held == nil {
		return nil, &Failure{
			Class: Permanent, Code: "nothing_held", Message: "no rebuild of " + in.Resource + " is held",
			Suggestions: []string{"ask mirror.status how it stands"},
		}
	}
	d := *all[0].Held
	data, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("agent: a difference has no JSON: %w", err)
	}
	if in.Plan != "" && in.Plan != d.Plan {
		return nil, &Failure{Class: Permanent, Code: "plan_gone", Message: "another rebuild of " + in.Resource + " is held now", Suggestions: []string{"ask mirror.status how it stands"}}
	}
	changes := fmt.Sprintf("%d new, %d changed", d.Inserts, d.Updates)
	return []Proposal{
		{ID: string(AcceptAll), Title: "Apply everything", Summary: fmt.Sprintf("%s, and %d of %d rows deleted", changes, d.Deletes, all[0].LiveRows), Data: data, About: d.Plan},
		{ID: string(WithoutDeletes), Title: "Apply without deletions", Summary: fmt.Sprintf("%s; %d rows stay that are no longer at the remote", changes, d.Deletes), Data: data, About: d.Plan},
		{ID: string(Abort), Title: "Drop the rebuild", Summary: "the mirror stays as it is and goes on with increments", Data: data, About: d.Plan},
	}, nil
}

// work does a job and makes its report a result.
func (s *Service) work(ctx context.Context, call Call, job Job) (Result, error) {
	job.Since = call.Since
	report, err := s.options.Worker.Work(ctx, job)
	if err != nil {
		return Result{}, err
	}
	data, err := json.Marshal(Report{Resources: orNone(report.Resources)})
	if err != nil {
		return Result{}, fmt.Errorf("agent: a report has no JSON: %w", err)
	}
	out := Result{Summary: report.summary(), Data: data}
	if job.Kind == JobVerify || job.Kind == JobPlan {
		out.Documents = report.documents(job.Kind)
	}
	return out, nil
}

func (r Report) summary() string {
	var says []string
	for _, x := range r.Resources {
		line := fmt.Sprintf("%s: %s", x.Resource, x.Outcome)
		switch {
		case x.Difference != nil:
			line += fmt.Sprintf(" (%d new, %d changed, %d deleted)", x.Difference.Inserts, x.Difference.Updates, x.Difference.Deletes)
		case x.Inserted+x.Updated+x.Deleted > 0:
			line += fmt.Sprintf(" (%d inserted, %d updated, %d deleted)", x.Inserted, x.Updated, x.Deleted)
		}
		says = append(says, line)
	}
	return strings.Join(says, "; ")
}

// documents are the report for a person and for a machine.
func (r Report) documents(kind JobKind) []Document {
	title := "Drift report"
	name := "drift"
	if kind == JobPlan {
		title, name = "Rebuild plan", "plan"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n| resource | outcome | new | changed | deleted |\n|---|---|---|---|---|\n", title)
	for _, x := range r.Resources {
		d := Difference{}
		if x.Difference != nil {
			d = *x.Difference
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d |\n", x.Resource, x.Outcome, d.Inserts, d.Updates, d.Deletes)
	}
	for _, x := range r.Resources {
		if x.Difference != nil && len(x.Difference.Sample) > 0 {
			fmt.Fprintf(&b, "\n%s, some of the deletions: `%s`\n", x.Resource, strings.Join(x.Difference.Sample, "`, `"))
		}
	}
	machine, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		machine = nil // a report always has JSON
	}
	return []Document{
		{Title: title, Name: name + ".md", Type: "text/markdown", Body: b.Bytes()},
		{Title: title + " (JSON)", Name: name + ".json", Type: "application/json", Body: machine},
	}
}

func reportShape() shape {
	return object(shape{
		"resource": free("Which one."),
		"outcome":  free("done, drift, planned, held, busy or failed."),
		"inserted": count("Rows."), "updated": count("Rows."), "deleted": count("Rows."), "unchanged": count("Rows."), "pages": count("Of the remote."),
		"difference": differenceShape(),
		"plan":       free("Names this plan for rebuild.apply."),
		"code":       free("Why not."), "message": free("Why not, for a person."), "request_id": free("Of the remote's last call."),
	}, "resource", "outcome", "inserted", "updated", "deleted", "unchanged", "pages")
}

func differenceShape() shape {
	return object(shape{
		"inserts": count("Rows that the mirror lacks."), "updates": count("Rows that differ."), "deletes": count("Rows that are no longer at the remote."),
		"sample": list(free("An id."), 100), "plan": free("Names a held rebuild for rebuild.resolve."),
	}, "inserts", "updates", "deletes", "sample")
}
