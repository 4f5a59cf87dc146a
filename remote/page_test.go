package remote_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
)

var update = flag.Bool("update", false, "write the golden files")

// golden is a page as its want.json shows it: records as the texts that they are.
type golden struct {
	Page    *remote.Page `json:",omitempty"`
	Records []string     `json:",omitempty"`
	Error   string       `json:",omitempty"`
}

// TestPages serves each folder's answer.sse and compares what Changes makes of it with want.json.
func TestPages(t *testing.T) {
	folders, err := filepath.Glob("testdata/pages/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, dir := range folders {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			wire, err := os.ReadFile(filepath.Join(dir, "answer.sse"))
			if err != nil {
				t.Fatal(err)
			}
			key, _ := os.ReadFile(filepath.Join(dir, "list_key"))
			s := serve(t, func(s *server) { s.answer = stream(string(wire)) })
			c := client(t, s.URL, func(o *remote.Options) {
				o.ListKeys = map[string]string{"users": strings.TrimSpace(string(key))}
			})
			page, err := c.Changes(t.Context(), users())
			compareGolden(t, filepath.Join(dir, "want.json"), page, err)
		})
	}
}

func compareGolden(t *testing.T, path string, page *remote.Page, err error) {
	t.Helper()
	var g golden
	if err != nil {
		g.Error = err.Error()
	} else {
		p := *page
		for _, r := range p.Records {
			g.Records = append(g.Records, string(r))
		}
		p.Records, p.Bytes = nil, 0
		g.Page = &p
	}
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(g); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Error(diff)
	}
}

