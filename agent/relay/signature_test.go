package relay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent/relay"
)

// The examples of RSP appendix A, byte for byte.
const (
	exampleSecret   = "whsec_example_do_not_use"
	exampleEnvelope = `{"type":"action.invoke","rsp":"1.0","issued_at":1761055200,"order_id":"ord_01JBK7Q2M4X9TZ","action":"book_slot","manifest_version":1,"input":{"slot_id":"s_20261023_1500_haircut","name":"张三","phone":"13800001234"},"user":{"relay_uid":"u_pair_7f3a9c21d4","display_name":"小李","supplier_user_ref":null},"idempotency_key":"ord_01JBK7Q2M4X9TZ"}`
	exampleHeader   = "t=1761055200,v1=76d3727085c7031b4df41064e38ced9c187e1518a1eb4590b26b0a78da4f32eb"
	exampleCallback = `{"type":"completed","rsp":"1.0","order_id":"ord_01JBK9P3R5W2YQ","event_id":"evt_7781","occurred_at":1761058800,"output":{"data":{"article_url":"https://mp.example.com/s/abc"},"parts":[{"type":"link","url":"https://mp.example.com/s/abc","title":"查看已发布文章"}]}}`
	callbackHeader  = "t=1761058800,v1=60f6a93ae6b300db591e89b25844fe7c8db8c9726f34c82ee0121a16124420da"
)

func TestTheProtocolsOwnExamplesComeOutByteForByte(t *testing.T) {
	for _, x := range []struct {
		at           int64
		body, header string
	}{{1761055200, exampleEnvelope, exampleHeader}, {1761058800, exampleCallback, callbackHeader}} {
		if got := relay.Sign([]byte(exampleSecret), time.Unix(x.at, 0), []byte(x.body)); got != x.header {
			t.Errorf("signed as %s, want %s", got, x.header)
		}
		if !relay.Signed(x.header, []byte(x.body), [][]byte{[]byte(exampleSecret)}, time.Unix(x.at+7, 0)) {
			t.Errorf("%s is not taken", x.header)
		}
	}
}

func TestASignatureIsTakenOrRefused(t *testing.T) {
	const at, body = 1761055200, "the raw bytes"
	good := hexMAC("new", fmt.Sprintf("%d.%s", at, body))
	old := hexMAC("old", fmt.Sprintf("%d.%s", at, body))
	none := hexMAC("", fmt.Sprintf("%d.%s", at, body))
	bad := strings.Repeat("0", 64)
	for name, x := range map[string]struct {
		header string
		now    int64
		want   bool
	}{
		"the current secret's":         {"t=1761055200,v1=" + good, at, true},
		"the previous secret's":        {"t=1761055200,v1=" + old, at, true},
		"one of several, the last":     {"t=1761055200,v1=" + bad + ",v1=" + good, at, true},
		"one of several, the first":    {"t=1761055200,v1=" + good + ",v1=" + bad, at, true},
		"with a part of later times":   {"t=1761055200,v2=x,v1=" + good, at, true},
		"with spaces":                  {"t=1761055200, v1=" + good, at, true},
		"300 s late":                   {"t=1761055200,v1=" + good, at + 300, true},
		"301 s late":                   {"t=1761055200,v1=" + good, at + 301, false},
		"300 s early":                  {"t=1761055200,v1=" + good, at - 300, true},
		"301 s early":                  {"t=1761055200,v1=" + good, at - 301, false},
		"another time than was signed": {"t=1761055201,v1=" + good, at, false},
		"nobody's":                     {"t=1761055200,v1=" + bad, at, false},
		"an empty secret's":            {"t=1761055200,v1=" + none, at, false},
		"cut short":                    {"t=1761055200,v1=" + good[:62], at, false},
		"no hex":                       {"t=1761055200,v1=" + strings.Repeat("g", 64), at, false},
		"of another scheme":            {"t=1761055200,v0=" + good, at, false},
		"without a time":               {"v1=" + good, at, false},
		"with two times":               {"t=1,t=1761055200,v1=" + good, at, false},
		"with a signed time":           {"t=+1761055200,v1=" + good, at, false},
		"with an endless time":         {"t=" + strings.Repeat("9", 40) + ",v1=" + good, at, false},
		"without anything":             {"", at, false},
		"too many":                     {"t=1761055200" + strings.Repeat(",v1="+bad, 20) + ",v1=" + good, at, false},
	} {
		got := relay.Signed(x.header, []byte(body), [][]byte{[]byte("new"), []byte("old"), {}}, time.Unix(x.now, 0))
		if got != x.want {
			t.Errorf("%s: taken is %t", name, got)
		}
	}
}

func TestOneByteMakesAnotherBody(t *testing.T) {
	if relay.Signed(exampleHeader, []byte(exampleEnvelope+"\n"), [][]byte{[]byte(exampleSecret)}, time.Unix(1761055200, 0)) {
		t.Error("a body with a byte more is taken")
	}
	if relay.Signed(exampleHeader, []byte(exampleEnvelope), nil, time.Unix(1761055200, 0)) {
		t.Error("a body is taken where there is no secret")
	}
}
