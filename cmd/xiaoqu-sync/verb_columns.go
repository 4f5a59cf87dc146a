package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/views"
)

func (p *program) columnsVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "columns",
		Short: "Propose typed columns for the readers' views",
		RunE:  unknownVerb,
	}
	c.AddCommand(p.columnsSuggest())
	return c
}

func (p *program) columnsSuggest() *cobra.Command {
	var records int
	c := &cobra.Command{
		Use:   "suggest RESOURCE",
		Short: "Look at what is mirrored and propose columns, as YAML to paste",
		Long: `Look at the newest records in the mirror and propose typed columns, as YAML for the
configuration file. Values that could be about a person are shown by their form:
letters as a, digits as 9. Where the remote is configured it is asked too what it
declares of the records (the tool's outputSchema), so that an empty mirror will do.`,
		Example: "  xiaoqu-sync columns suggest contracts >> xiaoqu-sync.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return usageError{errors.New("name one resource")}
			case records < 1 || records > 100_000:
				return usageError{errors.New("--records takes 1 to 100000")}
			}
			return nil
		},
		RunE: p.localVerb(func(ctx context.Context, a *app, args []string) (answer, error) {
			resources, err := a.chosen(args)
			if err != nil {
				return nil, err
			}
			return a.suggest(ctx, resources[0], records)
		}),
	}
	c.Flags().IntVar(&records, "records", 2000, "how many of the newest records to look at")
	return c
}

func (a *app) suggest(ctx context.Context, resource string, records int) (answer, error) {
	declared := a.declared(ctx, resource)
	found, err := a.mirror.Suggest(ctx, resource, records, declared)
	var e *mirror.Error
	if errors.As(err, &e) && e.Kind == mirror.KindSchema && len(declared) > 0 {
		found, err = views.Suggest(nil, declared), nil // before the first sync
	}
	if err != nil {
		return nil, err
	}
	return suggestAnswer{Resource: resource, Columns: suggestions(found)}, nil
}

// declareTimeout bounds what a help is waited for.
const declareTimeout = 15 * time.Second

// declared are the columns that the remote declares, none when it is not
// configured, cannot be asked, or declares nothing: what is mirrored is left then.
func (a *app) declared(ctx context.Context, resource string) []views.Column {
	if a.config.BaseURL == "" || a.config.ServiceName == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, declareTimeout)
	defer cancel()
	client, err := a.remote(ctx, 0)
	var schema json.RawMessage
	if err == nil {
		schema, err = client.OutputSchema(ctx, resource+".changes.list")
	}
	if err != nil {
		a.log.Warn("the remote could not be asked what it declares; the columns are of what is mirrored alone", zap.Error(err))
	}
	return views.Declared(schema, a.config.Resources[resource].ListKey)
}

type suggestAnswer struct {
	Resource string       `json:"resource"`
	Columns  []suggestion `json:"columns"`
}

type suggestion struct {
	Name     string     `json:"name"`
	Path     string     `json:"path"`
	Type     views.Type `json:"type"`
	Records  int        `json:"records"` // that have the member; 0: the remote declares it
	Nulls    int        `json:"nulls"`
	Examples []string   `json:"examples"`
}

func suggestions(found []views.Suggestion) []suggestion {
	all := make([]suggestion, len(found))
	for i, f := range found {
		all[i] = suggestion{f.Name, f.Path, f.Type, f.Records, f.Nulls, f.Examples}
	}
	return all
}

func (s suggestAnswer) text(w io.Writer) {
	if len(s.Columns) == 0 {
		fmt.Fprintf(w, "# %s has no records yet, and the remote declares nothing about them\n", s.Resource)
		return
	}
	fmt.Fprintf(w, "resources:\n  %s:\n    columns:\n", s.Resource)
	for _, c := range s.Columns {
		remark := "declared by the remote, not seen yet"
		if c.Records > 0 {
			remark = fmt.Sprintf("%d records, %d%% null", c.Records, 100*c.Nulls/c.Records)
		}
		if len(c.Examples) > 0 {
			remark += ", such as " + printable(strings.Join(c.Examples, " | "))
		}
		fmt.Fprintf(w, "      %s: {path: %s, type: %s} # %s\n", c.Name, yamlText(c.Path), yamlText(string(c.Type)), strings.ReplaceAll(remark, "\n", " "))
	}
}

// yamlText quotes a text that YAML would take for something else within braces.
func yamlText(s string) string {
	if strings.ContainsAny(s, "[]{},:'\"#&*!|>%@` ") {
		return strconv.Quote(s)
	}
	return s
}
