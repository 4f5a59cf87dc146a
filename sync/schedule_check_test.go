package sync_test

import (
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

func TestCheckSchedule(t *testing.T) {
	for text, good := range map[string]bool{
		"*/5 * * * *": true, "@every 5m": true, "0 2 * * 1-5": true, "@hourly": true,
		"": false, "rubbish": false, "* * * *": false, "0 0 * * * *": false, "61 * * * *": false, "0 0 30 2 *": false,
	} {
		if err := sync.CheckSchedule(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}
