package relay_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent/relay"
)

// Nothing that is secret or personal reaches a log, at any level.
func TestNoLogHoldsASecretOrAPerson(t *testing.T) {
	b := &bindings{used: map[string]bool{}}
	w := open(t, func(o *relay.Options) { o.Supplier.UserBinding, o.Bindings = "token", b })
	w.mirror.record = `{"mobile":"13800001234","name":"canary_record"}`
	w.mirror.held = held()
	bound := func(order, action, input string) string {
		return strings.Replace(invocation(order, action, input), `"supplier_user_ref":null`, `"supplier_user_ref":"canary_account"`, 1)
	}
	now := time.Now()
	w.relay.say(`{"type":"ping","rsp":"1.0","issued_at":1,"challenge":"canary_challenge"}`)
	w.relay.say(`{"type":"canary_type","rsp":"canary_rsp"}`)
	w.relay.say(`{"type":"binding.verify","rsp":"1.0","issued_at":1,"relay_uid":"canary_uid","code":"c_canary"}`)
	b.fail = errors.New("the database is away")
	w.relay.say(`{"type":"binding.verify","rsp":"1.0","issued_at":1,"relay_uid":"canary_uid","code":"c_canary"}`)
	w.relay.say(bound("ord_1", "records_get", `{"resource":"users","id":"canary_id"}`))
	w.relay.say(bound("ord_2", "records_get", `{"resource":"users","canary_field":"13800001234"}`))
	w.relay.say(bound("ord_3", "canary_action", `{}`))
	w.relay.say(bound("ord_4", "records_get", `{"canary_input"`))
	w.mirror.fail = errors.New("boom")
	w.relay.say(bound("ord_5", "records_get", `{"resource":"users","id":"canary_id"}`))
	w.mirror.fail = nil
	w.relay.post("t=1,v1=canary_signature", `{"canary_body":1}`)
	w.relay.post(header("canary_secret", now, ping), ping)
	w.relay.answers(func(callback) (int, string) { return 409, `{"error":{"code":"order_final","message":"canary_answer"}}` })
	w.relay.say(bound("ord_6", "sync_run", `{}`))
	w.worker.done("done")
	w.relay.next()
	until(t, "the refused callback is noted", func() bool { return w.logs.FilterMessage("an event was not taken").Len() > 0 })

	if w.logs.Len() < 10 {
		t.Fatalf("only %d lines were written", w.logs.Len())
	}
	canaries := []string{
		"canary_", "13800001234", secret, "whsec", "c_canary", "u_pair_7f3a9c21d4", "小李", "v1=", hexMAC(secret, fmt.Sprintf("%d.%s", now.Unix(), ping)),
	}
	refused := false
	for _, line := range w.logs.All() {
		text := fmt.Sprint(line.Message, line.ContextMap())
		refused = refused || strings.Contains(text, "order_final")
		for _, c := range canaries {
			if strings.Contains(text, c) {
				t.Errorf("%q is in the log: %s", c, text)
			}
		}
	}
	if !refused {
		t.Error("nobody was told that the callback was refused")
	}
}
