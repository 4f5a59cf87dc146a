package mirror_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

func TestAHolderThatIsGoneWithoutAWordIsNoticedInAMinute(t *testing.T) {
	f := setUp(t)
	lease, err := f.Lease(t.Context(), "users", mirror.Holder{Host: "a", PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release(t.Context())
	server := value[*int](t, f, "select inet_server_port()")
	if server == nil {
		t.Skip("the server is reached over a socket")
	}
	client := value[int](t, f, "select client_port from pg_stat_activity a join xiaoqu_sync.leases l on l.backend_pid = a.pid")
	until := time.Now().Add(5 * time.Second)
	for {
		next, ok := keepalive(t, *server, client)
		switch {
		case ok && next <= 30*time.Second:
			return
		case !ok && time.Now().After(until):
			t.Skip("the server's end of the connection is not on this machine")
		case ok && time.Now().After(until):
			t.Fatalf("the server asks a silent client after %v", next)
		}
	}
}

// keepalive is when the kernel will next ask the other end of the connection
// whether it is there; false while the connection has no such timer.
func keepalive(t *testing.T, local, remote int) (next time.Duration, ok bool) {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Skip("no table of connections")
	}
	const timer, ticks = 5, 100 // the column; a tick is 10 ms
	for line := range strings.Lines(string(table)) {
		c := strings.Fields(line)
		if len(c) <= timer || !strings.HasSuffix(c[1], fmt.Sprintf(":%04X", local)) || !strings.HasSuffix(c[2], fmt.Sprintf(":%04X", remote)) {
			continue
		}
		kind, when, _ := strings.Cut(c[timer], ":")
		n, err := strconv.ParseInt(when, 16, 64)
		return time.Duration(n) * time.Second / ticks, err == nil && kind == "02"
	}
	return 0, false
}
