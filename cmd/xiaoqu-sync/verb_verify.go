package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

func (p *program) verifyVerb() *cobra.Command {
	var wait time.Duration
	c := &cobra.Command{
		Use:   "verify [RESOURCE…]",
		Short: "Compare the mirror with the whole of the remote",
		Long: `Compare the mirror with the whole of the remote: a full pass into staging, set
against the rows that readers see. The mirror is never written. What changed
upstream since the last sync is no drift: the next one brings it. Drift is exit 6.`,
		Example: `  xiaoqu-sync verify
  xiaoqu-sync verify contracts --output json`,
		RunE: p.verb(func(ctx context.Context, a *app, args []string) (answer, error) {
			report, err := a.work(ctx, args, wait, (*sync.Engine).Verify)
			if err != nil {
				return nil, err
			}
			return report, report.err(false)
		}),
	}
	c.Flags().DurationVar(&wait, "wait", time.Minute, "how long to wait while another run works on the resource")
	p.offerMetricsFile(c)
	return c
}
