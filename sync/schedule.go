package sync

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/robfig/cron/v3"
)

// CheckSchedule judges a resource's schedule: five cron fields, or @every with
// a duration, that has a next time at all.
func CheckSchedule(text string) error {
	s, err := parseSchedule(text, time.UTC)
	if err != nil {
		return err
	}
	if s.Next(time.Now()).IsZero() {
		return errors.New("this schedule has no next time")
	}
	return nil
}

// parseSchedule reads a schedule whose fields are meant in zone, unless it
// names one itself (CRON_TZ=…).
func parseSchedule(text string, zone *time.Location) (cron.Schedule, error) {
	s, err := cron.ParseStandard(text)
	if err != nil {
		return nil, err
	}
	switch s := s.(type) {
	case cron.ConstantDelaySchedule:
		return grid{s.Delay}, nil
	case *cron.SpecSchedule:
		if s.Location == time.Local {
			s.Location = zone
		}
		return gapless{s}, nil
	}
	return s, nil
}

// grid is @every: the multiples of a duration since the year 1970. All
// replicas, and one that starts again, then speak of the same moments; counted
// from each start they would not, and each replica would do every run.
type grid struct{ every time.Duration }

// Next is the first moment after t.
func (g grid) Next(t time.Time) time.Time {
	epoch := time.Unix(0, 0)
	return epoch.Add(t.Sub(epoch).Truncate(g.every) + g.every)
}

// gapless makes up for moments that the clock jumps over when summer time
// begins: a night without 02:30 has its run at the end of the jump. The
// library leaves that night out.
type gapless struct{ *cron.SpecSchedule }

// Next is the first moment after t, zero when there is none.
func (g gapless) Next(t time.Time) time.Time {
	next := g.SpecSchedule.Next(t)
	if next.IsZero() {
		return next
	}
	for at := t.In(g.Location); ; {
		_, jump := at.ZoneBounds()
		if jump.IsZero() || !jump.Before(next) {
			return next
		}
		_, before := jump.Add(-time.Second).In(g.Location).Zone()
		_, after := jump.In(g.Location).Zone()
		// What a clock that does not jump would show in the hour that is left out.
		still := *g.SpecSchedule
		still.Location = time.FixedZone("", before)
		missed := still.Next(jump.Add(-time.Second))
		if left := time.Duration(after-before) * time.Second; !missed.IsZero() && missed.Before(jump.Add(left)) && jump.After(t) {
			return jump.In(next.Location())
		}
		at = jump.In(g.Location)
	}
}

// overdue tells that a resource should have had a run since its last success;
// one that never had a success is.
func overdue(s cron.Schedule, last, now time.Time) bool {
	if last.IsZero() {
		return true
	}
	next := s.Next(last)
	return !next.IsZero() && !next.After(now)
}

// jitterShare is the part of a period that jitter may take at most.
const jitterShare = 10

// jitterBound is how long after its moment a run may begin: a tenth of the
// time to the next moment, and never more than most.
func jitterBound(s cron.Schedule, moment time.Time, most time.Duration) time.Duration {
	next := s.Next(moment)
	if next.IsZero() {
		return most
	}
	return min(next.Sub(moment)/jitterShare, most)
}

// jitter is a random part of bound. It is the same for all who ask with one
// seed for one moment, so that resources which are due together stay so.
func jitter(seed uint64, moment time.Time, bound time.Duration) time.Duration {
	r := rand.New(rand.NewPCG(seed, uint64(moment.UnixNano())))
	return time.Duration(r.Float64() * float64(bound))
}
