package relay

import (
	"cmp"
	"context"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// invocation is one order. Its manifest_version is not looked at: Relay keeps
// orders on an old one for 30 days (RSP §4.6), names do not change their meaning
// here, and an input that no longer fits is refused by its schema. Nor is
// deadline_at: Relay sends task.cancel when the time is over.
type invocation struct {
	OrderID        string         `json:"order_id"`
	IdempotencyKey string         `json:"idempotency_key"`
	Action         string         `json:"action"`
	Input          jsontext.Value `json:"input"`
	User           struct {
		RelayUID string `json:"relay_uid"`
		Ref      string `json:"supplier_user_ref"`
	} `json:"user"`
}

// accepted marks a task that was answered with "accepted": its order is told of the
// end, and hears "accepted" again whatever has become of it (RSP §10).
const accepted = `{"accepted":true}`

func (d *Door) invoke(ctx context.Context, body []byte) answer {
	var e invocation
	if err := json.Unmarshal(body, &e); err != nil {
		return answer{}.failed(codeInput, "malformed", "the order cannot be read")
	}
	switch {
	case !isID(e.OrderID):
		return answer{}.failed(codeInput, "malformed", "the order has no usable order_id")
	case e.IdempotencyKey != e.OrderID:
		return answer{order: e.OrderID}.failed(codeInput, "key_mismatch", "idempotency_key is not the order_id")
	case !actionName.MatchString(e.Action):
		return answer{order: e.OrderID}.failed(codeInput, "malformed", "the order has no usable action")
	case !plain(e.User.RelayUID) || !plain(e.User.Ref):
		return answer{order: e.OrderID}.failed(codeInput, "malformed", "the order has no usable user")
	case d.options.Supplier.binds() && e.User.Ref == "":
		return d.unbound(ctx, e)
	}
	return d.order(ctx, e)
}

// unbound answers an order of a user who is not bound. One that was begun before has
// its answer, and hears that again whatever has become of the binding (RSP §10).
func (d *Door) unbound(ctx context.Context, e invocation) answer {
	a := answer{order: e.OrderID}
	switch _, err := d.options.Service.TaskOf(ctx, doorName, "", e.OrderID); {
	case err == nil:
		return d.order(ctx, e)
	case agent.AsFailure(err).Class != agent.NotFound:
		return d.trouble(a, err)
	}
	return a.failed(codeUnauthorized, "not_bound", "the user is not bound to an account here")
}

func (d *Door) order(ctx context.Context, e invocation) answer {
	a := answer{order: e.OrderID}
	call := agent.Call{
		Caller:     agent.Caller{Door: doorName, Name: cmp.Or(e.User.Ref, e.User.RelayUID), Scopes: d.options.Scopes},
		Capability: e.Action, Input: []byte(e.Input), Key: e.OrderID, Choose: true, KeepRefusals: true,
	}
	if c := d.options.Service.Capability(e.Action); c != nil && c.Async {
		if c.Choice != "" && has(e.Input, c.Choice) {
			// It is not in the manifest's input: a person chooses by proposal.select.
			return a.failed(codeInput, "choice_given", "the choice is made by proposal.select")
		}
		call.ReplyTo = []byte(accepted)
	}
	done, err := d.options.Service.Do(ctx, call)
	switch {
	case done.Task != nil && len(done.Task.ReplyTo) > 0:
		a.Status, a.TaskID = statusAccepted, done.Task.ID
		return a
	case err != nil:
		return a.failure(err)
	case done.Result == nil:
		return a.failed(codeTemporary, "in_progress", "the same order is being answered")
	}
	return d.complete(a, *done.Result, nil, "")
}

// complete makes the answer a result.
func (d *Door) complete(a answer, r agent.Result, links []agent.Link, proposal string) answer {
	out, err := d.output(r, links, proposal)
	if err != nil {
		f := agent.AsFailure(err)
		d.log.Error("a result could not be answered", zap.String("reason", f.Code), zap.String("order", a.order))
		a.Status, a.Error = statusFailed, final(f)
		return a
	}
	a.Status, a.Output = statusCompleted, out
	return a
}

// plain reports whether a user's name, or none, can be kept.
func plain(name string) bool { return len(name) <= maxID && !strings.ContainsRune(name, 0) }

// has reports whether an object has a property. What is no object has none; its
// schema refuses it.
func has(object jsontext.Value, property string) bool {
	var o map[string]jsontext.Value
	return json.Unmarshal(object, &o) == nil && o[property] != nil
}
