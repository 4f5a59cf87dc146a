package main

import (
	"context"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/store"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

// window is the mirror as agents see it: records with the reader's role, the rest
// as status shows it.
type window struct {
	*store.Store
	app *app
}

// Status says how the resources stand.
func (w window) Status(ctx context.Context, resources []string) ([]agent.Status, error) {
	s, err := w.app.mirror.Status(ctx, resources)
	if err != nil {
		return nil, w.app.told(err)
	}
	out := make([]agent.Status, len(s.Resources))
	for i, r := range s.Resources {
		out[i] = agent.Status{
			Resource: r.Resource, Phase: string(r.Phase), LiveRows: r.LiveRows, DeletedRows: r.DeletedRows, ChangeSeq: r.ChangeSeq,
			Quarantined: r.Quarantined, LastSuccess: r.LastSuccessAt, Working: r.Lease != nil,
		}
		if e := r.LastError; e != nil {
			out[i].LastError = &agent.LastError{Code: e.Code, Message: w.app.program.redactor.String(e.Message), RequestID: e.RequestID, At: e.At}
		}
		if r.Pass != nil && r.Pass.Phase == "held" {
			if out[i].Held = differenceOf(r.Pass.Difference); out[i].Held != nil {
				out[i].Held.Plan = planName(r.Pass.StartedAt)
			}
		}
	}
	return out, nil
}

// Quarantine lists what could not be mirrored as it came, without the bytes.
func (w window) Quarantine(ctx context.Context, resource string, after int64, limit int) ([]agent.Quarantined, error) {
	lines, err := w.app.mirror.Quarantine(ctx, mirror.Selection{Resources: []string{resource}, After: after, Limit: limit})
	if err != nil {
		return nil, w.app.told(err)
	}
	out := make([]agent.Quarantined, len(lines))
	for i, q := range lines {
		out[i] = agent.Quarantined{
			ID: q.ID, Resource: q.Resource, Kind: q.Kind, Reason: q.Reason, RecordID: q.RecordID, Bytes: q.RawLength,
			Seen: q.Seen, LastSeen: q.LastSeenAt, RequestID: q.RequestID,
		}
	}
	return out, nil
}
