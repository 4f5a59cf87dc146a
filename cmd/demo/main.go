package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

type options struct {
	keep       bool
	remoteOnly bool
	agent      bool
	listen     string
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.BoolVar(&o.keep, "keep", false, "leave PostgreSQL and the simulator running until Ctrl-C")
	flags.BoolVar(&o.remoteOnly, "remote-only", false, "serve the simulated Xiaoqu alone until Ctrl-C")
	flags.BoolVar(&o.agent, "agent", false, "open the doors for agents, make a call through each, and leave them open until Ctrl-C")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "where the simulated Xiaoqu listens")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("no argument is taken, and %q was given", flags.Arg(0))
	}
	xiaoqu, err := remotetest.New(remotetest.Options{Listen: o.listen, WallClock: true, Seed: 2026})
	if err != nil {
		return fmt.Errorf("start the simulated Xiaoqu: %w", err)
	}
	defer func() { _ = xiaoqu.Close() }()
	xiaoqu.Seed(500, 800, 1500)
	if o.remoteOnly {
		return serve(ctx, xiaoqu, out)
	}
	if o.agent {
		return doors(ctx, xiaoqu, out)
	}
	return tour(ctx, xiaoqu, o.keep, out)
}

// serve keeps the simulator up for a team that has no key yet.
func serve(ctx context.Context, xiaoqu *remotetest.Server, out io.Writer) error {
	fmt.Fprintf(out, "A simulated Xiaoqu with made-up data is at your service. Paste this:\n\n%s\nCtrl-C ends it.\n",
		exports(remoteSettings(xiaoqu)))
	<-ctx.Done()
	return nil
}

// setting is an environment variable of the tool.
type setting struct{ name, value string }

func remoteSettings(xiaoqu *remotetest.Server) []setting {
	return []setting{
		{"XIAOQU_BASE_URL", xiaoqu.URL()},
		{"XIAOQU_SERVICE_NAME", "crm-demo"},
		{"XIAOQU_OPEN_KEY", xiaoqu.Key()},
	}
}

func exports(ss []setting) string {
	text := ""
	for _, s := range ss {
		text += fmt.Sprintf("export %s='%s'\n", s.name, s.value)
	}
	return text
}
