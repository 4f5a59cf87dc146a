package relay

import (
	"context"

	"github.com/go-json-experiment/json"
)

// maxCode bounds a binding code as a person copies it, in bytes.
const maxCode = 128

// bind redeems a binding code for a user (RSP §11). Relay bounds the attempts; the
// code is long enough to need no bound here.
func (d *Door) bind(ctx context.Context, body []byte) answer {
	var e struct {
		RelayUID string `json:"relay_uid"`
		Code     string `json:"code"`
	}
	if err := json.Unmarshal(body, &e); err != nil || !isID(e.RelayUID) || e.Code == "" || len(e.Code) > maxCode {
		return answer{}.failed(codeInput, "malformed", "the code or its user cannot be read")
	}
	ref, display, ok, err := d.options.Bindings.Redeem(ctx, e.Code, e.RelayUID)
	switch {
	case err != nil:
		return d.trouble(answer{}, err)
	case !ok:
		return answer{}.failed(codeInput, "unknown_code", "the binding code is unknown, was used, or has expired")
	}
	return answer{Status: statusBound, Ref: ref, Display: display}
}
