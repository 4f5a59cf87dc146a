package vault

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/vault/api"
	"go.uber.org/zap"
)

// soon is the least wait between two attempts to renew.
const soon = 500 * time.Millisecond

// Keep keeps the login alive until ctx ends: the token is renewed when two thirds
// of its time are over, and replaced by a new login when Vault grants it less than
// at first, since that is how the maximum shows. The library's LifetimeWatcher is
// not used: it ends after the token does, and what the token brought (the
// database's login) would end before its successor is there.
func (c *Client) Keep(ctx context.Context) {
	failed := 0
	for {
		s, turned := c.current()
		if !wait(ctx, s.next(failed), turned) {
			if ctx.Err() != nil {
				return
			}
			failed = 0
			continue
		}
		if err := c.extend(ctx, s); err != nil {
			failed++
			c.o.Logger.Warn("the login to Vault could not be prolonged", zap.Error(err), zap.Time("ends", s.expires))
			continue
		}
		failed = 0
	}
}

// next is when the session must be seen to; below 0 is never. Failures shorten
// what is left step by step.
func (s session) next(failed int) time.Duration {
	if s.expires.IsZero() || s.generation == 0 {
		return -1
	}
	return share(s.expires, failed)
}

// share is two thirds of the time that is left, with jitter, and after a failure a
// quarter of it; past the end it is a slow pace.
func share(end time.Time, failed int) time.Duration {
	left := time.Until(end)
	switch {
	case left <= 0:
		return min(soon<<min(failed, 6), 30*time.Second)
	case failed > 0:
		return max(left/4, soon)
	}
	return max(time.Duration(float64(left)*(0.62+0.08*rand.Float64())), soon)
}

// wait tells that d is over; false when something turned or ctx ended before. A
// negative d is never over.
func wait(ctx context.Context, d time.Duration, turned <-chan struct{}) bool {
	var over <-chan time.Time
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return true
	case <-turned:
	case <-ctx.Done():
	}
	return false
}

// extend renews the session, or logs in anew.
func (c *Client) extend(ctx context.Context, s session) error {
	ttl, err := c.renew(ctx, s)
	short := ttl < s.granted*9/10
	switch {
	case down(err):
	case c.o.again() && (err != nil || short):
		_, err = c.login(ctx, s.generation)
	case err == nil:
		if short {
			c.o.Logger.Warn("Vault's token comes to its end and can't be replaced from here: give a new one, or log in by approle or kubernetes",
				zap.String("auth", c.o.Auth), zap.Time("ends", s.expires))
		}
		c.prolonged(s, ttl)
	}
	if err != nil && ctx.Err() == nil {
		c.note(err)
	}
	return err
}

// renew asks for more time and gives what was granted; 0 for a token that has
// none to be had.
func (c *Client) renew(ctx context.Context, s session) (ttl time.Duration, err error) {
	if !s.renewable {
		return 0, nil
	}
	err = c.once(ctx, "to renew the token", func(ctx context.Context, client *api.Client) error {
		secret, err := client.Auth().Token().RenewSelfWithContext(ctx, 0)
		if err == nil && secret != nil && secret.Auth != nil {
			ttl = time.Duration(secret.Auth.LeaseDuration) * time.Second
		}
		return err
	})
	return ttl, err
}

// prolonged notes the session's new end. With nothing granted there is nothing
// more to do for it.
func (c *Client) prolonged(s session, ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session.generation != s.generation {
		return
	}
	c.session.expires = time.Time{}
	if ttl > 0 {
		c.session.expires = time.Now().Add(ttl)
	}
}

// Close gives back a login that this client made, and with it what it brought:
// tokens and database logins of a run that is over need not live on. A token that
// was given to us stays.
func (c *Client) Close(ctx context.Context) {
	if s, _ := c.current(); s.generation == 0 || !c.o.again() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := c.write.Auth().Token().RevokeSelfWithContext(ctx, ""); err != nil {
		c.o.Logger.Debug("the login to Vault was not given back; it ends by itself")
	}
}
