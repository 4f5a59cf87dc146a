package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/views"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// outputMode is how results are printed.
type outputMode string

const (
	outputText outputMode = "text"
	outputJSON outputMode = "json"
)

// String, Set and Type make it a command-line flag that refuses other words.
func (o *outputMode) String() string { return string(*o) }

// Set parses the flag's value.
func (o *outputMode) Set(s string) error {
	switch m := outputMode(s); m {
	case outputText, outputJSON:
		*o = m
		return nil
	}
	return errors.New(`use "text" or "json"`)
}

// Type names the flag's values in help.
func (o *outputMode) Type() string { return "text|json" }

// wantedOutput looks for the form of the result ahead of the parser, so that
// a mistake in the command line is answered in that form too.
func wantedOutput(args []string) outputMode {
	for i, a := range args {
		for _, flag := range []string{"--output", "-o"} {
			value, glued := strings.CutPrefix(a, flag)
			if glued && value == "" && i+1 < len(args) {
				value = args[i+1]
			}
			if glued && strings.TrimPrefix(value, "=") == string(outputJSON) {
				return outputJSON
			}
		}
	}
	return outputText
}

// program is one invocation: its surroundings, its common flags, and the
// answer that the verb left.
type program struct {
	env      []string // in the form of os.Environ
	out      io.Writer
	errOut   io.Writer
	redactor *credentials.Redactor

	configPath string
	output     outputMode
	flags      map[string]*string // settings given as flags, by the flag's name

	metricsFile string // for node_exporter, "" for none

	answer answer
}

// offerMetricsFile gives a verb that runs once the flag --metrics-file.
func (p *program) offerMetricsFile(c *cobra.Command) {
	c.Flags().StringVar(&p.metricsFile, "metrics-file", "", "leave the metrics here for node_exporter's textfile collector (*.prom)")
}

func newProgram(env []string, out, errOut io.Writer) *program {
	return &program{env: env, out: out, errOut: errOut, redactor: credentials.NewRedactor(), output: outputText}
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "xiaoqu-sync",
		Short: "Keep a PostgreSQL mirror of a Xiaoqu tenant",
		Long: `xiaoqu-sync keeps a PostgreSQL mirror of one Xiaoqu tenant: users, properties
and contracts, read over Xiaoqu's MCP server and committed page by page.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		Version:           buildVersion().Version,
		RunE:              unknownVerb,
	}
	flags := root.PersistentFlags()
	flags.StringVarP(&p.configPath, "config", "c", "", "configuration file (YAML)")
	flags.VarP(&p.output, "output", "o", "form of the result")
	p.flags = map[string]*string{
		"log-level":       flags.String("log-level", "", "auto, debug, info, warn or error"),
		"log-format":      flags.String("log-format", "", "text or json"),
		"database-schema": flags.String("database-schema", "", "data schema (default xiaoqu)"),
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.SetUsageTemplate(root.UsageTemplate() + "\n" + exitTable)
	root.AddCommand(
		p.runVerb(), p.syncVerb(), p.statusVerb(), p.checkVerb(), p.rebuildVerb(), p.verifyVerb(), p.purgeVerb(), p.quarantineVerb(),
		p.columnsVerb(), p.alertVerb(), p.migrateVerb(), p.agentVerb(), p.capabilitiesVerb(), p.configVerb(), p.versionVerb(), p.tokenVerb(),
	)
	return root
}

func unknownVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	err := fmt.Errorf("unknown verb %q", args[0])
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return usageError{err}
}

// noArguments refuses what a verb would otherwise ignore.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no argument, and %q was given", c.CommandPath(), args[0])}
	}
	return nil
}

// oneArgument wants what the verb's use line names.
func oneArgument(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%d arguments were given, and one is wanted: %s", len(args), c.UseLine())}
	}
	return nil
}

// oneOf is oneArgument from the verb's list.
func oneOf(c *cobra.Command, args []string) error {
	if err := oneArgument(c, args); err != nil {
		return err
	}
	if !slices.Contains(c.ValidArgs, args[0]) {
		return usageError{fmt.Errorf("%s does not know %q; it takes %s", c.CommandPath(), args[0], strings.Join(c.ValidArgs, ", "))}
	}
	return nil
}

// bare runs a verb that needs no configuration.
func (p *program) bare(f func(ctx context.Context, args []string) (answer, error)) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) (err error) {
		p.answer, err = f(c.Context(), args)
		return err
	}
}

// verb runs a verb that works on the mirror: it loads the configuration,
// opens what is needed, and closes it behind the verb.
func (p *program) verb(f func(ctx context.Context, a *app, args []string) (answer, error)) func(*cobra.Command, []string) error {
	return p.opened(config.Input{}, f)
}

// localVerb runs a verb that never asks the remote, and so needs no address
// and no name there.
func (p *program) localVerb(f func(ctx context.Context, a *app, args []string) (answer, error)) func(*cobra.Command, []string) error {
	return p.opened(config.Input{DatabaseOnly: true}, f)
}

func (p *program) opened(in config.Input, f func(ctx context.Context, a *app, args []string) (answer, error)) func(*cobra.Command, []string) error {
	return p.bare(func(ctx context.Context, args []string) (answer, error) {
		cfg, err := p.load(in)
		if err != nil {
			return nil, err
		}
		a, err := p.open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		defer a.close()
		return f(ctx, a, args)
	})
}

// load reads the configuration: file, environment, flags, the later ones
// stronger.
func (p *program) load(in config.Input) (*config.Config, error) {
	given := map[string]string{}
	for name, value := range p.flags {
		if *value != "" {
			given[name] = *value
		}
	}
	in.Path, in.Env, in.Flags = p.configPath, p.env, given
	in.CheckSchedule, in.CheckColumn, in.CheckPath = sync.CheckSchedule, checkColumn, views.CheckMask
	return config.Load(in)
}

// lookup finds a variable in the environment; of two the last counts, as in
// os/exec.
func (p *program) lookup(name string) (string, bool) {
	for _, kv := range slices.Backward(p.env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// terminal tells whether w is a terminal, where progress and colour make sense.
func terminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
