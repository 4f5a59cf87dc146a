package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func (p *program) runVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Keep the mirror up to date until stopped",
		Long: `Keep the mirror up to date until stopped: every resource by its schedule, and at
once where a run was missed. Any number of replicas may run; one works at a time,
and another takes over at the next moment when it dies.

SIGHUP reads the configuration again: schedules, jitter and log level take effect
at once, and what else changed is named and waits for a restart. A configuration
with a mistake is refused and the one in force stays. SIGTERM and SIGINT end or
roll back the page in hand, within ten seconds, and exit 143 or 130; a second
one ends at once. A database that is away is waited for.`,
		Example: `  xiaoqu-sync run --config /etc/xiaoqu-sync/config.yaml
  XIAOQU_LOG_FORMAT=json xiaoqu-sync run`,
		Args: noArguments,
		RunE: p.verb(func(ctx context.Context, a *app, _ []string) (answer, error) {
			hangups := make(chan os.Signal, 1)
			signal.Notify(hangups, syscall.SIGHUP)
			defer signal.Stop(hangups)
			watching, err := a.watchers(ctx)
			if err != nil {
				return nil, err
			}
			d, err := newDaemon(a, watching)
			if err != nil {
				return nil, err
			}
			d.hooks.background = append(d.hooks.background, d.tellKeyVersion)
			if err := d.showBoard(ctx); err != nil {
				return nil, err
			}
			return nil, d.run(ctx, hangups)
		}),
	}
}