func TestArgumentsAreExactlyTheContractsThree(t *testing.T) {
	for want, q := range map[string]remote.Query{
		`{"syncToken":null,"cursor":null,"limit":200}`:           {Resource: "users"},
		`{"syncToken":"<t>","cursor":"c&\"","limit":50}`:         {Resource: "users", SyncToken: "<t>", Cursor: `c&"`, Limit: 50},
		`{"syncToken":null,"cursor":null,"limit":200} ` + "":     {Resource: "users", Limit: 1000},
		`{"syncToken":null,"cursor":null,"limit":200}  ` + "":    {Resource: "users", Limit: -1},
		`{"syncToken":"t","cursor":null,"limit":1}`:              {Resource: "users", SyncToken: "t", Limit: 1},
		`{"syncToken":null,"cursor":"只有游标","limit":200}` + "   ": {Resource: "users", Cursor: "只有游标"},
	} {
		var got string
		s := serve(t, func(s *server) {
			s.answer = func(w http.ResponseWriter, _ *http.Request, m message) {
				got = m.Params.Name + string(m.Params.Arguments)
				result(w, m, okPage)
			}
		})
		if _, err := client(t, s.URL, nil).Changes(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if want = "users.changes.list" + strings.TrimSpace(want); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestPageSaysItsSize(t *testing.T) {
	s := serve(t, nil)
	p, err := client(t, s.URL, nil).Changes(t.Context(), users())
	if err != nil {
		t.Fatal(err)
	}
	if least := int64(len(okPage)); p.Bytes < least || p.Bytes > least+200 {
		t.Errorf("%d bytes for a result of %d", p.Bytes, least)
	}
}

func TestIdentity(t *testing.T) {
	for name, c := range map[string]struct {
		result string
		want   remote.Identity
	}{
		"envelope": {
			`{"structuredContent":{"schema_version":2,"request_id":"r","data":{"principal_type":"tenant_service","capabilities":["QUERY"," SYNC "],"tenant_id":1234567890123456789}}}`,
			remote.Identity{PrincipalType: "tenant_service", Capabilities: []string{"QUERY", "SYNC"}, TenantID: "1234567890123456789", RequestID: "r"},
		},
		"form 1, other spellings": {
			`{"structuredContent":{"principalType":"user_delegated","capability":"QUERY,SYNC;A|B C","tenant":{"id":"t-1"}}}`,
			remote.Identity{PrincipalType: "user_delegated", Capabilities: []string{"QUERY", "SYNC", "A", "B", "C"}, TenantID: "t-1"},
		},
		"longer names stay whole": {
			`{"structuredContent":{"capabilities":["ASYNC",7,null,"SYNC_READONLY"],"tenantId":"t"}}`,
			remote.Identity{Capabilities: []string{"ASYNC", "SYNC_READONLY"}, TenantID: "t"},
		},
		"wrong kinds say nothing": {
			`{"structuredContent":{"principal_type":3,"capabilities":{"SYNC":true},"tenant":"t","error":null,"code":"T1"}}`,
			remote.Identity{},
		},
		"in text": {
			`{"content":[{"type":"text","text":"{\"principal_type\":\"tenant_service\",\"capability\":\"SYNC\"}"}]}`,
			remote.Identity{PrincipalType: "tenant_service", Capabilities: []string{"SYNC"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(s *server) {
				s.answer = func(w http.ResponseWriter, _ *http.Request, m message) {
					if got := m.Params.Name + string(m.Params.Arguments); got != "integration.context.get{}" {
						t.Errorf("called %s", got)
					}
					result(w, m, c.result)
				}
			})
			got, err := client(t, s.URL, nil).Identity(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestToolsArePagedSortedAndAskedAgainWhenEmpty(t *testing.T) {
	pages := map[string]string{
		"":  `{"tools":[{"name":"users.changes.list","inputSchema":{"maximum":1e400}},null,{"name":"b"}],"nextCursor":"2"}`,
		"2": `{"tools":[{"name":"a"},{"name":"b"},{"title":"nameless"}]}`,
	}
	for name, empties := range map[string][]handler{
		"at once":              nil,
		"after an empty list":  {tool(`{"tools":[]}`)},
		"after nothing at all": {stream(""), status(202, "", "")},
		"after null":           {tool(`{"tools":null}`), tool(`{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(s *server) {
				s.list = func(w http.ResponseWriter, r *http.Request, m message) {
					if len(empties) > 0 {
						empties[0](w, r, m)
						empties = empties[1:]
						return
					}
					result(w, m, pages[m.Params.Cursor])
				}
			})
			got, err := client(t, s.URL, nil).Tools(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"a", "b", "users.changes.list"}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnOutputSchemaComesWithItsTool(t *testing.T) {
	s := serve(t, func(s *server) {
		s.list = func(w http.ResponseWriter, _ *http.Request, m message) {
			result(w, m, `{"tools":[{"name":"a","inputSchema":{},"outputSchema":{"type":"object","maximum":1e400}},{"name":"b","inputSchema":{},"outputSchema":null},{"name":"c","inputSchema":{}}]}`)
		}
	})
	c := client(t, s.URL, nil)
	for name, want := range map[string]string{"a": `{"type":"object","maximum":1e400}`, "b": "", "c": "", "d": ""} {
		if got, err := c.OutputSchema(t.Context(), name); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

func TestToolsAreBounded(t *testing.T) {
	n := 0
	for name, c := range map[string]struct {
		list func(http.ResponseWriter, message)
		want string
		asks int
	}{
		"a cycle": {func(w http.ResponseWriter, m message) { result(w, m, `{"tools":[{"name":"a"}],"nextCursor":"x"}`) }, "comes back", 2},
		"no end": {func(w http.ResponseWriter, m message) {
			n++
			result(w, m, fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n))
		}, "more than 50 pages", 50},
		"ever empty": {func(w http.ResponseWriter, m message) { result(w, m, `{"tools":[]}`) }, "", 3},
		"refused":    {func(w http.ResponseWriter, _ message) { w.WriteHeader(403) }, "PERMISSION_DENIED", 1},
	} {
		t.Run(name, func(t *testing.T) {
			asks := 0
			s := serve(t, func(s *server) {
				s.list = func(w http.ResponseWriter, _ *http.Request, m message) { asks++; c.list(w, m) }
			})
			got, err := client(t, s.URL, nil).Tools(t.Context())
			var e *remote.Error
			switch {
			case c.want == "" && (err != nil || len(got) != 0):
				t.Errorf("got %v, %v", got, err)
			case c.want != "" && (!errors.As(err, &e) || e.Tool != "tools/list" || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v", err)
			}
			if asks != c.asks {
				t.Errorf("asked %d times, want %d", asks, c.asks)
			}
		})
	}
}

func BenchmarkChanges(b *testing.B) {
	var data strings.Builder
	for i := range 200 {
		if i > 0 {
			data.WriteByte(',')
		}
		fmt.Fprintf(&data, `{"id":"%d","name":"王小丽","address":"%s","amount":1.10,"deleted_at":null}`, 1234567890123456789+i, strings.Repeat("花园路", 56))
	}
	page := `{"content":[],"structuredContent":{"schema_version":2,"request_id":"r","data":{"users":[` + data.String() + `],"has_more":false,"next_sync_token":"t"}}}`
	s := serve(b, func(s *server) {
		s.answer = func(w http.ResponseWriter, _ *http.Request, m message) { result(w, m, page) }
	})
	c := client(b, s.URL, nil)
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		p, err := c.Changes(b.Context(), users())
		if err != nil || len(p.Records) != 200 {
			b.Fatal(err)
		}
	}
}
