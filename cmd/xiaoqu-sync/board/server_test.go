package board_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync/board"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTheServerEndsWithItsContextAndLetsARequestFinish(t *testing.T) {
	l := listen(t)
	ctx, stop := context.WithCancel(t.Context())
	entered, leave := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- board.ServeOn(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(entered)
			<-leave
			w.WriteHeader(http.StatusTeapot)
		}))
	}()
	code := make(chan int, 1)
	go func() {
		resp, err := http.Get("http://" + l.Addr().String())
		if err != nil {
			code <- 0
			return
		}
		resp.Body.Close()
		code <- resp.StatusCode
	}()
	<-entered
	stop()
	close(leave)
	if got := <-code; got != http.StatusTeapot {
		t.Errorf("the request in flight got HTTP %d", got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAStopCutsOffWhatDoesNotEnd(t *testing.T) {
	l := listen(t)
	ctx, stop := context.WithCancel(t.Context())
	entered := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- board.ServeOn(ctx, l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(entered)
			<-r.Context().Done()
		}))
	}()
	go func() {
		if resp, err := http.Get("http://" + l.Addr().String()); err == nil {
			resp.Body.Close()
		}
	}()
	<-entered
	began := time.Now()
	stop()
	if err := <-done; err != nil || time.Since(began) > 8*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func TestAnAddressThatIsTakenIsAnError(t *testing.T) {
	l := listen(t)
	defer l.Close()
	err := board.Serve(t.Context(), l.Addr().String(), http.NotFoundHandler())
	if opErr := (*net.OpError)(nil); !errors.As(err, &opErr) {
		t.Errorf("%v", err)
	}
}
