package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

func (p *program) configVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Validate, show or describe the configuration",
		Args:  noArguments,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		&cobra.Command{
			Use:     "validate",
			Short:   "Report every mistake in file, environment and flags at once",
			Example: "  xiaoqu-sync config validate --config xiaoqu-sync.yaml",
			Args:    noArguments,
			RunE:    p.bare(p.validate),
		},
		&cobra.Command{
			Use:     "show",
			Short:   "Print the values in force and where each one comes from",
			Example: "  xiaoqu-sync config show --output json",
			Args:    noArguments,
			RunE: p.bare(func(context.Context, []string) (answer, error) {
				cfg, err := p.load(config.Input{})
				if err != nil {
					return nil, err
				}
				return configShown{cfg.Effective()}, nil
			}),
		},
		&cobra.Command{
			Use:     "schema",
			Short:   "Print the JSON Schema of the configuration file, for editors",
			Example: "  xiaoqu-sync config schema > xiaoqu-sync.schema.json",
			Args:    noArguments,
			RunE: p.bare(func(context.Context, []string) (answer, error) {
				schema, err := config.Schema()
				return configSchema(schema), err
			}),
		},
	)
	return c
}

// validate also tries what another room has to say about a value. A missing
// key is a remark only: where files are validated there often is none.
func (p *program) validate(ctx context.Context, _ []string) (answer, error) {
	cfg, err := p.load(config.Input{})
	if err != nil {
		return nil, err
	}
	m, err := mirror.Open(ctx, mirror.Options{URL: cfg.Database.URL, Schema: cfg.Database.Schema})
	if err != nil {
		return nil, config.Problems{{Field: "database.url", Message: err.Error()}}
	}
	m.Close()
	valid := configValid{Valid: true, Resources: cfg.Names(), notes: cfg.Warnings()}
	if cfg.Credentials.Source == config.SourceVault { // validation asks nobody
		return valid, nil
	}
	if _, err := p.keySource(cfg, nil).Key(ctx); err != nil {
		valid.notes = append(valid.notes, config.Problem{Field: "credentials.source", Message: err.Error()})
	}
	_, lacking := p.alertTargets(cfg)
	valid.notes = append(valid.notes, lacking...)
	return valid, nil
}

type configValid struct {
	Valid     bool     `json:"valid"`
	Resources []string `json:"resources"`
	notes     []config.Problem
}

func (c configValid) text(w io.Writer) { fmt.Fprintln(w, "the configuration is valid") }

func (c configValid) warnings() []string {
	ws := make([]string, len(c.notes))
	for i, n := range c.notes {
		ws[i] = n.String()
	}
	return ws
}

type configShown struct {
	Settings []config.Setting `json:"settings"`
}

func (c configShown) text(w io.Writer) {
	t := newTable(w, "SETTING", "VALUE", "FROM")
	for _, s := range c.Settings {
		t.row(plain, s.Name, s.Value, s.Origin)
	}
	t.flush()
}

// configSchema prints as itself in both forms: in text for a shell's
// redirection, in JSON as the envelope's data.
type configSchema json.RawMessage

func (c configSchema) text(w io.Writer) { fmt.Fprintf(w, "%s\n", []byte(c)) }

// MarshalJSON hands the schema through.
func (c configSchema) MarshalJSON() ([]byte, error) { return c, nil }
