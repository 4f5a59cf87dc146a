package remotetest

import (
	"encoding/json"
	"sync"
)

// PageFault is a page that breaks the contract.
type PageFault string

// The ready-made broken pages.
const (
	NoCursor       PageFault = "has_more without next_cursor"
	NoToken        PageFault = "last page without next_sync_token"
	TokenAndCursor PageFault = "both next_cursor and next_sync_token"
	NeitherNor     PageFault = "empty page with neither cursor nor token"
	SameCursor     PageFault = "next_cursor is the cursor of the request"
	OtherSnapshot  PageFault = "another snapshot_id"
	NoSnapshot     PageFault = "empty snapshot_id"
	NoList         PageFault = "no list of records"
	NullList       PageFault = "the list is null"
	ListOfNumbers  PageFault = "the list has no objects"
	TwoLists       PageFault = "two lists of objects"
	OtherListName  PageFault = "the list under another name"
)

// PageFaults lists them. TwoLists and OtherListName are pages that the contract
// does not forbid; SameCursor and OtherSnapshot show from page 2 on.
func PageFaults() []PageFault {
	return []PageFault{
		NoCursor, NoToken, TokenAndCursor, NeitherNor, SameCursor, OtherSnapshot, NoSnapshot, NoList, NullList,
		ListOfNumbers, TwoLists, OtherListName,
	}
}

// Mutate lets f change a page before it is sent. F may use the server.
func Mutate(f func(*Page)) Effect { return Effect{mutate: f} }

// Mangle sends a page as f says.
func Mangle(f PageFault) Effect { return Mutate(f.apply) }

func (f PageFault) apply(p *Page) {
	switch f {
	case NoCursor:
		p.HasMore, p.NextCursor, p.NextSyncToken = true, nil, nil
	case NoToken:
		p.HasMore, p.NextCursor, p.NextSyncToken = false, nil, nil
	case TokenAndCursor:
		next, token := p.FreshCursor(1), p.SyncToken()
		p.NextCursor, p.NextSyncToken = &next, &token
	case NeitherNor:
		p.Records, p.HasMore, p.NextCursor, p.NextSyncToken = nil, false, nil, nil
	case SameCursor:
		if p.RequestCursor != nil {
			p.HasMore, p.NextCursor, p.NextSyncToken = true, p.RequestCursor, nil
		}
	case OtherSnapshot:
		if p.Number > 1 {
			p.SnapshotID += "-other"
		}
	case NoSnapshot:
		p.SnapshotID = ""
	case NoList:
		p.NoList = true
	case NullList:
		p.List = json.RawMessage("null")
	case ListOfNumbers:
		p.List = json.RawMessage("[1,2,3]")
	case TwoLists:
		p.Extra = `"related":[{"id":1,"name":"不是记录"}]`
	case OtherListName:
		p.ListName = "rows_of_another_name"
	}
}

// Cycle makes the nth page lead back to the page that the first cursor leads
// to, so that the cursors go round for ever. For use with Fault.Times < 0 and
// one resource; n is at least 1.
func Cycle(n int) Effect {
	var (
		mu   sync.Mutex
		seen []*string
	)
	return Mutate(func(p *Page) {
		mu.Lock()
		defer mu.Unlock()
		if len(seen) < n && p.NextCursor != nil {
			seen = append(seen, p.NextCursor)
			return
		}
		if len(seen) > 0 && p.Number > n {
			p.HasMore, p.NextCursor, p.NextSyncToken = true, seen[0], nil
		}
	})
}

// Endless makes every page lead to itself by a cursor that looks new: has_more
// for ever, and nothing new. For use with Fault.Times < 0.
func Endless() Effect {
	var (
		mu   sync.Mutex
		salt int
	)
	return Mutate(func(p *Page) {
		mu.Lock()
		defer mu.Unlock()
		salt++
		next := p.FreshCursor(salt)
		p.HasMore, p.NextCursor, p.NextSyncToken = true, &next, nil
	})
}
