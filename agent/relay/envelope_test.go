package relay_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestAPingComesBackAsItWas(t *testing.T) {
	w := open(t, nil)
	for _, challenge := range []string{`"c_81"`, `"中\u0000<>"`, `12345678901234567890`, `{"a":[1.10]}`} {
		r := w.relay.say(`{"type":"ping","rsp":"1.0","issued_at":1,"challenge":` + challenge + `}`)
		var want, got any
		_ = json.Unmarshal([]byte(challenge), &want)
		_ = json.Unmarshal(r.Challenge, &got)
		if r.Status != "ok" || r.RSP != "1.0" || len(r.Challenge) == 0 || !equal(got, want) {
			t.Errorf("%s: %s", challenge, r.Raw)
		}
	}
}

func equal(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func TestEveryEnvelopeHasAnAnswer(t *testing.T) {
	w := open(t, nil)
	w.mirror.record = `{}`
	order := invocation("ord_e1", "mirror_freshness", `{}`)
	with := func(old, with string) string {
		if !strings.Contains(order, old) {
			t.Fatalf("%s is not in the order", old)
		}
		return strings.Replace(order, old, with, 1)
	}
	for name, x := range map[string]struct{ body, status, code string }{
		"a type of later times":            {`{"type":"order.rate","rsp":"1.0","issued_at":1}`, "failed", "not_supported"},
		"a binding that is not offered":    {`{"type":"binding.verify","rsp":"1.0","issued_at":1,"relay_uid":"u","code":"c"}`, "failed", "not_supported"},
		"a later minor version":            {with(`"rsp":"1.0"`, `"rsp":"1.17"`), "completed", ""},
		"another major version":            {with(`"rsp":"1.0"`, `"rsp":"2.0"`), "failed", "not_supported"},
		"no version":                       {with(`"rsp":"1.0",`, ``), "failed", "invalid_input"},
		"a field of later times":           {with(`"issued_at"`, `"trace":{"x":[1]},"issued_at"`), "completed", ""},
		"a field that belongs elsewhere":   {with(`"issued_at"`, `"challenge":7,"proposal_id":[],"issued_at"`), "completed", ""},
		"a name in another case":           {with(`"issued_at"`, `"Type":"ping","TYPE":1,"issued_at"`), "completed", ""},
		"an old manifest":                  {with(`"manifest_version":1`, `"manifest_version":99`), "completed", ""},
		"a name twice":                     {with(`"issued_at"`, `"type":"ping","issued_at"`), "failed", "invalid_input"},
		"a name twice in the input":        {with(`"input":{}`, `"input":{"resources":["users"],"resources":["users"]}`), "failed", "invalid_input"},
		"no JSON":                          {`{"type":`, "failed", "invalid_input"},
		"a list":                           {`[]`, "failed", "invalid_input"},
		"null":                             {`null`, "failed", "invalid_input"},
		"nothing":                          {``, "failed", "invalid_input"},
		"no UTF-8":                         {"{\"type\":\"ping\xff\",\"rsp\":\"1.0\"}", "failed", "invalid_input"},
		"something after it":               {ping + ping, "failed", "invalid_input"},
		"a deep nest":                      {strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000), "failed", "invalid_input"},
		"a ping without a challenge":       {`{"type":"ping","rsp":"1.0","issued_at":1}`, "failed", "invalid_input"},
		"no order":                         {with(`"order_id":"ord_e1"`, `"order_id":""`), "failed", "invalid_input"},
		"an order that leads elsewhere":    {strings.ReplaceAll(order, "ord_e1", ".."), "failed", "invalid_input"},
		"an order with a line's end":       {strings.ReplaceAll(order, "ord_e1", `o\nd`), "failed", "invalid_input"},
		"a key that is not the order":      {with(`"idempotency_key":"ord_e1"`, `"idempotency_key":"ord_e2"`), "failed", "invalid_input"},
		"no key":                           {with(`,"idempotency_key":"ord_e1"`, ``), "failed", "invalid_input"},
		"a user with NUL":                  {with(`"u_pair_7f3a9c21d4"`, `"u\u0000"`), "failed", "invalid_input"},
		"an unknown action":                {invocation("ord_e3", "book_slot", `{}`), "failed", "invalid_input"},
		"an action by its id":              {invocation("ord_e4", "mirror.freshness", `{}`), "failed", "invalid_input"},
		"an input that is no object":       {invocation("ord_e5", "mirror_freshness", `[]`), "failed", "invalid_input"},
		"an input with more than it has":   {invocation("ord_e6", "mirror_freshness", `{"x":1}`), "failed", "invalid_input"},
		"an input with NUL":                {invocation("ord_e7", "records_get", `{"resource":"users","id":"\u0000"}`), "completed", ""},
		"a choice that a person makes":     {invocation("ord_e8", "rebuild_resolve", `{"resource":"users","choice":"abort"}`), "failed", "invalid_input"},
		"a poll of no order":               {`{"type":"task.poll","rsp":"1.0","order_id":"ord_no","task_id":"task_no"}`, "failed", "invalid_input"},
		"a cancel of no order":             {`{"type":"task.cancel","rsp":"1.0","order_id":"ord_no","task_id":"task_no"}`, "failed", "invalid_input"},
		"a choice for no order":            {`{"type":"proposal.select","rsp":"1.0","order_id":"ord_no","task_id":"x","proposal_id":"y"}`, "failed", "invalid_input"},
		"a poll whose order is no text":    {`{"type":"task.poll","rsp":"1.0","order_id":{},"task_id":"task_no"}`, "failed", "invalid_input"},
		"a poll with another order's task": {`{"type":"task.poll","rsp":"1.0","order_id":"ord_e1","task_id":"task_no"}`, "failed", "invalid_input"},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.relay.say(x.body)
			if r.Status != x.status || r.Error != nil && r.Error.Code != x.code || x.code != "" && r.Error == nil {
				t.Errorf("HTTP %d: %s", r.HTTP, r.Raw)
			}
		})
	}
}

