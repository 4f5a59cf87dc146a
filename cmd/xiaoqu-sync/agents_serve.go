package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent/mcp"
	"github.com/xiaoqu-sync/xiaoqu-sync/config"
)

const (
	agentHeaderTime = 5 * time.Second
	agentIdleTime   = 2 * time.Minute
	// agentAnswerTime ends the answer to who does not read it. The stream of a session
	// takes its own time.
	agentAnswerTime = time.Minute
	agentStopTime   = 8 * time.Second // a stop takes ten seconds at most
)

// serve opens the doors until ctx ends, and works on tasks beside them.
func (g *agents) serve(ctx context.Context) error {
	listen := g.app.config.Agents.Listen
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return config.Problems{{Field: "agents.listen", Message: "cannot be listened on: " + err.Error(), Hint: "another address (XIAOQU_AGENTS_LISTEN)"}}
	}
	g.lookAround(ctx)
	g.app.log.Info("the doors are open", zap.String("address", l.Addr().String()), zap.Strings("doors", g.app.config.Agents.Doors), zap.Strings("allow", g.app.config.Agents.Allow))
	server := &http.Server{
		Handler: g.routes(), ReadHeaderTimeout: agentHeaderTime, ReadTimeout: time.Minute, WriteTimeout: agentAnswerTime, IdleTimeout: agentIdleTime, MaxHeaderBytes: 64 << 10,
		ErrorLog:    zap.NewStdLog(g.app.log.Named("http")),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		g.service.Run(ctx)
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), agentStopTime)
		defer cancel()
		if err := server.Shutdown(stop); err != nil {
			return server.Close() // streams that stay open are cut
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// lookAround says at the start what callers would be the first to notice.
func (g *agents) lookAround(ctx context.Context) {
	for _, name := range g.app.config.Names() {
		if err := g.app.readable(ctx, g, name); err != nil {
			g.app.log.Warn("agents cannot read this now; xiaoqu-sync agent check says more", zap.String("resource", name), zap.Error(err))
		}
	}
}

// routes leads to each open door.
func (g *agents) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	})
	if g.api != nil {
		mux.Handle("/api/v1/", g.api.Handler())
	}
	if g.xiaoya != nil {
		mux.Handle("/mcp", g.xiaoya.Handler())
	}
	if g.relay != nil {
		mux.Handle("/relay", g.relay.Handler())
	}
	mux.Handle("/artifacts/", mcp.Artifacts(g.store, g.app.log.Named("artifacts")))
	return mux
}
