package remotetest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// codeAt reads the code of an error from one place only.
func codeAt(place remotetest.Place, a answer) string {
	var body struct {
		Code  string
		Error json.RawMessage
	}
	var nested struct {
		Code string
		Data struct{ Code string }
	}
	_ = json.Unmarshal([]byte(a.body), &body)
	_ = json.Unmarshal(body.Error, &nested)
	content := ""
	if c := a.rpc.Result.Content; a.rpc.Result.IsError && len(c) == 1 {
		content = c[0].Text
	}
	switch place {
	case remotetest.RPCData:
		return a.rpc.Error.Data.Code
	case remotetest.RPCMessage:
		code, _, _ := strings.Cut(a.rpc.Error.Message, ":")
		return code
	case remotetest.ResultTop:
		return a.envelope.Code
	case remotetest.ResultNested:
		return a.envelope.Error.Code
	case remotetest.ContentJSON:
		_ = json.Unmarshal([]byte(content), &nested)
		return nested.Code
	case remotetest.ContentText:
		code, _, _ := strings.Cut(content, ":")
		return code
	case remotetest.HTTPTop:
		return body.Code
	case remotetest.HTTPNested:
		return nested.Code
	case remotetest.HTTPRPC:
		return nested.Data.Code
	}
	return ""
}

func TestEveryCodeInEveryPlace(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{Strict: true})
	s.Seed(1, 0, 0)
	c := connect(t, s)
	status := map[string]int{
		remotetest.Unauthenticated: 401, remotetest.PermissionDenied: 403, remotetest.RateLimited: 429,
		remotetest.SyncCursorExpired: 410, remotetest.InvalidArgument: 400,
	}
	for _, place := range remotetest.Places() {
		for code, httpStatus := range status {
			fired := s.Inject(remotetest.Fault{Do: remotetest.Fail(remotetest.Failure{
				Place: place, Code: code, Message: "名\x00\"", RetryAfter: "7",
			})})
			_, a := c.changes("users", nil, nil, 0)
			want, wantStatus := code, 200
			if strings.HasPrefix(string(place), "http") {
				wantStatus = httpStatus
			}
			if place == remotetest.HTTPBare {
				want = ""
				if strings.Contains(a.body, code) {
					t.Errorf("%s names the code", place)
				}
			}
			if got := codeAt(place, a); got != want || a.status != wantStatus || a.header.Get("Retry-After") != "7" {
				t.Errorf("%s: %d %q, want %d %q: %s", place, a.status, got, wantStatus, want, a.body)
			}
			if fired() != 1 {
				t.Errorf("%s: fired %d times", place, fired())
			}
		}
	}
	if p, _ := c.changes("users", nil, nil, 0); len(p.Records) != 1 {
		t.Error("faults outlive their times")
	}
}

func TestServerPutsItsOwnErrorsWhereVariantsSay(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	c := connect(t, s)
	for _, place := range remotetest.Places()[:9] {
		s.Vary(func(v *remotetest.Variants) { v.Errors, v.AuthErrors = place, place })
		if a := c.call("users.changes.list", `{"x":1}`); codeAt(place, a) != remotetest.InvalidArgument {
			t.Errorf("%s: %s", place, a.body)
		}
		good := c.token
		c.token = "xqak-revoked"
		if a := c.call("users.changes.list", `{}`); codeAt(place, a) != remotetest.Unauthenticated {
			t.Errorf("%s: %s", place, a.body)
		}
		c.token = good
	}
}

func TestFaultPlan(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	s.Seed(10, 0, 0)
	c := connect(t, s)
	limited := remotetest.Fail(remotetest.Failure{Code: remotetest.RateLimited})
	onPage := s.Inject(remotetest.Fault{Match: remotetest.OnPage("users", 2), Times: 2, Do: limited})
	onTool := s.Inject(remotetest.Fault{Match: remotetest.OnTool("integration.context.get", 3), Times: -1, Do: limited})
	onKind := s.Inject(remotetest.Fault{Match: remotetest.OnKind("ensure", 0), Times: -1, Do: remotetest.HTML(502)})

	p, _ := c.changes("users", nil, nil, 4)
	for i, want := range []string{remotetest.RateLimited, remotetest.RateLimited, ""} {
		if _, a := c.changes("users", nil, p.NextCursor, 4); a.envelope.Error.Code != want {
			t.Errorf("page 2, try %d: %s", i, a.body)
		}
	}
	for i, want := range []string{"", "", remotetest.RateLimited, ""} {
		if a := c.call("integration.context.get", `{}`); a.envelope.Error.Code != want {
			t.Errorf("context %d: %s", i, a.body)
		}
	}
	if status, body := ensure(t, s, s.Key(), serviceBody); status != 502 || !strings.Contains(body, "<html>") {
		t.Errorf("ensure: %d %s", status, body)
	}
	if onPage() != 2 || onTool() != 1 || onKind() != 1 {
		t.Errorf("fired %d, %d, %d", onPage(), onTool(), onKind())
	}
	s.ClearFaults()
	tokenOf(t, s, serviceBody)
}

