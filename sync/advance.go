package sync

import (
	"fmt"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

// advance says where a round stands after a page (contract §6). It is pure
// and total: it either returns the next checkpoint or a MALFORMED error that
// names what was seen, and then nothing may move.
//
// The sync token stays the one that the round began with until the last page;
// only a last page brings the next one. An empty page with more to come is
// legal, so whether a round still gets anywhere is judged elsewhere (novelty).
// zone is for a cut-off that names none.
func advance(at mirror.Checkpoint, p *remote.Page, t trail, zone *time.Location) (mirror.Checkpoint, error) {
	if fault := contradiction(at, p, t); fault != "" {
		return at, malformed(at.Resource, p.RequestID, fault)
	}
	next := at
	// The last round's snapshot is not this one's, even if the first page names
	// none: every later page would then contradict it, for ever.
	if p.SnapshotID != "" || at.Pages == 0 {
		next.SnapshotID = p.SnapshotID
	}
	if cutoff, ok := mirror.ParseTime(p.DataCutoffAt, zone); ok {
		next.DataCutoffAt = &cutoff
	}
	if p.HasMore {
		next.Cursor = p.NextCursor
		next.Pages = at.Pages + 1
		return next, nil
	}
	next.SyncToken = p.NextSyncToken
	next.Cursor = ""
	next.Pages = 0
	next.Phase = mirror.PhaseIncremental
	return next, nil
}

// contradiction names the first thing about the page that the contract rules
// out, or "".
func contradiction(at mirror.Checkpoint, p *remote.Page, t trail) string {
	switch {
	case p.NextCursor != "" && p.NextSyncToken != "":
		return "the page has both next_cursor and next_sync_token"
	case p.HasMore && p.NextCursor == "":
		return "has_more is true and next_cursor is missing"
	case !p.HasMore && p.NextSyncToken == "":
		return "has_more is false and next_sync_token is missing"
	case at.Pages > 0 && at.SnapshotID != "" && p.SnapshotID != "" && p.SnapshotID != at.SnapshotID:
		return fmt.Sprintf("the snapshot changed within the round, from %.80q to %.80q", at.SnapshotID, p.SnapshotID)
	case p.HasMore && p.NextCursor == at.Cursor:
		return "next_cursor is the cursor of the request itself"
	case p.HasMore && t.visited(p.NextCursor):
		return fmt.Sprintf("next_cursor was already used in this round, %d pages in", at.Pages+1)
	}
	return ""
}

func malformed(resource, requestID, fault string) error {
	return &remote.Error{
		Code:      remote.Malformed,
		Tool:      resource + ".changes.list",
		RequestID: requestID,
		Message:   fault,
	}
}
