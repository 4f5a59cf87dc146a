package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

func (p *program) migrateVerb() *cobra.Command {
	var f migrateFlags
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Create or upgrade the mirror's tables",
		Long: `Create or upgrade the mirror's tables: the bookkeeping schema, and a table and
views for each configured resource, with its typed columns. Safe to run twice and from two places at
once. sync does it by itself unless database.auto_migrate is false.`,
		Example: `  xiaoqu-sync migrate --dry-run
  xiaoqu-sync migrate
  xiaoqu-sync migrate --grant-reader crm_reader
  xiaoqu-sync migrate --grant-reader analyst --masked`,
		Args: noArguments,
		RunE: p.localVerb(func(ctx context.Context, a *app, _ []string) (answer, error) {
			return a.migrate(ctx, f)
		}),
	}
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be done and do nothing")
	c.Flags().StringVar(&f.reader, "grant-reader", "", "let this role read the tables and views, those to come as well")
	c.Flags().BoolVar(&f.masked, "masked", false, "with --grant-reader: the masked views and freshness alone")
	return c
}

type migrateFlags struct {
	dryRun, masked bool
	reader         string
}

func (a *app) migrate(ctx context.Context, f migrateFlags) (answer, error) {
	masked, err := a.maskedResources(f)
	if err != nil {
		return nil, err
	}
	report, err := a.mirror.Migrate(ctx, a.config.Names(), f.dryRun)
	if err != nil {
		return nil, err
	}
	out := migrateAnswer{MigrationReport: report}
	if out.Views, err = a.readers(ctx, f.dryRun); err != nil {
		return nil, err
	}
	if f.reader != "" && !f.dryRun {
		if err := a.mirror.GrantReader(ctx, f.reader, f.masked, masked); err != nil {
			return nil, err
		}
		out.GrantedTo = f.reader
	}
	return out, nil
}

// maskedResources are those with a masked view, when --masked asks for them.
func (a *app) maskedResources(f migrateFlags) ([]string, error) {
	if !f.masked {
		return nil, nil
	}
	var masked []string
	for _, r := range a.config.Names() {
		if len(a.config.Resources[r].Masked) > 0 {
			masked = append(masked, r)
		}
	}
	switch {
	case f.reader == "":
		return nil, usageError{errors.New("--masked goes with --grant-reader ROLE")}
	case len(masked) == 0:
		return nil, usageError{errors.New("no resource has masked paths in the configuration (resources.NAME.masked); is its file given with --config?")}
	}
	return masked, nil
}

type migrateAnswer struct {
	mirror.MigrationReport
	Views     []string `json:"views"`                // of these resources, made from the configuration
	GrantedTo string   `json:"granted_to,omitempty"` // the role of --grant-reader
}

func (m migrateAnswer) text(w io.Writer) {
	if m.GrantedTo != "" {
		fmt.Fprintf(w, "%s may read schema %s\n", m.GrantedTo, m.Schema)
	}
	if len(m.Schemas)+len(m.Applied)+len(m.Created)+len(m.Views) == 0 {
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
	}{{"schema", m.Schemas}, {"migration", m.Applied}, {"resource", m.Created}, {"views of", m.Views}} {
		for _, n := range part.names {
			fmt.Fprintf(w, "  %s %s\n", part.what, n)
		}
	}
}
