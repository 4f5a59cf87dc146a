package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxLimit is the largest page that the remote serves (contract §4.3).
const maxLimit = 200

// Query asks for one page of a resource's changes (contract §6).
type Query struct {
	Resource  string // the tool is <Resource>.changes.list
	SyncToken string // the token that the round began with; "" is null: everything
	Cursor    string // the previous page's next cursor; "" is null: the first page
	Limit     int    // records per page; below 1 or above 200: 200
}

// Page is one page as the remote said it. What may follow from it is not judged here.
type Page struct {
	Records       []json.RawMessage // the bytes that were sent, one record each; they share one buffer, which is read-only
	SnapshotID    string            // "" when not given
	DataCutoffAt  string            // as sent; "" when not given
	HasMore       bool
	NextCursor    string // "" when not given
	NextSyncToken string // "" when not given
	Notices       []string
	RequestID     string
	Bytes         int64 // the answer's size, decompressed
}

// arguments are the three of contract §6, in full and nothing else.
type arguments struct {
	SyncToken *string `json:"syncToken"`
	Cursor    *string `json:"cursor"`
	Limit     int     `json:"limit"`
}

// Changes gets one page. It fails with an [*Error], an error of Tokens, or the context's error.
func (c *Client) Changes(ctx context.Context, q Query) (*Page, error) {
	args := arguments{SyncToken: orNull(q.SyncToken), Cursor: orNull(q.Cursor), Limit: maxLimit}
	if q.Limit > 0 && q.Limit < maxLimit {
		args.Limit = q.Limit
	}
	var page *Page
	err := c.callTool(ctx, q.Resource+".changes.list", args, func(x *exchange, r toolResult) (int, error) {
		p, err := readPage(r.data, c.listKeys[q.Resource])
		if err != nil {
			e := x.fail(Malformed, err.Error())
			e.RequestID = r.requestID
			return 0, e
		}
		p.RequestID, p.Notices, p.Bytes = r.requestID, r.notices, x.size()
		page = p
		return len(p.Records), nil
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// readPage reads a page by its shape: the contract names the paging fields (§6) but not the list.
func readPage(data node, listKey string) (*Page, error) {
	records, err := recordList(data, listKey)
	if err != nil {
		return nil, err
	}
	p := &Page{Records: records}
	more := string(data.first("has_more", "hasMore").raw)
	switch more {
	case "true":
		p.HasMore = true
	case "false":
	case "":
		return nil, fmt.Errorf("has_more is missing among %s", names(data.names))
	default:
		return nil, fmt.Errorf("has_more is not a boolean")
	}
	fields := []struct {
		into         *string
		snake, camel string
		number       bool // may be a number, whose digits are kept
	}{
		{&p.NextCursor, "next_cursor", "nextCursor", false},
		{&p.NextSyncToken, "next_sync_token", "nextSyncToken", false},
		{&p.SnapshotID, "snapshot_id", "snapshotId", true},
		{&p.DataCutoffAt, "data_cutoff_at", "dataCutoffAt", true},
	}
	for _, f := range fields {
		n := data.first(f.snake, f.camel)
		if !n.present() {
			continue
		}
		text, ok := n.str()
		if !ok && f.number {
			text, ok = n.text()
		}
		switch {
		case !ok:
			return nil, fmt.Errorf("%s is not a text", f.snake)
		case strings.ContainsRune(text, 0):
			return nil, fmt.Errorf("%s has a NUL in it", f.snake)
		}
		*f.into = text
	}
	return p, nil
}

// recordList finds the records: the one array that is empty or holds objects. Among several the configured name decides;
// nothing is guessed, for a wrong list read as empty would look like a deletion.
func recordList(data node, listKey string) ([]json.RawMessage, error) {
	var found []string
	for _, name := range data.names {
		if n := data.members[name]; n.isArray() && !slices.Contains(noticeNames(), name) && listOfObjects(n.items) {
			found = append(found, name)
		}
	}
	switch {
	case len(found) == 1:
		return data.members[found[0]].items, nil
	case len(found) == 0 && listKey != "" && data.members[listKey].isArray():
		return data.members[listKey].items, nil
	case len(found) == 0:
		return nil, fmt.Errorf("no list of records among %s", names(data.names))
	case countOf(found, listKey) == 1:
		return data.members[listKey].items, nil
	default:
		return nil, fmt.Errorf("several lists, and no list_key says which has the records: %s", names(found))
	}
}

// listOfObjects accepts a list with an object in it, so that a stray record cannot hide the others, and an empty one.
func listOfObjects(items []json.RawMessage) bool {
	return len(items) == 0 || slices.ContainsFunc(items, func(item json.RawMessage) bool { return item[0] == '{' })
}

func countOf(all []string, name string) int {
	n := 0
	for _, s := range all {
		if s == name {
			n++
		}
	}
	return n
}

// names prints names for a message.
func names(all []string) string {
	if len(all) == 0 {
		return "no members"
	}
	return strings.Join(all, ", ")
}
