package relay

import (
	"context"
	"regexp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// What an answer can say (RSP §6).
const (
	statusOK           = "ok"
	statusCompleted    = "completed"
	statusFailed       = "failed"
	statusAccepted     = "accepted"
	statusPending      = "pending"
	statusProposals    = "proposals"
	statusCancelled    = "cancelled"
	statusCancelFailed = "cancel_failed"
	statusSelected     = "selected"
	statusBound        = "bound"
)

var (
	major1     = regexp.MustCompile(`^1\.[0-9]{1,9}$`)
	actionName = regexp.MustCompile(`^[a-z][a-z0-9_]{1,63}$`) // RSP §4.2
)

// maxID bounds Relay's ids. The protocol names no form for them.
const maxID = 200

// answer is the body of a response. Which fields it has, its status says.
type answer struct {
	Status    string         `json:"status"`
	Challenge jsontext.Value `json:"challenge,omitempty"`
	RSP       string         `json:"rsp,omitempty"`
	Output    *output        `json:"output,omitempty"`
	Error     *fault         `json:"error,omitempty"`
	TaskID    string         `json:"task_id,omitempty"`
	Proposals []proposal     `json:"proposals,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	Ref       string         `json:"supplier_user_ref,omitempty"`
	Display   string         `json:"display_name,omitempty"`

	kind, order string // for the log
}

// head is what all envelopes have (RSP §5).
type head struct {
	Type string `json:"type"`
	RSP  string `json:"rsp"`
}

// answer reads a signed envelope and does what it asks.
//
// A name that comes twice, or text that is not UTF-8, makes an envelope malformed:
// two readers could take it in two ways. Fields that are not known are ignored, and
// so are known ones where they do not belong (RSP §14).
func (d *Door) answer(ctx context.Context, body []byte) answer {
	var h head
	if err := json.Unmarshal(body, &h); err != nil {
		return answer{kind: "malformed"}.failed(codeInput, "malformed", "the envelope cannot be read")
	}
	kinds := map[string]func(context.Context, []byte) answer{
		"ping":            d.ping,
		"action.invoke":   d.invoke,
		"task.poll":       d.poll,
		"task.cancel":     d.cancel,
		"proposal.select": d.choose,
	}
	if d.options.Supplier.binds() {
		kinds["binding.verify"] = d.bind
	}
	handle, known := kinds[h.Type]
	switch {
	case h.Type == "":
		return answer{kind: "malformed"}.failed(codeInput, "malformed", "the envelope has no type")
	case h.RSP != "" && !major1.MatchString(h.RSP):
		// Another major may mean other things by the same words.
		return answer{kind: "other version"}.failed(codeUnsupported, "unknown_version", "only RSP 1.x is understood")
	case !known:
		return answer{kind: "unknown"}.failed(codeUnsupported, "unknown_type", "this type of envelope is not known here")
	case h.RSP == "":
		return answer{kind: h.Type}.failed(codeInput, "malformed", "the envelope has no rsp")
	}
	a := handle(ctx, body)
	a.kind = h.Type
	return a
}

func (d *Door) ping(_ context.Context, body []byte) answer {
	var e struct {
		Challenge jsontext.Value `json:"challenge"`
	}
	if err := json.Unmarshal(body, &e); err != nil || len(e.Challenge) == 0 {
		return answer{}.failed(codeInput, "malformed", "the ping has no challenge")
	}
	return answer{Status: statusOK, Challenge: e.Challenge, RSP: version}
}

// isID reports whether the text can be an id of Relay's: it goes into an address
// and into the log.
func isID(s string) bool {
	if s == "" || len(s) > maxID || s == "." || s == ".." {
		return false
	}
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}
