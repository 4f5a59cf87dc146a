package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

const (
	// Name is this door's, for tasks and scopes.
	Name = "api"
	// maxBody is more than any input that the catalogue takes.
	maxBody = 300 << 10
	maxKey  = 128
)

// Tokens knows the bearer tokens.
type Tokens interface {
	// Token finds a token's name and scopes; ok is false for one that is unknown,
	// expired or revoked.
	Token(ctx context.Context, secret string) (name string, scopes []string, ok bool, err error)
}

// Options are what a door needs.
type Options struct {
	Service *agent.Service
	Tokens  Tokens
	// PublicURL is the address that callers use, for the OpenAPI document and for
	// links to documents; "" when it is not known.
	PublicURL string
	Version   string // of the program
	Logger    *zap.Logger
}

// Door is the HTTP door.
type Door struct {
	options Options
	openAPI []byte
	list    []byte
}

// New makes the door. What it tells of the catalogue is rendered once.
func New(o Options) *Door {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return &Door{
		options: o, openAPI: OpenAPI(o.Service.Capabilities(), o.PublicURL, o.Version),
		list: must(map[string]any{"capabilities": List(o.Service.Capabilities())}),
	}
}

// Handler serves everything below /api/v1/.
func (d *Door) Handler() http.Handler {
	mux := http.NewServeMux()
	route := func(method, path string, f func(*exchange)) {
		mux.Handle(method+" /api/v1"+path, d.guard(f))
		mux.Handle("/api/v1"+path, d.guard(func(x *exchange) {
			x.w.Header().Set("Allow", method)
			x.refuseWith(http.StatusMethodNotAllowed, &agent.Failure{Class: agent.Invalid, Code: "method_not_allowed", Message: "only " + method + " is taken here"})
		}))
	}
	route("GET", "/capabilities", func(x *exchange) { x.answer(http.StatusOK, jsonText(d.list), "") })
	route("POST", "/capabilities/{id}", d.do)
	route("GET", "/tasks/{id}", d.task)
	route("POST", "/tasks/{id}/cancel", d.cancel)
	route("GET", "/openapi.json", func(x *exchange) { _, _ = x.w.Write(d.openAPI) })
	mux.Handle("/api/v1/", d.guard(func(x *exchange) {
		x.refuse(&agent.Failure{Class: agent.NotFound, Code: "not_found", Message: "there is nothing here", Suggestions: []string{"GET /api/v1/openapi.json says what there is"}})
	}))
	return mux
}

// exchange is one request and its answer.
type exchange struct {
	w         http.ResponseWriter
	r         *http.Request
	operation string
	caller    agent.Caller
}

// guard lets a request through that has a token.
func (d *Door) guard(f func(*exchange)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := make([]byte, 8)
		_, _ = rand.Read(id) // never fails
		x := &exchange{w: w, r: r, operation: "op-" + hex.EncodeToString(id)}
		h := w.Header()
		h.Set("Content-Type", "application/json; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || secret == "" {
			x.unauthenticated()
			return
		}
		name, scopes, ok, err := d.options.Tokens.Token(r.Context(), secret)
		if err != nil {
			d.options.Logger.Warn("a token cannot be checked", zap.String("operation", x.operation), zap.Error(err))
			x.refuse(unchecked(err))
			return
		}
		if !ok {
			x.unauthenticated()
			return
		}
		x.caller = agent.Caller{Door: Name, Name: name, Scopes: scopes}
		f(x)
	})
}

// unchecked is why a token could not be checked. What a person must mend is not said to
// pass by itself.
func unchecked(err error) *agent.Failure {
	if f := agent.AsFailure(err); f.Class == agent.Permanent {
		return f
	}
	return &agent.Failure{Class: agent.Temporary, Code: "database_unreachable", Message: "the token cannot be checked now", RetryAfter: 5 * time.Second}
}

func (x *exchange) unauthenticated() {
	x.w.Header().Set("WWW-Authenticate", `Bearer realm="xiaoqu-sync"`)
	x.refuseWith(http.StatusUnauthorized, &agent.Failure{
		Class: agent.Forbidden, Code: "unauthenticated", Message: "a valid bearer token is needed",
		Suggestions: []string{"the operator makes one with xiaoqu-sync agent token add"},
	})
}

// do does a capability, or begins its task.
func (d *Door) do(x *exchange) {
	input, f := x.input()
	if f != nil {
		x.refuse(f)
		return
	}
	key := x.r.Header.Get("Idempotency-Key")
	if len(key) > maxKey {
		x.refuse(&agent.Failure{Class: agent.Invalid, Code: "invalid_request", Message: "Idempotency-Key has more than 128 characters", Field: "Idempotency-Key"})
		return
	}
	if key != "" {
		key = x.caller.Name + "\x1f" + key // each caller has keys of its own
	}
	a, err := d.options.Service.Do(x.r.Context(), agent.Call{Caller: x.caller, Capability: x.r.PathValue("id"), Input: input, Key: key})
	switch {
	case err != nil:
		x.refuse(agent.AsFailure(err))
	case a.Result != nil:
		x.answer(http.StatusOK, a.Result.Data, a.Result.Summary)
	default:
		x.w.Header().Set("Location", "/api/v1/tasks/"+a.Task.ID)
		x.answer(http.StatusAccepted, d.view(*a.Task), "the task was accepted")
	}
}

// input reads the body, which is an object or nothing.
func (x *exchange) input() ([]byte, *agent.Failure) {
	kind, _, err := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	if x.r.ContentLength != 0 && (err != nil || kind != "application/json") {
		return nil, &agent.Failure{Class: agent.Invalid, Code: "invalid_request", Message: "Content-Type must be application/json", Field: "Content-Type"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &agent.Failure{Class: agent.Invalid, Code: "input_too_large", Message: "the body is too large"}
	case err != nil:
		return nil, &agent.Failure{Class: agent.Temporary, Code: "interrupted", Message: "the body ended early"}
	}
	return body, nil
}

func (d *Door) task(x *exchange) {
	t, err := d.options.Service.Task(x.r.Context(), Name, x.caller.Name, x.r.PathValue("id"))
	if err != nil {
		x.refuse(agent.AsFailure(err))
		return
	}
	x.answer(http.StatusOK, d.view(t), "")
}

func (d *Door) cancel(x *exchange) {
	t, err := d.options.Service.Task(x.r.Context(), Name, x.caller.Name, x.r.PathValue("id"))
	if err == nil {
		t, err = d.options.Service.Cancel(x.r.Context(), t)
	}
	switch {
	case err != nil:
		x.refuse(agent.AsFailure(err))
	case t.State != agent.Cancelled:
		x.refuse(&agent.Failure{
			Class: agent.Permanent, Code: "not_cancellable", Message: "the task is " + string(t.State) + " and can no longer be called back",
			Suggestions: []string{"GET /api/v1/tasks/" + t.ID + " tells how it ends"},
		})
	default:
		x.answer(http.StatusOK, d.view(t), "the task was cancelled")
	}
}