// Whatever is signed has an answer of the protocol's, and never a server's error.
func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{
		ping, exampleEnvelope, exampleCallback, ``, `{}`, `{"type":1}`, `[`, "{\"type\":\"\xff\"}",
		`{"type":"task.poll","rsp":"1.0","order_id":"ord_1","task_id":"t"}`,
		`{"type":"task.cancel","rsp":"1.9","order_id":"ord_1","task_id":"t","reason":"x"}`,
		`{"type":"proposal.select","rsp":"1.0","order_id":"ord_1","task_id":"t","proposal_id":"abort"}`,
		`{"type":"binding.verify","rsp":"1.0","relay_uid":"u","code":"c"}`,
		invocation("ord_f1", "records_get", `{"resource":"users","id":"1"}`),
		invocation("ord_f2", "rebuild_resolve", `{"resource":"users"}`),
		invocation("ord_f3", "records_search", `{"resource":"users","filters":[{"column":"a","op":"eq","value":"\u0000"}]}`),
	} {
		f.Add(seed)
	}
	w := open(f, nil)
	allowed := map[string]bool{
		"ok": true, "completed": true, "failed": true, "accepted": true, "pending": true, "proposals": true,
		"cancelled": true, "cancel_failed": true, "selected": true, "bound": true,
	}
	codes := map[string]bool{
		"invalid_input": true, "not_available": true, "unauthorized": true, "rate_limited": true,
		"temporary": true, "permanent": true, "not_supported": true,
	}
	f.Fuzz(func(t *testing.T, body string) {
		r, err := w.relay.try(header(secret, time.Now(), body), body)
		if err != nil {
			t.Fatal(err)
		}
		if len(body) > 1<<20 {
			return
		}
		if r.HTTP != 200 || !allowed[r.Status] || (r.Status == "failed") != (r.Error != nil) || r.Error != nil && !codes[r.Error.Code] {
			t.Fatalf("HTTP %d: %s", r.HTTP, r.Raw)
		}
	})
}
