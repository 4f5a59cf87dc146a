package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// bare is the least that can bring a page: net/http and nothing else. It is the
// floor that the worker is held against, so it checks nothing.
type bare struct {
	http    *http.Client
	url     string
	token   string
	session string
	body    bytes.Buffer
	raw     bool // parse the page down to raw records, instead of looking for the cursor alone
}

// shake gets a token and a session (contract §3.2, §2.1).
func shake(ctx context.Context, s *simulator, raw bool) (*bare, error) {
	c := &bare{http: &http.Client{}, url: s.url, raw: raw}
	ensure := http.Header{"X-Open-Key": {s.key}, "Content-Type": {"application/json"}}
	if _, err := c.post(ctx, "/api/open/token/ensure", ensure, `{"scopeCode":"sync","principalType":"service","serviceName":"bare"}`); err != nil {
		return nil, err
	}
	var answer struct{ Token string }
	if err := json.Unmarshal(c.body.Bytes(), &answer); err != nil {
		return nil, err
	}
	c.token = answer.Token
	head, err := c.rpc(ctx, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bare","version":"1"}}}`)
	if err != nil {
		return nil, err
	}
	c.session = head.Get("Mcp-Session-Id")
	_, err = c.rpc(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c, err
}

// beside is another one on the same session, for another goroutine.
func (c *bare) beside() *bare {
	return &bare{http: c.http, url: c.url, token: c.token, session: c.session, raw: c.raw}
}

func (c *bare) post(ctx context.Context, path string, head http.Header, body string) (http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = head
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	c.body.Reset()
	if _, err := io.Copy(&c.body, resp.Body); err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("bare: %s: %s", path, resp.Status)
	}
	return resp.Header, nil
}

func (c *bare) rpc(ctx context.Context, body string) (http.Header, error) {
	head := http.Header{
		"Authorization": {"Bearer " + c.token}, "Content-Type": {"application/json"},
		"Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2025-06-18"}, "X-Mcp-Schema-Version": {"2"},
	}
	if c.session != "" {
		head.Set("Mcp-Session-Id", c.session)
	}
	return c.post(ctx, "/mcp", head, body)
}

func (c *bare) tool(ctx context.Context, name, arguments string) error {
	_, err := c.rpc(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments))
	return err
}

// greet asks what every sync must ask before its first page (contract §6).
func (c *bare) greet(ctx context.Context) error {
	if err := c.tool(ctx, "integration.context.get", "{}"); err != nil {
		return err
	}
	_, err := c.rpc(ctx, `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`)
	return err
}

// turned is what has to be known of a page to ask for the next one.
type turned struct {
	Records       []json.RawMessage `json:"records"`
	HasMore       bool              `json:"has_more"`
	NextCursor    string            `json:"next_cursor"`
	NextSyncToken string            `json:"next_sync_token"`
}

// drain fetches a round's pages, drops them, and gives the next round's token.
func (c *bare) drain(ctx context.Context, resource, since string) (token string, pages int, err error) {
	arguments := fmt.Sprintf(`{"syncToken":%s,"cursor":null,"limit":%d}`, quoted(since), pageSize)
	for {
		if err := c.tool(ctx, resource+".changes.list", arguments); err != nil {
			return "", pages, err
		}
		pages++
		p, err := c.page()
		if err != nil || !p.HasMore {
			return p.NextSyncToken, pages, err
		}
		arguments = fmt.Sprintf(`{"syncToken":%s,"cursor":%s,"limit":%d}`, quoted(since), quoted(p.NextCursor), pageSize)
	}
}

func quoted(text string) string {
	if text == "" {
		return "null"
	}
	return `"` + text + `"` // cursors and tokens here need no escaping
}

func (c *bare) page() (turned, error) {
	_, data, found := bytes.Cut(c.body.Bytes(), []byte("data: "))
	if !found {
		return turned{}, errors.New("bare: an answer without data")
	}
	if c.raw {
		var m struct {
			Result struct {
				StructuredContent struct{ Data turned }
			}
		}
		err := json.Unmarshal(data, &m)
		return m.Result.StructuredContent.Data, err
	}
	text := func(name string) string {
		_, rest, _ := bytes.Cut(data, []byte(`"`+name+`":"`))
		value, _, _ := bytes.Cut(rest, []byte(`"`))
		return string(value)
	}
	p := turned{NextCursor: text("next_cursor"), NextSyncToken: text("next_sync_token")}
	p.HasMore = p.NextCursor != ""
	if !p.HasMore && p.NextSyncToken == "" {
		return turned{}, errors.New("bare: a page that leads nowhere")
	}
	return p, nil
}
