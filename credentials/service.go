package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"
)

// Options say where and for whom tokens are fetched.
type Options struct {
	BaseURL     string            // https, or http on a loopback host; the contract's path is added
	ServiceName string            // serviceName of contract §3.2
	Keys        KeySource         // asked before every exchange
	Timeout     time.Duration     // per attempt; 0 means 10 s
	Grace       time.Duration     // how long a refused key may still be replaced in its Store; 0 not at all
	Logger      *zap.Logger       // nil logs nothing
	OnSecret    func(string)      // told every new secret before it is used; nil is fine
	HTTP        http.RoundTripper // nil: our own
}

// Service keeps one service token and renews it. It is safe for concurrent use.
type Service struct {
	ensure   *exchange
	name     string
	keys     KeySource
	onSecret func(string)
	grace    time.Duration
	logger   *zap.Logger
	flights  singleflight.Group

	mu         sync.Mutex
	token      Secret
	generation int     // 0: no token yet
	known      heldKey // the key that the source gave last
	worked     heldKey // the key that brought the token
	abandoned  heldKey // a refused key whose grace is over
}

// New checks the options. Nothing is read or sent before the first Token.
func New(o Options) (*Service, error) {
	endpoint, err := endpoint(o.BaseURL)
	if err != nil {
		return nil, err
	}
	if o.ServiceName == "" {
		return nil, errors.New("credentials: no service name")
	}
	if o.Keys == nil {
		return nil, errors.New("credentials: no key source")
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.OnSecret == nil {
		o.OnSecret = func(string) {}
	}
	return &Service{
		ensure:   newExchange(endpoint, o.Timeout, o.HTTP, o.Logger),
		name:     o.ServiceName,
		keys:     o.Keys,
		onSecret: o.OnSecret,
		grace:    o.Grace,
		logger:   o.Logger,
	}, nil
}

// endpoint builds the ensure address. Its errors don't quote the base: people
// paste credentials into addresses.
func endpoint(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "":
		return nil, errors.New("credentials: the base URL is not an address like https://host")
	case u.User != nil:
		return nil, errors.New("credentials: the base URL holds a user name or a password")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("credentials: the base URL has a query or a fragment")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return nil, errors.New("credentials: the base URL must be https (http only for a loopback host)")
	}
	return u.JoinPath("/api/open/token/ensure"), nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Token gives the token and its generation, which grows with every exchange.
// The first call fetches the token. Errors are *Error or the context's.
func (s *Service) Token(ctx context.Context) (token string, generation int, err error) {
	if _, generation = s.current(); generation == 0 {
		if err = s.fly(ctx, 0); err != nil {
			return "", 0, err
		}
	}
	held, generation := s.current()
	return held.Reveal(), generation, nil
}

// Renew replaces the token of the given generation, the one that the remote
// said UNAUTHENTICATED to (contract §5). When a newer one is there already it
// does nothing. When it fails, the old token stays.
func (s *Service) Renew(ctx context.Context, generation int) error {
	_, now := s.current()
	if now > generation {
		return nil
	}
	return s.fly(ctx, now)
}

// Personal fetches the token of the person with this mobile number
// (user_delegated, contract §3.2). It is for library users who look single
// things up for a person; no sync path may use it. The token is not kept here: the
// remote ends it within 60 seconds after the person is deactivated, so ask again
// rather than store it.
func (s *Service) Personal(ctx context.Context, mobile string) (Secret, error) {
	mobile = strings.TrimSpace(mobile)
	if what, _ := unfit(strings.ReplaceAll(mobile, " ", "")); mobile == "" || len(mobile) > 32 || what != "" {
		return Secret{}, &Error{Kind: Refused, Op: opPersonal, Message: "the mobile number is empty, too long or holds characters that no number has"}
	}
	body := struct {
		Mobile string `json:"mobile"`
	}{mobile}
	key, _, err := s.read(ctx)
	if err != nil {
		return Secret{}, err
	}
	return s.trade(ctx, opPersonal, key.secret, body, mobile)
}

func (s *Service) current() (Secret, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token, s.generation
}

// fly joins or starts the one exchange that replaces the given generation and
// waits for it as long as ctx lasts. The flight outlives the caller who began
// it, since others wait for it too; its own deadline ends it.
func (s *Service) fly(ctx context.Context, generation int) error {
	// Keyed by generation: a caller who holds the newest token must not be
	// handed the end of the flight that brought it.
	landed := s.flights.DoChan(strconv.Itoa(generation), func() (any, error) {
		if _, now := s.current(); now > generation {
			return nil, nil
		}
		flight, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.longest())
		defer cancel()
		return nil, s.replace(flight)
	})
	select {
	case result := <-landed:
		return result.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// longest bounds a flight: reading the key, the grace, and a trade before, within
// and after it.
func (s *Service) longest() time.Duration { return 3*s.ensure.longest() + s.grace + maxRead }

func (s *Service) replace(ctx context.Context) error {
	body := struct {
		Scope     string `json:"scopeCode"`
		Principal string `json:"principalType"`
		Service   string `json:"serviceName"`
	}{"sync", "service", s.name}
	token, key, err := s.renewal(ctx, body)
	if err != nil {
		return err
	}
	s.mu.Lock()
	rotated := !s.worked.secret.IsZero() && !s.worked.same(key)
	s.token, s.worked, s.abandoned = token, key, heldKey{}
	s.generation++
	generation := s.generation
	s.mu.Unlock()
	fields := []zap.Field{zap.Int("generation", generation), zap.String("key_version", key.version)}
	if rotated {
		s.logger.Info("the service key was rotated: a new access token is in use", fields...)
	} else {
		s.logger.Debug("access token fetched", fields...)
	}
	return nil
}

// trade exchanges the key for a token; private lists what else in the body must
// stay out of every text.
func (s *Service) trade(ctx context.Context, op string, key Secret, body any, private ...string) (Secret, error) {
	payload, err := json.Marshal(body)
	if err != nil {
		return Secret{}, fmt.Errorf("credentials: %s: %w", op, err)
	}
	token, err := s.ensure.trade(ctx, request{op: op, key: key, payload: payload, private: private})
	if err != nil {
		return Secret{}, err
	}
	s.onSecret(token.Reveal())
	return token, nil
}
