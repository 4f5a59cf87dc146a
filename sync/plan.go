package sync

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
)

// Plan says when each resource is due. It does not change.
type Plan struct {
	lines  []line // by resource
	jitter time.Duration
}

type line struct {
	resource string
	text     string
	schedule cron.Schedule
}

// NewPlan reads the resources' schedules, whose fields are meant in zone. A run
// begins up to jitter after its moment, and never later than a tenth of the
// time to the next one.
func NewPlan(schedules map[string]string, zone *time.Location, jitter time.Duration) (Plan, error) {
	p := Plan{jitter: jitter}
	for _, resource := range slices.Sorted(maps.Keys(schedules)) {
		s, err := parseSchedule(schedules[resource], zone)
		if err != nil {
			return Plan{}, fmt.Errorf("sync: schedule of %s: %w", resource, err)
		}
		p.lines = append(p.lines, line{resource, schedules[resource], s})
	}
	return p, nil
}

// Due is a resource whose moment has come. A complete round since then, by
// whichever worker, is the run that was due.
type Due struct {
	Resource string
	Moment   time.Time
}

// clockSlack is how far the clock may be set back without the plan being made
// anew. Less than that is a correction, and must not bring a moment back.
const clockSlack = time.Minute

// maxMissed bounds how many missed moments are counted one by one.
const maxMissed = 100_000

// agenda is a plan and how far it has been followed. It knows no clock: every
// method is told the time.
type agenda struct {
	plan Plan
	seed uint64
	next map[string]time.Time // by resource; none for one that is never due again
	seen time.Time
}

func newAgenda(p Plan, seed uint64, now time.Time) *agenda {
	a := &agenda{plan: p, seed: seed, next: map[string]time.Time{}, seen: now}
	for _, l := range p.lines {
		a.set(l, l.schedule.Next(now))
	}
	return a
}

func (a *agenda) set(l line, next time.Time) {
	delete(a.next, l.resource)
	if !next.IsZero() {
		a.next[l.resource] = next
	}
}

// catchUp makes due at once what missed its run while nobody was there, going
// by the last successes.
func (a *agenda) catchUp(successes map[string]time.Time, now time.Time) []Due {
	var due []Due
	for _, l := range a.plan.lines {
		if overdue(l.schedule, successes[l.resource], now) {
			due = append(due, Due{l.resource, now})
		}
	}
	return due
}

// take gives what is due and moves on. missed counts, by resource, the moments
// in between that nobody was awake for.
func (a *agenda) take(now time.Time) (due []Due, missed map[string]int) {
	if now.Before(a.seen.Add(-clockSlack)) {
		*a = *newAgenda(a.plan, a.seed, now)
	}
	a.seen = now
	missed = map[string]int{}
	begins := a.begins()
	for _, l := range a.plan.lines {
		moment, planned := a.next[l.resource]
		if !planned || begins[moment.UnixNano()].After(now) {
			continue
		}
		due = append(due, Due{l.resource, moment})
		next := l.schedule.Next(moment)
		for n := 0; !next.IsZero() && !next.After(now); n++ {
			if n == maxMissed {
				next = l.schedule.Next(now)
				break
			}
			missed[l.resource]++
			next = l.schedule.Next(next)
		}
		a.set(l, next)
	}
	return due, missed
}

// begins is when each planned moment's runs begin: after the moment's jitter,
// whose bound is the smallest of its resources'.
func (a *agenda) begins() map[int64]time.Time {
	bounds := map[int64]time.Duration{}
	for _, l := range a.plan.lines {
		if moment, planned := a.next[l.resource]; planned {
			b := jitterBound(l.schedule, moment, a.plan.jitter)
			if before, other := bounds[moment.UnixNano()]; other {
				b = min(b, before)
			}
			bounds[moment.UnixNano()] = b
		}
	}
	begins := make(map[int64]time.Time, len(bounds))
	for at, bound := range bounds {
		moment := time.Unix(0, at)
		begins[at] = moment.Add(jitter(a.seed, moment, bound))
	}
	return begins
}

// wake is how long nothing will be due, at most most.
func (a *agenda) wake(now time.Time, most time.Duration) time.Duration {
	for _, begin := range a.begins() {
		most = min(most, begin.Sub(now))
	}
	return max(most, 0)
}

// replace goes over to another plan. A line that stays the same keeps its next
// moment, and so does one whose moment has come and waits for its jitter.
func (a *agenda) replace(p Plan, now time.Time) {
	old := *a
	texts := map[string]string{}
	for _, l := range old.plan.lines {
		texts[l.resource] = l.text
	}
	*a = *newAgenda(p, old.seed, now)
	for _, l := range p.lines {
		moment, planned := old.next[l.resource]
		if planned && (texts[l.resource] == l.text || !moment.After(now)) {
			a.next[l.resource] = moment
		}
	}
}
