package remote

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is the longest wait that is passed on; whether to wait that long is not judged here.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads a Retry-After value, seconds or an HTTP date. What is past, negative or not understood is 0; what is
// huge is 24 h.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		switch {
		case !(seconds > 0): // NaN too
			return 0
		case seconds >= maxRetryAfter.Seconds():
			return maxRetryAfter
		}
		return time.Duration(seconds * float64(time.Second))
	}
	at, err := http.ParseTime(value)
	if err != nil || !at.After(now) {
		return 0
	}
	return min(at.Sub(now), maxRetryAfter)
}
