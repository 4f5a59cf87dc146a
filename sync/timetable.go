package sync

import (
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

// CheckSchedule judges a resource's schedule: five cron fields, or @every with
// a duration, that has a next time at all.
func CheckSchedule(text string) error {
	schedule, err := cron.ParseStandard(text)
	if err != nil {
		return fmt.Errorf("not a schedule: %w", err)
	}
	if schedule.Next(time.Now()).IsZero() {
		return errors.New("this schedule has no next time")
	}
	return nil
}
