package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// doorName is what tasks of this door are kept under.
const doorName = "relay"

// version is the protocol that is spoken. Any 1.x is understood (RSP §14).
const version = "1.0"

// readsPerSlot is how many bodies may be on their way for each envelope that may be
// answered: strangers who send slowly must not keep Relay out.
const readsPerSlot = 4

// Options are what a Door needs.
type Options struct {
	Service *agent.Service
	// Secrets gives the secret that Relay made for this supplier; while it is being
	// rotated, the one before it too (RSP §3). The first signs callbacks.
	Secrets  func() [][]byte
	Supplier Supplier
	// EndpointURL is where Relay reaches the Handler, for the manifest.
	EndpointURL string
	// CallbackURL is where events go, without the order: ".../v1/callbacks". Empty:
	// Relay has to poll.
	CallbackURL string
	// Bindings redeems binding codes. Needed when Supplier.UserBinding is token.
	Bindings Bindings
	// Scopes are what an order may ask for, as in agent.Caller.
	Scopes []string
	// MaxConcurrent bounds the envelopes that are answered at the same time; 0: 20.
	MaxConcurrent int
	// DocumentURL gives a document's public address; nil: documents are not told of.
	DocumentURL func(token string) string
	// Transport carries callbacks; nil: one of its own that heeds the environment's
	// proxies.
	Transport http.RoundTripper
	Logger    *zap.Logger
}

// Supplier is what the manifest says of whoever runs this mirror (RSP §4.1).
type Supplier struct {
	Name        string
	Description string
	Locale      string // "": zh-CN
	Categories  []string
	Region      string
	UserBinding string // "none" ("" too) or "token"
	HelpURL     string // where people get a binding code
}

func (s Supplier) binds() bool { return s.UserBinding == "token" }

// Bindings redeems one-time codes. A code that is unknown, used or expired gives ok
// false. ref names the user at this supplier; display is for people.
type Bindings interface {
	Redeem(ctx context.Context, code, uid string) (ref, display string, ok bool, err error)
}

// Door answers Relay's envelopes, and is the agent.Courier that carries events
// back. It is safe for use by several goroutines.
type Door struct {
	options Options
	log     *zap.Logger
	reads   chan struct{} // bodies that are being read, anybody's
	slots   chan struct{} // envelopes that are being answered
	client  *http.Client
}

// New makes a door. It refuses addresses without TLS but for loopback ones, and a
// binding of users that cannot be made.
func New(o Options) (*Door, error) {
	switch {
	case o.Service == nil || o.Secrets == nil:
		return nil, errors.New("relay: the door needs a service and a secret")
	case o.Supplier.UserBinding != "" && o.Supplier.UserBinding != "none" && !o.Supplier.binds():
		return nil, fmt.Errorf("relay: user_binding %q is neither none nor token", o.Supplier.UserBinding)
	case o.Supplier.binds() && o.Bindings == nil:
		return nil, errors.New("relay: user_binding is token, and nothing redeems binding codes")
	}
	for _, address := range []string{o.EndpointURL, o.CallbackURL} {
		if address != "" && !safe(address) {
			return nil, fmt.Errorf("relay: %q is no https address; http is for loopback only", redacted(address))
		}
	}
	o.MaxConcurrent = cmp.Or(max(o.MaxConcurrent, 0), 20)
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return &Door{
		options: o, log: o.Logger, client: newClient(o.Transport),
		reads: make(chan struct{}, readsPerSlot*o.MaxConcurrent), slots: make(chan struct{}, o.MaxConcurrent),
	}, nil
}

// safe reports whether an address is https, or of this machine.
func safe(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	loopback := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && loopback
}

// redacted is an address without what may be a secret in it.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the address"
	}
	return u.Scheme + "://" + u.Host + u.Path
}
