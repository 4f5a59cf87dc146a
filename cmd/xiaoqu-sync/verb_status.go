package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

func (p *program) statusVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "status [RESOURCE…]",
		Short: "Show how fresh the mirror is, who works on it, and what went wrong",
		Example: `  xiaoqu-sync status
  xiaoqu-sync status users --output json`,
		RunE: p.localVerb(func(ctx context.Context, a *app, args []string) (answer, error) {
			resources, err := a.chosen(args)
			if err != nil {
				return nil, err
			}
			s, err := a.mirror.Status(ctx, resources)
			if err != nil {
				return nil, err
			}
			for i := range s.Resources {
				r := &s.Resources[i]
				if r.LastError != nil {
					r.LastError.Message = printable(r.LastError.Message)
				}
				a.lookAtColumns(ctx, r)
			}
			return statusAnswer{s}, nil
		}),
	}
}

// lookAtColumns adds what is odd about the resource's typed columns and masks.
func (a *app) lookAtColumns(ctx context.Context, r *mirror.ResourceStatus) {
	var err error
	d := a.definition(r.Resource)
	if len(d.Columns) > 0 {
		if r.Misfits, _, err = a.mirror.Misfits(ctx, r.Resource); err == nil {
			r.Unfilled, _, err = a.mirror.Unfilled(ctx, r.Resource, d)
		}
	}
	if err == nil && len(d.Masked) > 0 {
		r.IdleMasks, _, err = a.mirror.Idle(ctx, r.Resource, d)
	}
	if err != nil {
		a.log.Warn("the typed columns cannot be looked at", zap.Error(err))
	}
}

type statusAnswer struct{ mirror.Status }

func (s statusAnswer) text(w io.Writer) {
	t := newTable(w, "RESOURCE", "PHASE", "LIVE", "DELETED", "AS OF", "AGE", "IN HAND", "QUARANTINED", "HELD BY", "LAST RUN")
	for _, r := range s.Resources {
		t.row(statusColour(r), r.Resource, dash(string(r.Phase)), r.LiveRows, r.DeletedRows, clock(r.DataCutoffAt), age(r.AgeSeconds),
			inHand(r.PagesInHand), r.Quarantined, holder(r.Lease), lastRun(r))
	}
	t.flush()
	for _, r := range s.Resources {
		if p := r.Pass; p != nil {
			fmt.Fprintf(w, "\n%s: a full pass for %s is %s: %d pages, %d rows, begun %s\n", r.Resource, p.Purpose, p.Phase, p.Pages, p.Rows, clock(&p.StartedAt))
			if p.Difference != nil {
				describe(w, sync.Outcome{Resource: r.Resource, Result: sync.Held, Difference: p.Difference})
			}
		}
		if e := r.LastError; e != nil {
			fmt.Fprintf(w, "\n%s: last error %s at %s (request %s)\n  %s\n", r.Resource, e.Code, clock(&e.At), dash(e.RequestID), e.Message)
		}
	}
}

func statusColour(r mirror.ResourceStatus) colour {
	switch {
	case r.LastError != nil:
		return red
	case r.LastSuccessAt == nil, r.Phase == mirror.PhaseRebuild:
		return yellow
	default:
		return plain
	}
}

func (s statusAnswer) warnings() []string {
	var ws []string
	for _, r := range s.Resources {
		switch {
		case r.LastSuccessAt == nil:
			ws = append(ws, r.Resource+": never synchronized completely")
		case r.Pass != nil && r.Pass.Difference != nil:
			ws = append(ws, fmt.Sprintf("%s: a rebuild is held, it would delete %d of %d rows; readers see the rows of %s",
				r.Resource, r.Pass.Difference.Deletes(), r.Pass.Difference.Live, clock(r.DataCutoffAt)))
		case r.Phase == mirror.PhaseRebuild:
			ws = append(ws, r.Resource+": is being rebuilt; readers see the rows of "+clock(r.DataCutoffAt))
		}
		for _, m := range r.Misfits {
			ws = append(ws, fmt.Sprintf("%s: %d values do not fit column %s, such as that of %s; the view %s_misfits has them", r.Resource, m.Rows, m.Column, m.ID, r.Resource))
		}
		for _, c := range r.Unfilled {
			ws = append(ws, fmt.Sprintf("%s: column %s is null everywhere: no record has anything at its path", r.Resource, c))
		}
		for _, p := range r.IdleMasks {
			ws = append(ws, fmt.Sprintf("%s: the mask %s hides nothing: no record has anything there; what it was meant for may be seen under another name", r.Resource, p))
		}
		if r.Quarantined > 0 {
			ws = append(ws, fmt.Sprintf("%s: %d records in quarantine", r.Resource, r.Quarantined))
		}
	}
	return ws
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func clock(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

func age(seconds *int64) string {
	if seconds == nil {
		return "-"
	}
	return (time.Duration(*seconds) * time.Second).String()
}

func inHand(pages int64) string {
	if pages == 0 {
		return "-"
	}
	return fmt.Sprintf("%d pages", pages)
}

func holder(h *mirror.Holder) string {
	if h == nil {
		return "-"
	}
	return fmt.Sprintf("%s pid %d since %s", h.Host, h.PID, clock(&h.Since))
}

func lastRun(s mirror.ResourceStatus) string {
	switch r := s.LastRun; {
	case r == nil:
		return "-"
	case r.EndedAt != nil && r.KeyVersion != "":
		return r.Outcome + " " + clock(r.EndedAt) + ", key version " + r.KeyVersion
	case r.EndedAt != nil:
		return r.Outcome + " " + clock(r.EndedAt)
	case s.Lease == nil:
		return "died, begun " + clock(&r.StartedAt)
	default:
		return "begun " + clock(&r.StartedAt)
	}
}
