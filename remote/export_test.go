package remote

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Call calls any tool on the client's session, through the same transport and tap as Changes, and gives the result as it
// was sent: the tools of servers that are not Xiaoqu's have no envelope.
func (c *Client) Call(ctx context.Context, tool string, arguments any) (json.RawMessage, error) {
	ctx, release := c.track(ctx)
	defer release()
	s, x, err := c.prepare(ctx, tool)
	if err != nil {
		return nil, err
	}
	var result json.RawMessage
	err = c.do(ctx, x, s,
		func(ctx context.Context, m *mcp.ClientSession) error {
			_, err := m.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
			return err
		},
		func(raw []byte) error {
			result = bytes.Clone(raw)
			return nil
		})
	return result, err
}
