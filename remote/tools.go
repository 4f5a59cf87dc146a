package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const methodTools = "tools/list"

// Bounds of discovery.
const (
	maxToolPages  = 50
	toolAsks      = 3
	firstToolWait = 100 * time.Millisecond
)

var errNoTools = errors.New("an empty list of tools")

// Tools gives the names of the tools that the token may see (contract §4.1), sorted. Right after the handshake the list
// may come back empty (contract §2.1): then it is asked for again, three times in all. A list that stays empty is not an
// error of this package; but it may be that of a session whose notifications/initialized the remote never heard of, so the
// next call makes a new handshake.
func (c *Client) Tools(ctx context.Context) ([]string, error) {
	all, err := c.tools(ctx)
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.name
	}
	return names, err
}

// OutputSchema gives the JSON Schema that the remote offers for a tool's structured content, nil when it offers none or
// the token may not see the tool. The contract promises none.
func (c *Client) OutputSchema(ctx context.Context, name string) (json.RawMessage, error) {
	all, err := c.tools(ctx)
	for _, t := range all {
		if t.name == name {
			return t.output, err
		}
	}
	return nil, err
}

// tool is what is read of a tool's description.
type tool struct {
	name   string
	output json.RawMessage // nil without an outputSchema
}

func (c *Client) tools(ctx context.Context) ([]tool, error) {
	ctx, release := c.track(ctx)
	defer release()
	waits := backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstToolWait), backoff.WithMaxInterval(time.Second))
	var all []tool
	var last error
	ask := func() error {
		all, last = c.toolPages(ctx)
		var e *Error
		switch {
		case last == nil && len(all) == 0:
			return errNoTools
		case errors.As(last, &e) && e.CutShort:
			return last
		case last != nil:
			return backoff.Permanent(last)
		}
		return nil
	}
	err := backoff.Retry(ask, backoff.WithContext(backoff.WithMaxRetries(waits, toolAsks-1), ctx))
	switch {
	case err == nil:
		return all, nil
	case errors.Is(err, errNoTools):
		c.renounce()
		return all, nil
	case ctx.Err() != nil:
		return nil, contextError(ctx, methodTools)
	default:
		return nil, last
	}
}

// toolPages follows nextCursor to the end, which the SDK would do without a bound.
func (c *Client) toolPages(ctx context.Context) ([]tool, error) {
	all := []tool{}
	seen := map[string]bool{}
	for cursor := ""; ; {
		found, next, x, err := c.toolPage(ctx, cursor)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
		switch {
		case next == "":
			slices.SortStableFunc(all, func(a, b tool) int { return cmp.Compare(a.name, b.name) })
			return slices.CompactFunc(all, func(a, b tool) bool { return a.name == b.name }), nil
		case seen[next]:
			return nil, x.fail(Malformed, "nextCursor comes back to where it was")
		case len(seen)+1 >= maxToolPages:
			return nil, x.fail(Malformed, fmt.Sprintf("more than %d pages of tools", maxToolPages))
		}
		seen[next] = true
		cursor = next
	}
}

func (c *Client) toolPage(ctx context.Context, cursor string) (found []tool, next string, x *exchange, err error) {
	s, x, err := c.prepare(ctx, methodTools)
	if err != nil {
		return nil, "", nil, err
	}
	err = c.do(ctx, x, s,
		func(ctx context.Context, m *mcp.ClientSession) error {
			_, err := m.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			return err
		},
		func(raw []byte) error {
			result, err := parse(raw, 2)
			if err != nil {
				return x.short(Malformed, "the result is not JSON")
			}
			found = readTools(result.members["tools"])
			next, _ = result.members["nextCursor"].str()
			return nil
		})
	return found, next, x, err
}

// readTools reads the names and what else is well-formed: a tool whose schema is odd is still a tool.
func readTools(tools node) []tool {
	var all []tool
	for _, item := range tools.items {
		n, err := parse(item, 1)
		if err != nil {
			continue
		}
		if name, ok := n.members["name"].str(); ok && name != "" {
			t := tool{name: name}
			if output := n.members["outputSchema"]; output.isObject() {
				t.output = json.RawMessage(output.raw)
			}
			all = append(all, t)
		}
	}
	return all
}
