package credentials

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/zap"
)

// DefaultGrace is how long an operator may take between rotating the key in
// Xiaoqu's console, where the old one dies at once (contract §3.3), and writing
// the new one to the store.
const DefaultGrace = 2 * time.Minute

// longestPause is the most between two looks at the store within the grace.
const longestPause = 15 * time.Second

// heldKey is a key as the source gave it.
type heldKey struct {
	secret  Secret
	version string
}

func (h heldKey) same(other heldKey) bool { return h.secret.Reveal() == other.secret.Reveal() }

// Ready reads the key, so that a start fails before anything is done. What it read
// serves when the store can't be asked later.
func (s *Service) Ready(ctx context.Context) error {
	_, _, err := s.read(ctx)
	return err
}

// read asks the source for the key. A store that can't be asked doesn't end the
// service: the key that it gave last goes on serving, and stale says why.
func (s *Service) read(ctx context.Context) (key heldKey, stale, err error) {
	store, ok := s.keys.(Store)
	if !ok {
		key.secret, err = s.keys.Key(ctx)
	} else {
		key.secret, key.version, err = store.Current(ctx)
	}
	if ctx.Err() != nil {
		return heldKey{}, nil, context.Cause(ctx)
	}
	if known := s.lastKnown(); ok && err != nil && !known.secret.IsZero() {
		s.logger.Warn("the store of the service key can't be asked: the key in memory goes on serving",
			zap.String("store", store.Place()), zap.String("key_version", known.version), zap.Error(err))
		return known, err, nil
	}
	if err == nil && key.secret.IsZero() {
		err = badKey("the key source gave an empty key")
	}
	if err != nil {
		return heldKey{}, nil, err
	}
	s.onSecret(key.secret.Reveal())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = key
	return key, nil, nil
}

// renewal trades the key for the service token. When the remote refuses the key
// and the key comes from a store, a rotation is under way or was left half done.
func (s *Service) renewal(ctx context.Context, body any) (Secret, heldKey, error) {
	key, stale, err := s.read(ctx)
	if err != nil {
		return Secret{}, heldKey{}, err
	}
	token, err := s.trade(ctx, opEnsure, key.secret, body)
	store, ok := s.keys.(Store)
	if ok && keyRefused(err) {
		return s.outlast(ctx, store, rotation{refused: key, stale: stale, refusal: err}, body)
	}
	return token, key, err
}

// rotation is what is known of a rotation that is under way.
type rotation struct {
	refused heldKey // the newest key that the remote refused
	stale   error   // why the store could not be asked last, nil when it could
	refusal error   // what the remote said
}

// outlast looks at the store again and again, for the grace, until it holds a key
// that the remote takes. A key that was refused is offered once more at the end,
// and not at every look: asking the same again brings the same.
func (s *Service) outlast(ctx context.Context, store Store, r rotation, body any) (Secret, heldKey, error) {
	if s.grace <= 0 || s.givenUp(r.refused) {
		return Secret{}, heldKey{}, s.halted(store, r)
	}
	s.logger.Warn("the remote refuses the service key; waiting for the store to hold a new one",
		zap.String("store", store.Place()), zap.String("key_version", r.refused.version), zap.Duration("grace", s.grace))
	end := time.Now().Add(s.grace)
	pace := newLook()
	for {
		left := time.Until(end)
		if err := sleep(ctx, min(pace.NextBackOff(), max(left, 0))); err != nil {
			return Secret{}, heldKey{}, err
		}
		last := time.Until(end) <= 0
		key, stale, err := s.read(ctx)
		if err != nil {
			if ctx.Err() != nil || last {
				return Secret{}, heldKey{}, err
			}
			continue // what the store holds is no key: the operator may be correcting it
		}
		r.stale = stale
		if key.same(r.refused) && !last {
			continue
		}
		token, err := s.trade(ctx, opEnsure, key.secret, body)
		if !keyRefused(err) {
			return token, key, err
		}
		r.refused, r.refusal = key, err
		if last {
			s.giveUp(key)
			return Secret{}, heldKey{}, s.halted(store, r)
		}
	}
}

// halted says which step of the rotation is missing.
func (s *Service) halted(store Store, r rotation) error {
	e := &Error{Kind: Refused, Op: opEnsure}
	var refusal *Error
	if errors.As(r.refusal, &refusal) {
		e.Status, e.Code = refusal.Status, refusal.Code
	}
	place, version := store.Place(), ""
	if r.refused.version != "" {
		version = " (version " + r.refused.version + ")"
	}
	worked := s.lastWorked()
	switch {
	case r.stale != nil:
		// Nobody can say yet that a person must do anything but mend the store.
		e.Kind, e.Err = StoreDown, r.stale
		e.Message = fmt.Sprintf("the remote refuses the service key in memory%s, and %s can't be asked for a new one", version, place)
	case worked.secret.IsZero():
		e.Message = fmt.Sprintf("the remote refuses the service key in %s%s: either it was rotated in Xiaoqu's admin console and the new key is not written there yet, or what was written there is not the key that the console showed last", place, version)
	case r.refused.same(worked):
		e.Message = fmt.Sprintf("the service key was rotated or revoked in Xiaoqu's admin console, but %s still holds the old one%s: write the new key there", place, version)
	default:
		e.Message = fmt.Sprintf("%s was given a new service key%s, but the remote refuses it: rotate the key in Xiaoqu's admin console and write there exactly what the console shows", place, version)
	}
	return e
}

// keyRefused tells that the remote said no to the key itself, and not to the
// request.
func keyRefused(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == Refused &&
		(e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden || e.Code == "UNAUTHENTICATED" || e.Code == "PERMISSION_DENIED")
}

// KeyVersion is what the store calls the version of the key that brought the
// token in use, before the first token of the key that was read; "" where keys have
// no version.
func (s *Service) KeyVersion() string {
	if worked := s.lastWorked(); !worked.secret.IsZero() {
		return worked.version
	}
	return s.lastKnown().version
}

// KeyChanged is for whoever sees that the store holds another key: the token in
// use is replaced by one that the new key brings. When that fails the token
// stays. Without a token there is nothing to do.
func (s *Service) KeyChanged(ctx context.Context) error {
	_, generation := s.current()
	if generation == 0 {
		return nil
	}
	return s.Renew(ctx, generation)
}

func (s *Service) lastWorked() heldKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.worked
}

func (s *Service) lastKnown() heldKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// giveUp remembers the key that got its grace. While the store holds nothing else
// the next exchange fails at once, so that a daemon doesn't hang in every round.
func (s *Service) giveUp(key heldKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = key
}

func (s *Service) givenUp(key heldKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.abandoned.secret.IsZero() && s.abandoned.same(key)
}

// newLook spaces the looks at the store: 1, 2, 4 … 15 s, with jitter.
func newLook() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(time.Second),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0.2),
		backoff.WithMaxInterval(longestPause),
		backoff.WithMaxElapsedTime(0),
	)
}

// sleep waits, or returns the context's cause when it ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