func TestCutConnections(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	s.Seed(50, 0, 0)
	c := connect(t, s)
	for name, tc := range map[string]struct {
		at      remotetest.Point
		how     remotetest.Ending
		refused bool // no answer at all
		check   func(answer) bool
	}{
		"reset before headers": {remotetest.BeforeHeaders, remotetest.Reset, true, nil},
		"eof before headers":   {remotetest.BeforeHeaders, remotetest.EOF, true, nil},
		"eof in headers":       {remotetest.InHeaders, remotetest.EOF, true, nil},
		"eof after headers":    {remotetest.AfterHeaders, remotetest.EOF, false, func(a answer) bool { return errors.Is(a.err, io.ErrUnexpectedEOF) && a.body == "" }},
		"eof mid data":         {remotetest.MidData, remotetest.EOF, false, func(a answer) bool { return errors.Is(a.err, io.ErrUnexpectedEOF) && len(a.body) > 1000 }},
		"clean mid data":       {remotetest.MidData, remotetest.Clean, false, func(a answer) bool { return a.err == nil && !strings.HasSuffix(a.body, "\n\n") }},
		"clean mid rune":       {remotetest.MidRune, remotetest.Clean, false, func(a answer) bool { return a.err == nil && !utf8.ValidString(a.body) }},
	} {
		s.Inject(remotetest.Fault{Do: remotetest.Cut(tc.at, tc.how)})
		a, err := c.try(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"users.changes.list","arguments":{}}}`)
		if (err != nil) != tc.refused {
			t.Errorf("%s: error %v", name, err)
		}
		if tc.check != nil && !tc.check(a) {
			t.Errorf("%s: %v, %d bytes", name, a.err, len(a.body))
		}
	}
	s.Inject(remotetest.Fault{Do: remotetest.Cut(remotetest.MidData, remotetest.Reset)})
	a, err := c.try(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"users.changes.list","arguments":{}}}`)
	if e := errors.Join(err, a.err); !errors.Is(e, syscall.ECONNRESET) {
		t.Errorf("reset mid data: %v", e)
	}
}

