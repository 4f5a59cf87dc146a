package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

// versions are the revisions of MCP that are spoken: those that have sessions, from
// the one that Xiaoya names on.
func versions() []string { return []string{"2025-11-25", "2025-06-18", "2025-03-26"} }

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	// verifiedHeader carries a call's checked context behind the check. The SDK hands
	// a request's headers to its handler, and nothing else of the request.
	verifiedHeader = "X-Verified-Call"
	bodyTime       = 10 * time.Second // for a request's body to come
	// readsPerSlot is how many bodies may be on their way for each message that may be
	// answered.
	readsPerSlot = 4
)

// Door is the MCP server. It is safe for use by several goroutines.
type Door struct {
	options Options
	checker *checker
	server  *sdk.Server
	handler http.Handler
	reads   chan struct{} // bodies that are on their way, anybody's
	slots   chan struct{} // messages that are being answered
	tools   []byte        // the answer to tools/list
	proven  proven
}

// New makes the door. The error names every mistake in the options.
func New(o Options) (*Door, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	d := &Door{options: o, reads: make(chan struct{}, readsPerSlot*o.MaxCalls), slots: make(chan struct{}, o.MaxCalls)}
	d.checker = &checker{application: o.Application, rules: o.Context, ask: introspect(platform(askTime), o.Context)}
	var err error
	if d.tools, err = listing(o.Application, d.allowed()); err != nil {
		return nil, err
	}
	a := o.Application
	d.server = sdk.NewServer(&sdk.Implementation{Name: a.ID, Title: a.Name, Version: a.Version, WebsiteURL: a.EntryURL}, &sdk.ServerOptions{
		Instructions:              a.Description,
		Capabilities:              &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
		SupportedProtocolVersions: versions(),
	})
	d.server.AddReceivingMiddleware(d.answer)
	// The SDK answers in JSON; a client that takes only a stream gets one of one event.
	// It would take a proxy on this machine for a rebound name: host looks itself.
	d.handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return d.server }, &sdk.StreamableHTTPOptions{
		JSONResponse: true, SessionTimeout: o.IdleTime, MaxRequestBodyBytes: o.MaxBody * 2, DisableLocalhostProtection: true,
	})
	return d, nil
}

// Close ends all sessions.
func (d *Door) Close() {
	for s := range d.server.Sessions() {
		_ = s.Close() // the client will see it
	}
}

// Handler serves the MCP endpoint, whatever its path.
func (d *Door) Handler() http.Handler { return http.HandlerFunc(d.serve) }

func (d *Door) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !d.host(r) || !d.origin(r) {
		fail(w, r, nil, &fault{http.StatusForbidden, invalidRequest, "this host name or origin is not served", nil})
		return
	}
	switch r.Method {
	case http.MethodPost:
		d.post(w, r)
	case http.MethodGet:
		if f := inSession(r); f != nil {
			fail(w, r, nil, f)
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a stream, until the session ends
		d.handler.ServeHTTP(w, reduced(r, nil, ""))
	case http.MethodDelete:
		if f := inSession(r); f != nil {
			fail(w, r, nil, f)
			return
		}
		d.pass(r, nil, nil, "")(w)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		fail(w, r, nil, &fault{http.StatusMethodNotAllowed, invalidRequest, "GET, POST and DELETE are served", nil})
	}
}

// post takes one message: it answers what is wrong itself, and gives the rest to the
// SDK. Only the work in between takes a place: who sends slowly, or does not read, need
// not be the platform, and must not keep it out.
func (d *Door) post(w http.ResponseWriter, r *http.Request) {
	body, f := d.hear(w, r)
	if f != nil {
		fail(w, r, nil, f)
		return
	}
	if !enter(d.slots) {
		fail(w, r, nil, tooMany())
		return
	}
	give := func() func(http.ResponseWriter) {
		defer func() { <-d.slots }()
		return d.take(r, body)
	}()
	give(w)
}

// hear reads the body, when there is room for one more.
func (d *Door) hear(w http.ResponseWriter, r *http.Request) ([]byte, *fault) {
	if !enter(d.reads) {
		return nil, tooMany()
	}
	defer func() { <-d.reads }()
	return d.body(w, r)
}

// enter takes one of the places, if there is one.
func enter(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}

func tooMany() *fault {
	return &fault{http.StatusTooManyRequests, invalidRequest, "too many requests at once", map[string]string{"errorCode": "too_many_calls"}}
}

