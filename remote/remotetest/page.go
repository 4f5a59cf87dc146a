package remotetest

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Page is a page of changes before it becomes JSON. A fault may change every
// field; nothing is checked when it is rendered.
type Page struct {
	Records       []json.RawMessage // shared with the store: replace, do not write into
	ListName      string            // empty: what Variants say
	List          json.RawMessage   // replaces the whole list
	NoList        bool
	SnapshotID    string
	DataCutoffAt  string
	HasMore       bool
	NextCursor    *string
	NextSyncToken *string
	Notice        string
	Extra         string // more members, e.g. `"total":5`

	Number        int     // of the page in its round, from 1
	RequestCursor *string // that asked for it

	resource string
	token    string
	fresh    func(salt int) string
}

// FreshCursor gives a valid cursor to this very page: following it brings the
// same rows again. Different salts give different texts.
func (p *Page) FreshCursor(salt int) string { return p.fresh(salt) }

// SyncToken gives the token that the round's last page carries.
func (p *Page) SyncToken() string { return p.token }

// render writes the data object of a page.
func (p *Page) render(v Variants) []byte {
	size := 512
	for _, r := range p.Records {
		size += len(r) + 1
	}
	b := make([]byte, 0, size)
	b = append(b, `{"snapshot_id":`...)
	b = appendString(b, p.SnapshotID)
	b = append(b, `,"data_cutoff_at":`...)
	b = appendString(b, p.DataCutoffAt)
	b = append(b, `,"has_more":`...)
	b = strconv.AppendBool(b, p.HasMore)
	b = appendOptional(b, "next_cursor", p.NextCursor, v.AbsentNulls)
	b = appendOptional(b, "next_sync_token", p.NextSyncToken, v.AbsentNulls)
	if p.Notice != "" && !v.NoticeInEnvelope {
		b = append(b, `,"notice":`...)
		b = appendString(b, p.Notice)
	}
	if p.Extra != "" {
		b = append(append(b, ','), p.Extra...)
	}
	if !p.NoList {
		b = append(b, ',')
		b = appendString(b, p.listName(v))
		b = append(b, ':')
		b = p.appendList(b)
	}
	return append(b, '}')
}

// listName resolves the name of the list; {resource} stands for the resource.
func (p *Page) listName(v Variants) string {
	name := orString(p.ListName, orString(v.ListName, "records"))
	return strings.ReplaceAll(name, "{resource}", p.resource)
}

func (p *Page) appendList(b []byte) []byte {
	if p.List != nil {
		return append(b, p.List...)
	}
	b = append(b, '[')
	for i, r := range p.Records {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, r...)
	}
	return append(b, ']')
}

func appendOptional(b []byte, name string, value *string, absent bool) []byte {
	if value == nil && absent {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	if value == nil {
		return append(b, "null"...)
	}
	return appendString(b, *value)
}

// appendString writes a JSON string. Plain ASCII, which times and ids are, is
// copied: it is most of the work of making 100,000 records.
func appendString(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			q, err := json.Marshal(s)
			if err != nil {
				panic("remotetest: " + err.Error()) // a string always marshals
			}
			return append(b, q...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func quote(s string) string { return string(appendString(nil, s)) }