func TestOddAnswers(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	s.Seed(5, 0, 0)
	c := connect(t, s)
	for name, tc := range map[string]struct {
		do     remotetest.Effect
		status int
		check  func(answer) bool
	}{
		"202":       {remotetest.Answer(remotetest.Reply{Status: 202}), 202, func(a answer) bool { return a.body == "" }},
		"204":       {remotetest.Answer(remotetest.Reply{Status: 204}), 204, func(a answer) bool { return a.body == "" }},
		"html":      {remotetest.HTML(502), 502, func(a answer) bool { return strings.Contains(a.header.Get("Content-Type"), "html") }},
		"redirect":  {remotetest.Redirect("http://127.0.0.1:1/mcp"), 307, func(a answer) bool { return a.header.Get("Location") == "http://127.0.0.1:1/mcp" }},
		"empty sse": {remotetest.SSE(""), 200, func(a answer) bool { return a.body == "" && a.header.Get("Content-Type") == "text/event-stream" }},
		"raw sse":   {remotetest.SSE("data: {\n\n"), 200, func(a answer) bool { return a.body == "data: {\n\n" }},
		"slow":      {remotetest.Slow(100, time.Millisecond), 200, func(a answer) bool { return a.envelope.Data != nil }},
		"nothing":   {remotetest.Effect{}, 200, func(a answer) bool { return a.envelope.Data != nil }},
	} {
		s.Inject(remotetest.Fault{Do: tc.do})
		if _, a := c.changes("users", nil, nil, 0); a.status != tc.status || !tc.check(a) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

func TestHangEndsWithTheServer(t *testing.T) {
	for _, afterHeaders := range []bool{false, true} {
		s := must(remotetest.New(remotetest.Options{}))
		c := connect(t, s)
		s.Inject(remotetest.Fault{Do: remotetest.Hang(afterHeaders)})
		arrived, ended := make(chan bool), make(chan error)
		s.OnCall(func(remotetest.Call) { close(arrived) })
		go func() {
			a, err := c.try(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"users.changes.list"}}`)
			ended <- errors.Join(err, a.err)
		}()
		<-arrived
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err == nil {
			t.Error("a hanging call was answered")
		}
		if err := s.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
	}
}

func TestFloodNeverEnds(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	c := connect(t, s)
	s.Inject(remotetest.Fault{Do: remotetest.Flood()})
	req := must(http.NewRequest(http.MethodPost, s.URL()+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`)))
	req.Header.Set("Authorization", "Bearer "+c.token)
	resp := must(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	if n, err := io.CopyN(io.Discard, resp.Body, 8<<20); err != nil {
		t.Errorf("ended after %d bytes: %v", n, err)
	}
}

func TestMangledPages(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	s.Seed(10, 0, 0)
	c := connect(t, s)
	first, _ := c.changes("users", nil, nil, 4)
	last := func() page { p, _ := c.changes("users", nil, first.NextCursor, 4); return p }()
	for _, f := range remotetest.PageFaults() {
		s.Inject(remotetest.Fault{Match: remotetest.OnPage("users", 2), Do: remotetest.Mangle(f)})
		a := c.call("users.changes.list", string(must(json.Marshal(map[string]any{"syncToken": nil, "cursor": first.NextCursor, "limit": 4}))))
		var m map[string]json.RawMessage
		if err := json.Unmarshal(a.envelope.Data, &m); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		has := func(k, v string) bool { return string(m[k]) == v }
		ok := map[remotetest.PageFault]bool{
			remotetest.NoCursor:       has("has_more", "true") && has("next_cursor", "null"),
			remotetest.NoToken:        has("has_more", "false") && has("next_sync_token", "null"),
			remotetest.TokenAndCursor: !has("next_cursor", "null") && !has("next_sync_token", "null"),
			remotetest.NeitherNor:     has("records", "[]") && has("next_cursor", "null") && has("next_sync_token", "null"),
			remotetest.SameCursor:     has("next_cursor", `"`+*first.NextCursor+`"`),
			remotetest.OtherSnapshot:  !has("snapshot_id", `"`+first.SnapshotID+`"`),
			remotetest.NoSnapshot:     has("snapshot_id", `""`),
			remotetest.NoList:         m["records"] == nil,
			remotetest.NullList:       has("records", "null"),
			remotetest.ListOfNumbers:  has("records", "[1,2,3]"),
			remotetest.TwoLists:       m["records"] != nil && m["related"] != nil,
			remotetest.OtherListName:  m["records"] == nil && m["rows_of_another_name"] != nil,
		}[f]
		if !ok {
			t.Errorf("%s: %s", f, a.envelope.Data)
		}
	}
	if d := cmp.Diff(last, func() page { p, _ := c.changes("users", nil, first.NextCursor, 4); return p }()); d != "" {
		t.Errorf("mangling left a trace:\n%s", d)
	}
}

func TestRecordsReplacedByRawBytes(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	s.Seed(3, 0, 0)
	c := connect(t, s)
	s.Inject(remotetest.Fault{Do: remotetest.Mutate(func(p *remotetest.Page) {
		p.Records = append([]json.RawMessage{[]byte("{\"id\":1,\"s\":\"\xff\xfe\"}")}, p.Records...)
		s.Put("users", "5", `{}`) // a page's function may use the server
	})})
	_, a := c.changes("users", nil, nil, 0)
	if !bytes.Contains([]byte(a.body), []byte("\xff\xfe")) {
		t.Error("bytes were changed")
	}
}

func TestCursorsThatGoRound(t *testing.T) {
	for _, n := range []int{1, 2, 3, 50} {
		s := remotetest.Start(t, remotetest.Options{})
		s.Seed(200, 0, 0)
		c := connect(t, s)
		s.Inject(remotetest.Fault{Match: remotetest.OnPage("users", 0), Times: -1, Do: remotetest.Cycle(n)})
		var cursor *string
		seen := map[string]int{}
		for range 3*n + 2 {
			p, a := c.changes("users", nil, cursor, 2)
			if !p.HasMore || p.NextCursor == nil {
				t.Fatalf("cycle of %d ended: %s", n, a.body)
			}
			cursor = p.NextCursor
			seen[*cursor]++
		}
		if len(seen) != n {
			t.Errorf("cycle of %d has %d cursors", n, len(seen))
		}
	}
}

func TestEndlessRepeatsOnePageWithFreshCursors(t *testing.T) {
	s := remotetest.Start(t, remotetest.Options{})
	s.Seed(20, 0, 0)
	c := connect(t, s)
	s.Inject(remotetest.Fault{Match: remotetest.OnPage("users", 2), Do: remotetest.Effect{}})
	s.Inject(remotetest.Fault{Match: remotetest.OnPage("users", 0), Times: -1, Do: remotetest.Endless()})
	var cursor *string
	cursors, ids := map[string]bool{}, map[string]bool{}
	for range 10 {
		p, a := c.changes("users", nil, cursor, 5)
		if !p.HasMore || p.NextCursor == nil {
			t.Fatalf("ended: %s", a.body)
		}
		for _, r := range p.Records {
			ids[idOf(r)] = true
		}
		cursor = p.NextCursor
		cursors[*cursor] = true
	}
	if len(cursors) < 9 || len(ids) > 10 {
		t.Errorf("%d cursors, %d ids", len(cursors), len(ids))
	}
}
