package remote_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// exchangeToken gets a token the way the contract says, §3.2.
func exchangeToken(t testing.TB, sim *remotetest.Server) remote.Tokens {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, sim.URL()+"/api/open/token/ensure",
		strings.NewReader(`{"scopeCode":"sync","principalType":"service","serviceName":"test"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Open-Key", sim.Key())
	req.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct{ Token string }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Token == "" {
		t.Fatalf("ensure: HTTP %d, %v", resp.StatusCode, err)
	}
	return fixedToken(answer.Token)
}

func simulate(t *testing.T, o remotetest.Options, change func(*remote.Options)) (*remotetest.Server, *remote.Client) {
	t.Helper()
	sim := remotetest.Start(t, o)
	sim.Seed(450, 210, 30)
	token := exchangeToken(t, sim)
	return sim, client(t, sim.URL(), func(o *remote.Options) {
		o.Tokens = token
		if change != nil {
			change(o)
		}
	})
}

// drain follows the cursors of one round and returns the records by id, and the sync token.
func drain(t *testing.T, c *remote.Client, resource, token string) (map[string]json.RawMessage, string) {
	t.Helper()
	got := map[string]json.RawMessage{}
	q := remote.Query{Resource: resource, SyncToken: token}
	for range 100 {
		p, err := c.Changes(t.Context(), q)
		var e *remote.Error
		if errors.As(err, &e) && e.Code == remote.SessionLost {
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", resource, err)
			return nil, ""
		}
		for _, r := range p.Records {
			var row struct{ ID json.RawMessage }
			if err := json.Unmarshal(r, &row); err != nil {
				t.Fatal(err)
			}
			got[strings.Trim(string(row.ID), `"`)] = r
		}
		if !p.HasMore {
			return got, p.NextSyncToken
		}
		q.Cursor = p.NextCursor
	}
	t.Errorf("%s: a round without end", resource)
	return nil, ""
}

func TestStrictSimulatorFindsNoBreachAndGivesEveryByte(t *testing.T) {
	sim, c := simulate(t, remotetest.Options{Strict: true}, nil)
	id, err := c.Identity(t.Context())
	if err != nil || id.PrincipalType != "tenant_service" || !slices.Contains(id.Capabilities, "SYNC") || id.TenantID == "" || id.RequestID == "" {
		t.Fatalf("identity %+v, %v", id, err)
	}
	tools, err := c.Tools(t.Context())
	if err != nil || !slices.Contains(tools, "contracts.changes.list") {
		t.Fatalf("tools %v, %v", tools, err)
	}
	var all sync.WaitGroup
	for _, resource := range []string{"users", "properties", "contracts"} {
		all.Go(func() {
			got, token := drain(t, c, resource, "")
			if diff := cmp.Diff(sim.Live(resource), got); diff != "" {
				t.Errorf("%s: %s", resource, diff)
			}
			sim.Edit(resource, sim.IDs(resource)[0], `{"huge":1e400,"price":1.10}`)
			sim.Delete(resource, sim.IDs(resource)[1])
			changed, _ := drain(t, c, resource, token)
			if len(changed) != 2 {
				t.Errorf("%s: %d changes for 2", resource, len(changed))
			}
			for id, r := range changed {
				if want := sim.All(resource)[id]; string(want) != string(r) {
					t.Errorf("%s: got %s, want %s", resource, r, want)
				}
			}
		})
	}
	all.Wait()
	if n := sim.Stats().Handshakes; n != 1 {
		t.Errorf("%d handshakes", n)
	}
	if b := sim.Breaches(); len(b) != 0 {
		t.Errorf("breaches: %q", b)
	}
}

