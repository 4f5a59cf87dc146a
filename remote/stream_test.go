package remote

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// played reads a stream to its end and gives what the SDK would see, and what the exchange kept.
func played(t *testing.T, r io.Reader) (seen string, kept []byte) {
	t.Helper()
	id, err := jsonrpc.MakeID(float64(7))
	if err != nil {
		t.Fatal(err)
	}
	x := &exchange{tool: "users.changes.list", id: id}
	all, err := io.ReadAll(newStream(io.NopCloser(r), x))
	if err != nil {
		t.Fatal(err)
	}
	return string(all), x.raw()
}

func TestAStreamIsGivenToTheSDKWithoutItsResult(t *testing.T) {
	const short = `{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`
	deep := strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000)
	for name, tt := range map[string]struct{ in, seen, kept string }{
		"a result":             {"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":[1,2]}}\n\n", "event: message\ndata: " + short + "\n\n", `{"a":[1,2]}`},
		"its members in turn":  {"data:{ \"result\" : \"x\" ,\"id\":7 , \"error\":null,\"jsonrpc\":\"2.0\"}", "data: " + short + "\n\n", `"x"`},
		"nested deeply":        {"data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":" + deep + "}\n\n", "data: " + short + "\n\n", deep},
		"over several lines":   {"data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":7,\ndata: \"result\":{}}\n\n", "data: " + short + "\n\n", "{}"},
		"CR":                   {"id: 1\rdata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\r\r", "id: 1\ndata: " + short + "\n\n", "{}"},
		"CRLF and comments":    {": c\r\n\r\nretry: 5\r\nodd\r\ndata: 1\r\n\r\n", "retry: 5\ndata: 1\n\n", ""},
		"another id":           {"data: {\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{}}\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{}}\n\n", ""},
		"an error":             {"data: {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1}}\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1}}\n\n", ""},
		"no jsonrpc":           {"data: {\"id\":7,\"result\":{}}\n\n", "data: {\"id\":7,\"result\":{}}\n\n", ""},
		"brackets do not fit":  {"data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":[}]}\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":[}]}\n\n", ""},
		"an id and no data":    {"id: 7\nretry: 5\ndata: \n\n", "id: 7\nretry: 5\ndata: \n\n", ""},
		"nothing but comments": {": a\n\n: b\n\n", "", ""},
		"only the first counts": {
			"data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":1}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":2}\n\n",
			"data: " + short + "\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":2}\n\n", "1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				seen, kept := played(t, r)
				if diff := cmp.Diff(tt.seen, seen); diff != "" || string(kept) != tt.kept {
					t.Errorf("kept %.100q %s", kept, diff)
				}
			}
		})
	}
}

func TestAStreamThatBreaksLeavesTheEventInHand(t *testing.T) {
	broken := errors.New("reset")
	s := newStream(io.NopCloser(io.MultiReader(strings.NewReader("data: 1\n\ndata: {\"jso"), iotest.ErrReader(broken))), &exchange{})
	seen, err := io.ReadAll(s)
	if string(seen) != "data: 1\n\n" || !errors.Is(err, broken) {
		t.Errorf("%q, %v", seen, err)
	}
}

// FuzzStream holds that it makes no difference how a stream is cut into pieces, and that what is kept is a piece of it.
func FuzzStream(f *testing.F) {
	for _, seed := range []string{
		"data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":\"\\\"\"}}\n\n", "\ufeffdata\rid:\r\n\r\n", ": x\n\ndata:1\ndata:2", "data: [[[}\n\n", "\r\n\n\r",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		seen, kept := played(t, bytes.NewReader(in))
		again, keptAgain := played(t, iotest.OneByteReader(bytes.NewReader(in)))
		if seen != again || !bytes.Equal(kept, keptAgain) {
			t.Fatalf("whole %q and %q, in pieces %q and %q", seen, kept, again, keptAgain)
		}
		if !bytes.Contains(in, []byte("\ndata")) && !bytes.Contains(in, []byte("\rdata")) && !bytes.Contains(in, kept) {
			t.Fatalf("kept %q", kept)
		}
	})
}
