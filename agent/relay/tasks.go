package relay

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// pointer is what envelopes about a task have in common.
type pointer struct {
	OrderID    string `json:"order_id"`
	TaskID     string `json:"task_id"`
	ProposalID string `json:"proposal_id"`
}

// task finds the task that an envelope speaks of: the order's, by the id that was
// given for it. bad is the answer when there is none.
func (d *Door) task(ctx context.Context, body []byte) (p pointer, t agent.Task, bad *answer) {
	refuse := func(a answer) (pointer, agent.Task, *answer) { return p, agent.Task{}, &a }
	if err := json.Unmarshal(body, &p); err != nil || !isID(p.OrderID) {
		return refuse(answer{}.failed(codeInput, "malformed", "the envelope names no order"))
	}
	t, err := d.options.Service.TaskOf(ctx, doorName, "", p.OrderID)
	switch {
	case err != nil:
		return refuse(d.trouble(answer{order: p.OrderID}, err))
	case t.ID != p.TaskID:
		return refuse(answer{order: p.OrderID}.failed(codeInput, "unknown_task", "the order has no such task"))
	}
	return p, t, nil
}

// trouble makes the answer an error, and tells the operator of one that nobody else
// has told of.
func (d *Door) trouble(a answer, err error) answer {
	if f := (*agent.Failure)(nil); !errors.As(err, &f) {
		d.log.Error("an envelope could not be answered", zap.String("order", a.order), zap.Error(err))
	}
	return a.failure(err)
}

func (d *Door) poll(ctx context.Context, body []byte) answer {
	_, t, bad := d.task(ctx, body)
	if bad != nil {
		return *bad
	}
	a := answer{order: t.Key}
	switch t.State {
	case agent.Accepted, agent.Running:
		a.Status = statusPending
		return a
	case agent.Choosing:
		a.Status, a.Proposals = statusProposals, proposals(t.Proposals)
		return a
	default:
		return d.end(a, t)
	}
}

// end answers with what has become of a task.
func (d *Door) end(a answer, t agent.Task) answer {
	switch {
	case t.State == agent.Completed && t.Result != nil:
		return d.complete(a, *t.Result, t.Links, t.Chosen)
	case t.State == agent.Failed && t.Failure != nil:
		a.Status, a.Error = statusFailed, final(t.Failure)
		return a
	default:
		return a.failed(codePermanent, "cancelled", "the task was cancelled")
	}
}

// cancel takes a task back unless it is being worked on, or has ended: a merge
// cannot be undone. Its proposals need no withdrawal, for the order ends with it.
func (d *Door) cancel(ctx context.Context, body []byte) answer {
	_, t, bad := d.task(ctx, body)
	if bad != nil {
		return *bad
	}
	a := answer{order: t.Key}
	t, err := d.options.Service.Cancel(ctx, t)
	switch {
	case err != nil:
		return d.trouble(a, err)
	case t.State == agent.Cancelled:
		a.Status = statusCancelled
	case t.State.Final():
		a.Status, a.Reason = statusCancelFailed, "the task has ended"
	default:
		a.Status, a.Reason = statusCancelFailed, "the task is being worked on"
	}
	return a
}

// choose lets a task go on with a proposal. The same choice may come again, when
// the answer to it was lost: it hears how the task stands.
func (d *Door) choose(ctx context.Context, body []byte) answer {
	p, t, bad := d.task(ctx, body)
	if bad != nil {
		return *bad
	}
	a := answer{order: t.Key}
	t, err := d.options.Service.Choose(ctx, t, p.ProposalID)
	switch {
	case err != nil:
		return d.trouble(a, err)
	case t.State.Final():
		return d.end(a, t)
	}
	a.Status = statusSelected
	return a
}
