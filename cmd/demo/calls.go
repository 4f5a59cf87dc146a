package main

import "strings"

// call is a call through a door, as a person can paste it into a shell.
type call struct {
	title, script string
	want          string // a part of a good answer
}

func calls(address, token string) []call {
	fill := strings.NewReplacer("{base}", "http://"+address, "{token}", token, "{key}", demoXiaoyaKey, "{secret}", demoRelaySecret)
	all := []call{
		{"AgentUse: one call over plain HTTP", apiCall, `"ok":true`},
		{"Xiaoya: one call as the platform makes it, signed", xiaoyaCall, `"status":"completed"`},
		{"Relay: one order as Relay sends it, signed", relayCall, `"status":"completed"`},
	}
	for i := range all {
		all[i].script = fill.Replace(all[i].script)
	}
	return all
}

const apiCall = `curl -s {base}/api/v1/capabilities/mirror.freshness \
  -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' -d '{}'`

const xiaoyaCall = `MCP={base}/mcp
TYPES='Accept: application/json, text/event-stream'
SESSION=$(curl -s -D - -o /dev/null $MCP -H "$TYPES" -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,
  "method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"demo","version":"1"}}}' |
  tr -d '\r' | sed -n 's/^[Mm]cp-[Ss]ession-[Ii]d: //p')
curl -s $MCP -H "$TYPES" -H 'Content-Type: application/json' -H "Mcp-Session-Id: $SESSION" \
  -d '{"jsonrpc":"2.0","method":"notifications/initialized"}'
T=$(date +%s) ID=inv_$(openssl rand -hex 8)
BODY='{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mirror_freshness","arguments":{}}}'
SIGNATURE=$(printf '%s' "$T.crm-mirror.$ID.$BODY" | openssl dgst -sha256 -hmac '{key}' | sed 's/.* //')
curl -s $MCP -H "$TYPES" -H 'Content-Type: application/json' -H "Mcp-Session-Id: $SESSION" \
  -H 'X-Xiaoya-Agent-Id: crm-mirror' -H "X-Xiaoya-Invocation-Id: $ID" \
  -H "X-Xiaoya-Timestamp: $T" -H "X-Xiaoya-Signature: $SIGNATURE" -d "$BODY"`

const relayCall = `T=$(date +%s) ORDER=ord_$(openssl rand -hex 8)
BODY='{"type":"action.invoke","rsp":"1.0","issued_at":'$T',"order_id":"'$ORDER'","idempotency_key":"'$ORDER'",
  "action":"mirror_freshness","manifest_version":1,"input":{},"user":{"relay_uid":"u_demo","supplier_user_ref":null}}'
SIGNATURE=$(printf '%s' "$T.$BODY" | openssl dgst -sha256 -hmac '{secret}' | sed 's/.* //')
curl -s {base}/relay -H 'Content-Type: application/json' -H "X-Relay-Signature: t=$T,v1=$SIGNATURE" --data-raw "$BODY"`
