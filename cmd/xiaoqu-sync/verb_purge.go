package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

func (p *program) purgeVerb() *cobra.Command {
	var age string
	c := &cobra.Command{
		Use:   "purge [RESOURCE…] --older-than 90d",
		Short: "Remove old tombstones for good",
		Long: `Remove rows for good that were deleted at the source, and marked so here, longer
ago than --older-than. It happens on request only. A reader that was away for longer than that no longer
learns of these deletions from change_seq.`,
		Example: "  xiaoqu-sync purge --older-than 90d\n  xiaoqu-sync purge users --older-than 720h",
		RunE: p.localVerb(func(ctx context.Context, a *app, args []string) (answer, error) {
			older, err := days(age)
			if err != nil {
				return nil, usageError{err}
			}
			return a.purge(ctx, args, older)
		}),
	}
	c.Flags().StringVar(&age, "older-than", "", "age of the deletions: 90d, or a duration like 720h (required)")
	return c
}

// days reads a duration that may be in days.
func days(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if n, ok := strings.CutSuffix(text, "d"); ok {
		var count int
		count, err = strconv.Atoi(n)
		d = time.Duration(count) * 24 * time.Hour
	}
	if err != nil || d < time.Hour || d > 100*365*24*time.Hour {
		return 0, errors.New("--older-than takes days or a duration, from 1h to 36500d, such as 90d")
	}
	return d, nil
}

func (a *app) purge(ctx context.Context, names []string, older time.Duration) (answer, error) {
	resources, err := a.chosen(names)
	if err != nil {
		return nil, err
	}
	var out purgeAnswer
	for _, r := range resources {
		var n int64
		if err := a.holding(ctx, r, func(at mirror.Checkpoint) (err error) {
			_, n, err = a.mirror.Purge(ctx, at, older)
			return err
		}); err != nil {
			return nil, err
		}
		out.Purged = append(out.Purged, purged{r, n})
	}
	return out, nil
}

type purged struct {
	Resource string `json:"resource"`
	Rows     int64  `json:"rows"`
}

type purgeAnswer struct {
	Purged []purged `json:"purged"`
}

func (p purgeAnswer) text(w io.Writer) {
	for _, r := range p.Purged {
		fmt.Fprintf(w, "%s: %d tombstones removed\n", r.Resource, r.Rows)
	}
}
