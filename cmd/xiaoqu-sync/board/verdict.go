package board

import (
	"fmt"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

// level is how much something matters. The names are classes of the style sheet.
type level int

const (
	levelOK   level = iota
	levelNote       // worth knowing; goes away by itself
	levelBad        // a person must act
)

func (l level) String() string {
	switch l {
	case levelBad:
		return "bad"
	case levelNote:
		return "note"
	default:
		return "ok"
	}
}

// finding is one thing to say about a resource.
type finding struct {
	Level level
	Text  string
}

// judge lists what is not as it should be with a resource, the gravest first.
// Records in quarantine are shown and not judged: they wait for no night duty.
func (b *board) judge(r mirror.ResourceStatus, now time.Time, w words) []finding {
	var bad, notes []finding
	held := heldBack(r)
	if held != nil {
		bad = append(bad, finding{levelBad, fmt.Sprintf(w.FindHeld, count(held.Deletes()), count(held.Live))})
	}
	if e := r.LastError; e != nil && held == nil {
		if b.opts.Retryable(e.Code) {
			notes = append(notes, finding{levelNote, fmt.Sprintf(w.FindRetried, e.Code)})
		} else {
			bad = append(bad, finding{levelBad, fmt.Sprintf(w.FindFailed, e.Code)})
		}
	}
	late := b.opts.Timetable(r.Resource).Late
	switch {
	case r.LastSuccessAt == nil:
		notes = append(notes, finding{levelNote, w.FindFirst})
	case late > 0 && now.Sub(*r.LastSuccessAt) > late:
		bad = append(bad, finding{levelBad, fmt.Sprintf(w.FindLate, w.span(now.Sub(*r.LastSuccessAt)), w.span(late))})
	}
	if r.Phase == mirror.PhaseRebuild && held == nil {
		notes = append(notes, finding{levelNote, w.FindRebuild})
	}
	if drifted(r) {
		notes = append(notes, finding{levelNote, w.FindDrift})
	}
	return append(bad, notes...)
}

// heldBack is what the deletion fuse holds, nil when it holds nothing.
func heldBack(r mirror.ResourceStatus) *mirror.Difference {
	if r.Pass == nil || r.Pass.Phase != "held" {
		return nil
	}
	return r.Pass.Difference
}

// drifted tells that the last verification found differences, and no rebuild
// has come since.
func drifted(r mirror.ResourceStatus) bool {
	return r.VerifiedDrift != nil && !r.VerifiedDrift.Equal() &&
		(r.RebuiltAt == nil || r.VerifiedAt != nil && r.VerifiedAt.After(*r.RebuiltAt))
}

func worst(fs []finding) level {
	w := levelOK
	for _, f := range fs {
		w = max(w, f.Level)
	}
	return w
}

// ofOutcome is how the end of a run looks on the page.
func ofOutcome(outcome string) string {
	switch outcome {
	case "":
		return "now"
	case "failed", "held", "drifted":
		return "bad"
	case "interrupted", mirror.OutcomeAbandoned:
		return "note"
	default:
		return "ok"
	}
}
