package credentials

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// pace spaces the attempts: 1, 2, 4 … s with jitter (contract §5), longer when
// the remote asks for it, never longer than maxWait: RetryAfter is cut there,
// and a fifth of jitter on the longest interval ends there.
type pace struct {
	backoff.BackOff
	asked time.Duration
}

func newPace() *pace {
	growing := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(time.Second),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0.2),
		backoff.WithMaxInterval(maxWait*10/12),
		backoff.WithMaxElapsedTime(0),
	)
	return &pace{BackOff: backoff.WithMaxRetries(growing, maxAttempts-1)}
}

// follow takes over what the last failure asked for.
func (p *pace) follow(failure *Error) {
	p.asked = 0
	if failure != nil {
		p.asked = failure.RetryAfter
	}
}

// NextBackOff gives the next wait, or backoff.Stop.
func (p *pace) NextBackOff() time.Duration {
	wait := p.BackOff.NextBackOff()
	if wait == backoff.Stop {
		return wait
	}
	return max(wait, p.asked)
}