func TestEveryVariantOfTheContractIsRead(t *testing.T) {
	type sse = remotetest.SSEForm
	for name, v := range map[string]remotetest.Variants{
		"list by resource":  {ListName: "{resource}"},
		"list named data":   {ListName: "data", V1Always: true},
		"form 1":            {V1Always: true},
		"json":              {JSONAnswer: true},
		"absent nulls":      {AbsentNulls: true},
		"content repeats":   {ContentJSON: true},
		"id in data":        {RequestID: remotetest.RequestIDData},
		"id in _meta":       {RequestID: remotetest.RequestIDMeta},
		"id in a header":    {RequestID: remotetest.RequestIDHeader},
		"empty tools":       {EmptyLists: 2},
		"empty tool bodies": {EmptyLists: 2, EmptyListBody: true},
		"tools one by one":  {ToolsPerPage: 1},
		"CRLF, BOM, ids":    {SSE: sse{CRLF: true, BOM: true, IDs: true, KeepAlive: true}},
		"bare lines":        {SSE: sse{NoSpace: true, NoEventName: true, NoFinalBlank: true, SeveralDataLines: true}},
		"others first":      {SSE: sse{NotificationFirst: true, RequestFirst: true}},
		"stored forms":      {StringIDs: true, StringVersions: true, LiveDeletedAt: remotetest.DeletedAtEmpty},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim, c := simulate(t, remotetest.Options{Strict: true, Variants: v}, nil)
			if tools, err := c.Tools(t.Context()); err != nil || len(tools) < 4 {
				t.Errorf("tools %v, %v", tools, err)
			}
			if id, err := c.Identity(t.Context()); err != nil || id.RequestID == "" {
				t.Errorf("identity %+v, %v", id, err)
			}
			got, _ := drain(t, c, "users", "")
			if diff := cmp.Diff(sim.Live("users"), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryCodeInEveryPlaceOfTheSimulator(t *testing.T) {
	sim, c := simulate(t, remotetest.Options{}, nil)
	for _, code := range []remote.Code{remote.Unauthenticated, remote.PermissionDenied, remote.RateLimited, remote.CursorExpired, remote.InvalidArgument} {
		for _, place := range remotetest.Places() {
			if place == remotetest.HTTPBare {
				continue // carries no code
			}
			sim.Inject(remotetest.Fault{Do: remotetest.Fail(remotetest.Failure{Place: place, Code: string(code), Message: "why", RetryAfter: "5"})})
			_, err := c.Changes(t.Context(), users())
			var e *remote.Error
			bare := place == remotetest.RPCMessage || place == remotetest.ContentText // no room for a request id
			if !errors.As(err, &e) || e.Code != code || !bare && e.RequestID == "" || !strings.Contains(e.Message, "why") {
				t.Errorf("%s, %s: got %v", code, place, err)
			}
		}
	}
}

func TestBrokenPagesOfTheSimulator(t *testing.T) {
	malformed := []remotetest.PageFault{remotetest.NoList, remotetest.NullList, remotetest.ListOfNumbers, remotetest.TwoLists}
	for _, f := range remotetest.PageFaults() {
		sim, c := simulate(t, remotetest.Options{}, nil)
		sim.Inject(remotetest.Fault{Match: remotetest.OnPage("users", 1), Do: remotetest.Mangle(f)})
		_, err := c.Changes(t.Context(), users())
		var e *remote.Error
		if !slices.Contains(malformed, f) {
			if err != nil { // what the paging fields mean is judged elsewhere
				t.Errorf("%s: %v", f, err)
			}
			continue
		}
		if !errors.As(err, &e) || e.Code != remote.Malformed || e.CutShort {
			t.Errorf("%s: got %v", f, err)
		}
	}
}

func TestSessionsDroppedInMidRound(t *testing.T) {
	for _, bad := range []bool{false, true} {
		sim, c := simulate(t, remotetest.Options{Strict: true, Variants: remotetest.Variants{LostSession400: bad}}, nil)
		p, err := c.Changes(t.Context(), users())
		if err != nil {
			t.Fatal(err)
		}
		sim.DropSessions()
		_, err = c.Changes(t.Context(), remote.Query{Resource: "users", Cursor: p.NextCursor})
		var e *remote.Error
		if !errors.As(err, &e) || e.Code != remote.SessionLost {
			t.Fatalf("got %v", err)
		}
		if _, err := c.Changes(t.Context(), remote.Query{Resource: "users", Cursor: p.NextCursor}); err != nil {
			t.Error(err)
		}
		if n := sim.Stats().Handshakes; n != 2 {
			t.Errorf("%d handshakes", n)
		}
	}
}

func TestBrokenWiresOfTheSimulator(t *testing.T) {
	faults := map[string]remotetest.Effect{
		"flood":              remotetest.Flood(),
		"hang":               remotetest.Hang(false),
		"hang after headers": remotetest.Hang(true),
		"html":               remotetest.HTML(502),
		"redirect":           remotetest.Redirect("http://localhost:1/mcp"),
		"no event":           remotetest.SSE(""),
		"202":                remotetest.Answer(remotetest.Reply{Status: 202}),
	}
	for _, at := range []remotetest.Point{remotetest.BeforeHeaders, remotetest.InHeaders, remotetest.AfterHeaders, remotetest.MidData, remotetest.MidRune} {
		for _, how := range []remotetest.Ending{remotetest.Reset, remotetest.EOF, remotetest.Clean} {
			faults[fmt.Sprintf("cut %d %d", at, how)] = remotetest.Cut(at, how)
		}
	}
	for name, effect := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim, c := simulate(t, remotetest.Options{}, func(o *remote.Options) { o.Timeout, o.MaxBytes = 2*time.Second, 1<<20 })
			sim.Inject(remotetest.Fault{Do: effect})
			_, err := c.Changes(t.Context(), users())
			var e *remote.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			switch permanent := name == "redirect"; {
			case name == "flood" && !e.TooLarge,
				permanent && (e.Code != remote.Malformed || e.CutShort),
				!permanent && name != "flood" && e.Code != remote.Unreachable && !e.CutShort:
				t.Errorf("got %v (cut short %t)", err, e.CutShort)
			}
			if _, err := c.Changes(t.Context(), users()); err != nil {
				t.Errorf("after: %v", err)
			}
		})
	}
}

func TestASessionThatOffersNoToolsIsNotKept(t *testing.T) {
	sim, c := simulate(t, remotetest.Options{}, nil)
	// The remote accepts notifications/initialized and never hears of it.
	sim.Inject(remotetest.Fault{Match: remotetest.OnKind("notifications/initialized", 1), Do: remotetest.Answer(remotetest.Reply{Status: http.StatusAccepted})})
	if tools, err := c.Tools(t.Context()); len(tools) != 0 || err != nil {
		t.Fatalf("tools %q, %v: the fault had no effect", tools, err)
	}
	if tools, err := c.Tools(t.Context()); len(tools) == 0 || err != nil {
		t.Errorf("tools %q, %v: the next call is on the same session", tools, err)
	}
}