// take does what a message asks for, and returns what writes the answer.
func (d *Door) take(r *http.Request, body []byte) func(http.ResponseWriter) {
	refuse := func(id jsontext.Value, f *fault) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { fail(w, r, id, f) }
	}
	m, f := decode(body)
	if f == nil {
		f = known(&m)
	}
	if f != nil {
		return refuse(m.ID, f)
	}
	if !m.call() && !m.reply() && !heeded(m.Method) {
		// A notification has no answer, not even "no".
		return func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) }
	}
	verified, f := d.admit(r, &m, body)
	if f != nil {
		return refuse(m.ID, f)
	}
	text, err := m.encode()
	if err != nil {
		return refuse(m.ID, &fault{http.StatusBadRequest, invalidRequest, "the message cannot be read", nil})
	}
	return d.pass(r, m.ID, text, verified)
}

// admit lets a message in: a handshake when there is room, anything else in a
// session, a call of a tool with a context.
func (d *Door) admit(r *http.Request, m *message, body []byte) (verified string, f *fault) {
	if v := r.Header.Get(versionHeader); v != "" && !slices.Contains(versions(), v) {
		return "", &fault{http.StatusBadRequest, invalidRequest, "this revision of the protocol is not spoken", nil}
	}
	f = inSession(r)
	switch {
	case m.Method == "initialize" && f == nil:
		return "", &fault{http.StatusBadRequest, invalidRequest, "the session has been initialized", nil}
	case m.Method == "initialize":
		d.room()
		return "", nil
	case f != nil || m.Method != "tools/call":
		return "", f
	}
	asked, f := m.request()
	if f != nil {
		return "", f
	}
	return d.verify(r, asked, body)
}

// inSession refuses a request that says no session. Whether there is such a session,
// the SDK knows.
func inSession(r *http.Request) *fault {
	if r.Header.Get(sessionHeader) == "" {
		return &fault{http.StatusBadRequest, invalidRequest, "there is no session: initialize makes one", nil}
	}
	return nil
}

// verify checks the context of a tool's call, and then whether there is such a tool.
func (d *Door) verify(r *http.Request, asked request, body []byte) (verified string, f *fault) {
	c, f := d.checker.check(r, body, time.Now())
	if f != nil {
		d.options.Logger.Warn("a call was refused", zap.Any("why", f.data))
		return "", f
	}
	if d.tool(asked.Name) == nil {
		return "", &fault{http.StatusOK, unknownMethod, "there is no such tool", nil}
	}
	d.proven.add(r.Header.Get(sessionHeader))
	text, err := json.Marshal(c)
	if err != nil {
		return "", refused(http.StatusInternalServerError, "internal_error", "the call failed")
	}
	return string(text), nil
}

// pass gives a request to the SDK, and returns what gives its answer to the client.
func (d *Door) pass(r *http.Request, id jsontext.Value, body []byte, verified string) func(http.ResponseWriter) {
	said := &recorder{header: http.Header{}}
	d.handler.ServeHTTP(said, reduced(r, body, verified))
	return func(w http.ResponseWriter) { said.give(w, r, id) }
}

// reduced is the request as the SDK may see it: without a protected header, a
// credential, a cookie.
func reduced(r *http.Request, body []byte, verified string) *http.Request {
	out := r.Clone(r.Context())
	out.Header = http.Header{}
	for _, name := range []string{"Content-Type", sessionHeader, versionHeader, "Last-Event-Id"} {
		if v := r.Header.Get(name); v != "" {
			out.Header.Set(name, v)
		}
	}
	out.Header.Set("Accept", "application/json, text/event-stream")
	if verified != "" {
		out.Header.Set(verifiedHeader, verified)
	}
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return out
}

// body reads the request's body, within its limits.
func (d *Door) body(w http.ResponseWriter, r *http.Request) ([]byte, *fault) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &fault{http.StatusUnsupportedMediaType, invalidRequest, "the body must be application/json", nil}
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // where there is a connection
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, d.options.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &fault{http.StatusRequestEntityTooLarge, invalidRequest, "the body is too large", nil}
	case err != nil:
		return nil, &fault{http.StatusBadRequest, parseError, "the body did not come whole", nil}
	}
	_ = control.SetReadDeadline(time.Time{})
	return body, nil
}

// host guards against a page that had its own name lead here.
func (d *Door) host(r *http.Request) bool {
	name := (&url.URL{Host: r.Host}).Hostname()
	public, _ := url.Parse(d.options.PublicURL) // it was checked
	if strings.EqualFold(name, public.Hostname()) || slices.ContainsFunc(d.options.Hosts, func(h string) bool { return strings.EqualFold(h, name) }) {
		return name != ""
	}
	here, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && loopbackPort(here.String()) && loopback(name)
}

// origin lets in what no browser sent, and the pages that are named.
func (d *Door) origin(r *http.Request) bool {
	given := r.Header.Values("Origin")
	return len(given) == 0 || len(given) == 1 && slices.Contains(d.options.Origins, given[0])
}
