package board

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

// resource makes one resource's part of the page.
func (b *board) resource(s mirror.ResourceStatus, r reading, w words) resource {
	now := r.status.At
	v := resource{Name: s.Resource, Findings: b.judge(s, now, w), Working: s.Lease != nil, Age: w.Never}
	v.Level = worst(v.Findings)
	v.Pill = [...]string{levelOK: w.PillOK, levelNote: w.PillNote, levelBad: w.PillBad}[v.Level]
	if s.AgeSeconds != nil {
		v.Age = w.span(time.Duration(*s.AgeSeconds) * time.Second)
	}
	if t := s.DataCutoffAt; t != nil {
		m := b.moment(*t, now)
		v.AsOf = &m
	}
	v.Facts = b.facts(s, now, w)
	if e := s.LastError; e != nil && heldBack(s) == nil { // what is held says more than its code
		v.Error = &lastError{Code: e.Code, Meaning: w.meaning(e.Code), RequestID: b.opts.Redact(e.RequestID), At: b.moment(e.At, now)}
	}
	if d := heldBack(s); d != nil {
		v.Held = b.held(*d, w)
	}
	for _, q := range r.reasons {
		if q.Resource == s.Resource {
			v.Reasons = append(v.Reasons, reason{Kind: w.kind(q.Kind), Reason: q.Reason, Count: count(q.Records)})
		}
	}
	runs := slices.Clone(r.runs[s.Resource])
	for _, one := range runs[:min(len(runs), tableRuns)] {
		v.Runs = append(v.Runs, b.run(one, now, w))
	}
	slices.Reverse(runs)
	v.Took, v.Rows = b.charts(runs, now, w)
	return v
}

func (b *board) facts(s mirror.ResourceStatus, now time.Time, w words) []fact {
	success := fact{Name: w.FactSuccess, Value: w.Never}
	if t := s.LastSuccessAt; t != nil {
		success.Value, success.More = w.ago(now.Sub(*t)), b.clock(*t, now)
	}
	next := fact{Name: w.FactNext, Value: w.Unknown}
	if t := b.opts.Timetable(s.Resource).Next; !t.IsZero() {
		next.Value, next.More = w.ahead(t.Sub(now)), b.clock(t, now)
	}
	lease := fact{Name: w.FactLease, Value: w.Nobody}
	if h := s.Lease; h != nil {
		lease.Value = fmt.Sprintf("%s · %d", b.opts.Redact(h.Host), h.PID)
		lease.More = fmt.Sprintf(w.Since, b.clock(h.Since, now))
	}
	facts := []fact{
		{Name: w.FactRows, Value: count(s.LiveRows), More: more(w.RowsDeleted, s.DeletedRows)},
		success, next, lease,
		{Name: w.FactQuarantine, Value: count(s.Quarantined), More: more(w.Mended, s.Mended)},
	}
	switch {
	case s.Pass != nil:
		facts = append(facts, fact{
			Name: w.FactPass, Value: fmt.Sprintf(w.RowsPage, count(s.Pass.Rows), count(s.Pass.Pages)),
			More: fmt.Sprintf(w.Since, b.clock(s.Pass.StartedAt, now)),
		})
	case s.PagesInHand > 0:
		facts = append(facts, fact{Name: w.FactInHand, Value: count(s.PagesInHand)})
	}
	return facts
}

// more says how many there are beside, "" when there are none.
func more(form string, n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(form, count(n))
}

// held describes what a held rebuild would do: deletions first, they are why it
// is held.
func (b *board) held(d mirror.Difference, w words) []sample {
	var all []sample
	for _, kind := range []struct {
		key, name string
		n         int64
	}{
		{"absent", w.Absent, d.Absent},
		{"tombstoned", w.Tombstoned, d.Tombstoned},
		{"inserted", w.Inserted, d.Inserted},
		{"updated", w.Updated, d.Updated},
		{"revived", w.Revived, d.Revived},
	} {
		if kind.n == 0 {
			continue
		}
		s := sample{Name: kind.name, Count: count(kind.n)}
		for _, id := range d.Samples[kind.key] {
			s.IDs = append(s.IDs, shown(b.opts.Redact(id)))
		}
		all = append(all, s)
	}
	return all
}

// shown shortens an id that is too long for a page.
func shown(id string) string {
	if len(id) <= maxShownID {
		return id
	}
	cut := maxShownID
	for cut > 0 && !utf8.RuneStart(id[cut]) {
		cut--
	}
	return id[:cut] + "…"
}

func (b *board) run(r mirror.Run, now time.Time, w words) run {
	return run{
		Started: b.moment(r.StartedAt, now), Class: ofOutcome(r.Outcome), Outcome: w.outcome(r.Outcome), Mode: w.mode(r.Mode),
		Took: w.exact(lasted(r, now)), Received: count(r.Counts.Received), Changed: count(r.Counts.Stored()),
	}
}

// count writes a number in groups of three.
func count(n int64) string {
	digits := fmt.Sprint(n)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return sign + b.String()
}
