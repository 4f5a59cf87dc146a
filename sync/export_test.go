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
