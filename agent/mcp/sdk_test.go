package mcp_test

import (
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK's client as it comes, which first asks for a revision without sessions, and
// opens a stream for what a server might say by itself.
func TestTheSDKsClientGetsAlong(t *testing.T) {
	s := open(t, func(st *stage) { st.door.Context.AllowUnsigned = true })
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: s.url + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v := session.InitializeResult().ProtocolVersion; v != "2025-11-25" {
		t.Errorf("version %s", v)
	}
	listed, err := session.ListTools(t.Context(), nil)
	if err != nil || len(listed.Tools) != len(s.service.Capabilities()) {
		t.Errorf("%d tools, %v", len(listed.Tools), err)
	}
	r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "mirror_status", Arguments: map[string]any{}})
	if err != nil || r.IsError {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "none", Arguments: map[string]any{}}); err == nil {
		t.Error("a tool that is not there")
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}
