package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

// quarantineFlags choose lines of the quarantine.
type quarantineFlags struct {
	ids             []int64
	kind            string
	after           int64
	limit           int
	raw, everything bool
}

func (p *program) quarantineVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "quarantine",
		Short: "Look at the records that could not be mirrored as they came",
		Long: `Records that could not be mirrored as they came are kept with all their bytes.
"refused" ones are not in the mirror; "mended" ones are, with U+FFFD where they
had text that PostgreSQL cannot hold. Their page landed in any case.`,
		RunE: unknownVerb,
	}
	c.AddCommand(p.quarantineList(), p.quarantineReplay(), p.quarantineDrop())
	return c
}

func (p *program) quarantineList() *cobra.Command {
	var f quarantineFlags
	c := &cobra.Command{
		Use:   "list [RESOURCE…]",
		Short: "List what is in quarantine",
		Example: `  xiaoqu-sync quarantine list users --kind refused
  xiaoqu-sync quarantine list --id 17 --raw --output json`,
		RunE: p.localVerb(func(ctx context.Context, a *app, args []string) (answer, error) {
			if f.raw && p.output != outputJSON {
				return nil, usageError{errors.New("--raw is for --output json, where the bytes are in base64")}
			}
			s, err := f.selection(a, args)
			if err != nil {
				return nil, err
			}
			lines, err := a.mirror.Quarantine(ctx, s)
			if err != nil {
				return nil, err
			}
			return quarantineAnswer{Records: lines, more: len(lines) == f.limit}, nil
		}),
	}
	f.choose(c)
	flags := c.Flags()
	flags.Int64Var(&f.after, "after", 0, "only ids above this one: the next part of a long list")
	flags.IntVar(&f.limit, "limit", 100, "how many at most, 1 to 10000")
	flags.BoolVar(&f.raw, "raw", false, "with the bytes as they came, in base64; they hold personal data")
	return c
}

func (p *program) quarantineReplay() *cobra.Command {
	var f quarantineFlags
	c := &cobra.Command{
		Use:   "replay [RESOURCE…]",
		Short: "Try again what is in quarantine, with this release's rules",
		Long: `Judge the records in quarantine again. What this release can store as it came is
written to the mirror and leaves the quarantine, in one transaction. A record that
the mirror has heard of since only leaves it: the newer one stands.`,
		RunE: p.localVerb(func(ctx context.Context, a *app, args []string) (answer, error) {
			s, err := f.selection(a, args)
			if err != nil {
				return nil, err
			}
			return a.replay(ctx, s)
		}),
	}
	f.choose(c)
	return c
}

func (p *program) quarantineDrop() *cobra.Command {
	var f quarantineFlags
	c := &cobra.Command{
		Use:     "drop [RESOURCE…]",
		Short:   "Forget what is in quarantine",
		Example: "  xiaoqu-sync quarantine drop --id 17,18\n  xiaoqu-sync quarantine drop users --kind mended --all",
		RunE: p.localVerb(func(ctx context.Context, a *app, args []string) (answer, error) {
			if f.everything == (len(f.ids) > 0) {
				return nil, usageError{errors.New("say which with --id, or --all for everything that RESOURCE and --kind choose")}
			}
			s, err := f.selection(a, args)
			if err != nil {
				return nil, err
			}
			gone, err := a.mirror.Drop(ctx, s)
			if err != nil {
				return nil, err
			}
			out := droppedAnswer{Dropped: []dropped{}}
			for _, r := range s.Resources {
				out.Dropped = append(out.Dropped, dropped{r, gone[r]})
			}
			return out, nil
		}),
	}
	f.choose(c)
	c.Flags().BoolVar(&f.everything, "all", false, "everything that RESOURCE and --kind choose")
	return c
}

func (f *quarantineFlags) choose(c *cobra.Command) {
	c.Flags().Int64SliceVar(&f.ids, "id", nil, "only these, as quarantine list names them")
	c.Flags().StringVar(&f.kind, "kind", "", "only refused, or only mended")
}

func (f *quarantineFlags) selection(a *app, names []string) (mirror.Selection, error) {
	resources, err := a.chosen(names)
	switch {
	case err != nil:
		return mirror.Selection{}, err
	case !slices.Contains([]string{"", "refused", "mended"}, f.kind):
		return mirror.Selection{}, usageError{fmt.Errorf("--kind takes refused or mended, not %q", f.kind)}
	case f.limit < 0 || f.limit > 10_000:
		return mirror.Selection{}, usageError{errors.New("--limit takes 1 to 10000")}
	}
	return mirror.Selection{Resources: resources, IDs: f.ids, Kind: f.kind, After: f.after, Limit: f.limit, Raw: f.raw}, nil
}

// replay works on one resource after the other, each under its lease.
func (a *app) replay(ctx context.Context, s mirror.Selection) (answer, error) {
	out := replayAnswer{Replayed: []replayed{}}
	for _, r := range s.Resources {
		var done mirror.Replayed
		if err := a.holding(ctx, r, func(at mirror.Checkpoint) (err error) {
			_, done, err = a.mirror.Replay(ctx, at, s, a.config.TimeZone)
			return err
		}); err != nil {
			return nil, err
		}
		out.Replayed = append(out.Replayed, replayed{r, done})
	}
	return out, nil
}

type quarantineAnswer struct {
	Records []mirror.Quarantined `json:"records"`
	more    bool
}

func (q quarantineAnswer) text(w io.Writer) {
	if len(q.Records) == 0 {
		fmt.Fprintln(w, "nothing is in quarantine")
		return
	}
	t := newTable(w, "ID", "RESOURCE", "KIND", "REASON", "RECORD", "BYTES", "SEEN", "LAST SEEN", "REQUEST")
	for _, r := range q.Records {
		t.row(plain, r.ID, r.Resource, r.Kind, r.Reason, dash(r.RecordID), r.RawLength, r.Seen, clock(&r.LastSeenAt), dash(r.RequestID))
	}
	t.flush()
}

func (q quarantineAnswer) warnings() []string {
	if !q.more {
		return nil
	}
	return []string{fmt.Sprintf("there may be more: --after %d goes on", q.Records[len(q.Records)-1].ID)}
}

type replayed struct {
	Resource string `json:"resource"`
	mirror.Replayed
}

type replayAnswer struct {
	Replayed []replayed `json:"replayed"`
}

func (r replayAnswer) text(w io.Writer) {
	t := newTable(w, "RESOURCE", "TRIED", "STORED", "UNCHANGED", "SUPERSEDED", "REMAINING")
	for _, x := range r.Replayed {
		t.row(plain, x.Resource, x.Tried, x.Stored, x.Unchanged, x.Superseded, x.Remaining)
	}
	t.flush()
}

type dropped struct {
	Resource string `json:"resource"`
	Records  int64  `json:"records"`
}

type droppedAnswer struct {
	Dropped []dropped `json:"dropped"`
}

func (d droppedAnswer) text(w io.Writer) {
	for _, x := range d.Dropped {
		fmt.Fprintf(w, "%s: %d records dropped\n", x.Resource, x.Records)
	}
}
