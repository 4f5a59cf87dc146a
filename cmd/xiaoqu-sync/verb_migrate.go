package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

func (p *program) migrateVerb() *cobra.Command {
	var dryRun bool
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Create or upgrade the mirror's tables",
		Long: `Create or upgrade the mirror's tables: the bookkeeping schema, and a table and
a view for each configured resource. Safe to run twice and from two places at
once. sync does it by itself unless database.auto_migrate is false.`,
		Example: `  xiaoqu-sync migrate --dry-run
  xiaoqu-sync migrate`,
		Args: noArguments,
		RunE: p.localVerb(func(ctx context.Context, a *app, _ []string) (answer, error) {
			report, err := a.mirror.Migrate(ctx, a.config.Names(), dryRun)
			if err != nil {
				return nil, err
			}
			return migrateAnswer{report}, nil
		}),
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done and do nothing")
	return c
}

type migrateAnswer struct{ mirror.MigrationReport }

func (m migrateAnswer) text(w io.Writer) {
	if len(m.Schemas)+len(m.Applied)+len(m.Created) == 0 {
		fmt.Fprintf(w, "nothing to do; schema %s is at version %d\n", m.Schema, m.To)
		return
	}
	done := "applied"
	if m.DryRun {
		done = "would apply"
	}
	fmt.Fprintf(w, "%s, version %d → %d:\n", done, m.From, m.To)
	for _, part := range []struct {
		what  string
		names []string
	}{{"schema", m.Schemas}, {"migration", m.Applied}, {"resource", m.Created}} {
		for _, n := range part.names {
			fmt.Fprintf(w, "  %s %s\n", part.what, n)
		}
	}
}
