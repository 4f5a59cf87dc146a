package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// doorName is this door's in tasks.
const doorName = "mcp"

// callTime bounds a call, whatever it waits for.
const callTime = 10 * time.Second

// verbatim is a result whose JSON is ready.
type verbatim struct {
	*sdk.CallToolResult // only its form
	text                json.RawMessage
}

// MarshalJSON gives the text as it is.
func (v verbatim) MarshalJSON() ([]byte, error) { return v.text, nil }

// answer stands before the SDK's own tools, of which there are none.
func (d *Door) answer(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch method {
		case "tools/list":
			return verbatim{&sdk.CallToolResult{}, d.tools}, nil
		case "tools/call":
			return d.callTool(ctx, req)
		}
		return next(ctx, method, req)
	}
}

// callTool does what a checked call asks for.
func (d *Door) callTool(ctx context.Context, req sdk.Request) (sdk.Result, error) {
	params, ok := req.GetParams().(*sdk.CallToolParamsRaw)
	var c call
	if !ok || req.GetExtra() == nil || json.Unmarshal([]byte(req.GetExtra().Header.Get(verifiedHeader)), &c) != nil {
		return nil, &jsonrpc.Error{Code: invalidRequest, Message: "the call has no context"}
	}
	tool := d.tool(params.Name)
	if tool == nil {
		return nil, &jsonrpc.Error{Code: unknownMethod, Message: "there is no such tool"}
	}
	to, err := json.Marshal(replyTo{Invocation: c.Invocation})
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the call failed"}
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	a, err := d.options.Service.Do(ctx, agent.Call{Caller: d.caller(c), Capability: tool.ID, Input: params.Arguments, Key: c.Invocation, ReplyTo: to})
	if err != nil {
		f := agent.AsFailure(err)
		if ctx.Err() != nil && f.Class == agent.Internal {
			f = &agent.Failure{Class: agent.Temporary, Code: "timed_out", Message: "the call took longer than its time limit", RetryAfter: time.Second}
		}
		if wire := protocolError(tool, a, f); wire != nil {
			return nil, wire
		}
		return d.result(failedWith(f, a.Task))
	}
	return d.result(d.envelopeOf(a))
}

func (d *Door) caller(c call) agent.Caller {
	return agent.Caller{Door: doorName, Name: cmp.Or(c.Subject, "xiaoya"), Scopes: d.options.Scopes}
}

// tool finds a capability by its name as a tool; nil when this door does not show it.
func (d *Door) tool(name string) *agent.Capability {
	c := d.options.Service.Capability(name)
	if c == nil || c.Name() != name || !d.caller(call{}).May(c) {
		return nil
	}
	return c
}

// allowed are the tools that this door's scopes may use.
func (d *Door) allowed() []*agent.Capability {
	all := d.options.Service.Capabilities()
	return slices.DeleteFunc(all, func(c *agent.Capability) bool { return !d.caller(call{}).May(c) })
}

// protocolError is the JSON-RPC error of a call that was no call of this tool: nothing
// began. Every other failure is an answer, and nil here.
func protocolError(tool *agent.Capability, a agent.Answer, f *agent.Failure) error {
	wire := &jsonrpc.Error{Message: f.Message}
	switch {
	case f.Code == "key_reused":
		wire.Code = invalidRequest
	case f.Class == agent.NotFound && f.Code == "unknown_capability", f.Class == agent.Forbidden:
		wire.Code = unknownMethod
	case f.Class == agent.Invalid && (a.Task == nil || !tool.Async):
		wire.Code = invalidParams
	default:
		return nil
	}
	wire.Data, _ = text(failureOf(f)) // a failure always has JSON
	return wire
}

// envelopeOf is the answer to a call: what was found, or the task that it began. An
// asynchronous call that comes again after its end gets what the callback told.
func (d *Door) envelopeOf(a agent.Answer) envelope {
	if t := a.Task; t != nil && t.State.Final() {
		return ended(d.options.PublicURL, *t)
	}
	if a.Result != nil {
		return envelope{Status: string(agent.Completed), Summary: a.Result.Summary, Data: a.Result.Data}
	}
	return accepted(*a.Task)
}

// result puts an envelope into the result of tools/call, if it is not too long.
func (d *Door) result(e envelope) (sdk.Result, error) {
	out, err := wrap(e)
	if err == nil && len(out) > d.options.MaxAnswer {
		out, err = wrap(failedWith(&agent.Failure{
			Class: agent.Permanent, Code: "answer_too_large", Message: "the answer is longer than an answer may be",
			Suggestions: []string{"ask for fewer rows with a smaller limit"},
		}, nil))
	}
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the answer has no JSON"}
	}
	return verbatim{&sdk.CallToolResult{}, out}, nil
}

func wrap(e envelope) ([]byte, error) {
	if e.Artifacts == nil {
		e.Artifacts = []artifact{}
	}
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	return text(struct {
		Content    []content `json:"content"`
		Structured envelope  `json:"structuredContent"`
		IsError    bool      `json:"isError,omitempty"`
	}{[]content{{"text", e.Summary}}, e, e.Status == string(agent.Failed)})
}
