package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// Service is what the door needs of the catalogue at work.
type Service interface {
	Capabilities() []*agent.Capability
	Capability(id string) *agent.Capability
	Do(ctx context.Context, call agent.Call) (agent.Answer, error)
}

// Documents reads one document by the token of its link; nil when there is none, or
// none any more.
type Documents interface {
	Document(ctx context.Context, token string) (*agent.Document, *agent.Link, error)
}

// Application is how the agent is registered at the platform.
type Application struct {
	ID          string // stable; the target agent of every call
	Version     string
	Name        string
	Description string
	EntryURL    string // where people read about it
	MCPURL      string // of Door.Handler, as the platform reaches it
	CallbackURL string // of the platform; an invocation's id is put behind it
	Chinese     bool   // titles of tools
}

// Context is how the context of a call is checked: by a signature, by asking the
// platform, or both.
type Context struct {
	// Keys sign calls: HMAC-SHA256, in hex, over timestamp "." agent "." invocation
	// "." body. One is enough; there are two while one takes the other's place.
	Keys [][]byte
	// IntrospectURL is asked about every call, with Credential as bearer.
	IntrospectURL string
	Credential    string
	MaxAge        time.Duration // of the timestamp, either way; 0: 300 s
	Headers       Headers
	// AllowUnsigned lets calls without a context in that come from this machine: for
	// development. PublicURL must then be a loopback address and the only name, so that
	// nothing that a proxy passes on looks local.
	AllowUnsigned bool
}

// Headers are the names of the protected headers. The platform's rules do not fix
// them. An empty one has its default: X-Xiaoya-Agent-Id, X-Xiaoya-Invocation-Id,
// X-Xiaoya-Timestamp (seconds since 1970), X-Xiaoya-Signature, X-Xiaoya-Callback-Url.
type Headers struct {
	Agent, Invocation, Timestamp, Signature, Callback string
}

// Options are what a Door needs. Zero limits have defaults.
type Options struct {
	Service     Service
	Documents   Documents
	Application Application
	Context     Context
	Scopes      []string // of every call; none: all that is switched on
	PublicURL   string   // before /artifacts/
	Origins     []string // browsers' pages that may call; requests without an origin may
	Hosts       []string // names of this server beside the one in PublicURL

	MaxBody     int64         // bytes of a request; 0: 512 KiB
	MaxAnswer   int           // bytes of an answer; 0: 1 MiB
	MaxCalls    int           // requests at the same time; 0: 32
	MaxSessions int           // the oldest makes room; 0: 1000
	IdleTime    time.Duration // of a session; 0: 30 minutes
	Logger      *zap.Logger
}

// withDefaults fills in what may be left out.
func (o Options) withDefaults() Options {
	o.MaxBody, o.MaxAnswer = cmp.Or(o.MaxBody, 512<<10), cmp.Or(o.MaxAnswer, 1<<20)
	o.MaxCalls, o.MaxSessions = cmp.Or(o.MaxCalls, 32), cmp.Or(o.MaxSessions, 1000)
	o.IdleTime = cmp.Or(o.IdleTime, 30*time.Minute)
	o.PublicURL = strings.TrimSuffix(o.PublicURL, "/")
	o.Context.MaxAge = cmp.Or(o.Context.MaxAge, 300*time.Second)
	h := &o.Context.Headers
	h.Agent, h.Invocation = cmp.Or(h.Agent, "X-Xiaoya-Agent-Id"), cmp.Or(h.Invocation, "X-Xiaoya-Invocation-Id")
	h.Timestamp, h.Signature = cmp.Or(h.Timestamp, "X-Xiaoya-Timestamp"), cmp.Or(h.Signature, "X-Xiaoya-Signature")
	h.Callback = cmp.Or(h.Callback, "X-Xiaoya-Callback-Url")
	if len(o.Scopes) == 0 {
		o.Scopes = []string{"*"}
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

// check reports every mistake at once.
func (o Options) check() error {
	var wrong []error
	say := func(format string, a ...any) { wrong = append(wrong, fmt.Errorf("mcp: "+format, a...)) }
	if o.Service == nil {
		say("there is no service")
	}
	if o.Application.ID == "" {
		say("the application has no id, and calls are for one")
	}
	c := o.Context
	if len(c.Keys) == 0 && c.IntrospectURL == "" && !c.AllowUnsigned {
		say("calls could not be checked: give a signing key or an introspection URL")
	}
	for _, k := range c.Keys {
		if len(k) < 16 {
			say("a signing key is shorter than 16 bytes")
		}
	}
	for name, address := range map[string]string{"public URL": o.PublicURL, "introspection URL": c.IntrospectURL, "callback URL": o.Application.CallbackURL} {
		if address == "" {
			continue
		}
		if err := exact(address); err != nil {
			say("the %s %w", name, err)
		}
	}
	if u, err := url.Parse(o.PublicURL); err != nil || o.PublicURL == "" {
		say("there is no public URL, and artifacts need one")
	} else if c.AllowUnsigned && (!loopback(u.Hostname()) || len(o.Hosts) > 0) {
		say("unsigned calls are for a loopback address only, and the public URL or a host is another")
	}
	return errors.Join(wrong...)
}

// exact checks an address that others compare letter by letter: https but for
// loopback, and nothing that makes it stand for more than one.
func exact(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return errors.New("is not an address")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return errors.New("must be https")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(address, "*{}"):
		return errors.New("must be exact: no wildcard, user, query or fragment")
	}
	return nil
}

// loopback reports whether a host is this machine, by its name alone.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
