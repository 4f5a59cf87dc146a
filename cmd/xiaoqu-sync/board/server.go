package board

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
)

const (
	headerTime     = 5 * time.Second
	readTime       = 10 * time.Second
	writeTime      = 30 * time.Second
	idleTime       = 60 * time.Second
	maxHeaderBytes = 16 << 10
	// goodbye is how long requests in flight may still take when the server is
	// asked to stop.
	goodbye = 2 * time.Second
)

// Serve answers on addr ("127.0.0.1:9464") until ctx ends, and returns nil then.
func Serve(ctx context.Context, addr string, h http.Handler) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("board: listen on %s: %w", addr, err)
	}
	return ServeOn(ctx, l, h)
}

// ServeOn does what Serve does on a listener that is there already, and closes it.
func ServeOn(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeaderBytes,
		ErrorLog:       zap.NewStdLog(zap.NewNop()), // clients' mistakes; panics of ours are logged by the handler
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("board: serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	err := server.Shutdown(last)
	if err != nil {
		err = server.Close() // what is still open is cut off
	}
	if stopped := <-served; !errors.Is(stopped, http.ErrServerClosed) {
		err = errors.Join(err, stopped)
	}
	if err != nil {
		return fmt.Errorf("board: stop: %w", err)
	}
	return nil
}
