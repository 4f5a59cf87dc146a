package sync

import "time"

// PlanEvery is a plan with a period below the second that schedules end at.
func PlanEvery(resources []string, period time.Duration) Plan {
	p := Plan{}
	for _, r := range resources {
		p.lines = append(p.lines, line{r, "", grid{period}})
	}
	return p
}

// Hurry makes an engine's first wait before a retry this long, and all others
// in proportion. Tests alone may: in production the contract sets the pace.
func Hurry(e *Engine, first time.Duration) { e.pace = pace(first) }

// Together makes an engine commit at most so many pages at once. With one, a test
// knows what is committed when the next page is asked for.
func Together(e *Engine, pages int) { e.together = int64(pages) }
