package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// describe prints what a rebuild held back, a dry run would do, or a
// verification found.
func describe(w io.Writer, o sync.Outcome) {
	d := o.Difference
	heading := map[sync.Result]string{
		sync.Held:    "held by the deletion fuse; a merge would",
		sync.Planned: "a merge would",
		sync.Drifted: "the mirror differs from the remote; a rebuild would",
	}[o.Result]
	if heading == "" {
		return
	}
	fmt.Fprintf(w, "\n%s: %s\n", o.Resource, heading)
	if d.Equal() {
		fmt.Fprintf(w, "  change nothing; %d rows are as they should be\n", d.Unchanged)
		return
	}
	for _, part := range parts(*d) {
		if part.n > 0 {
			fmt.Fprintf(w, "  %-38s %8d  %s\n", part.what, part.n, strings.Join(d.Samples[part.kind], " "))
		}
	}
	if len(d.Fields) > 0 {
		fields := slices.SortedFunc(maps.Keys(d.Fields), func(a, b string) int { return int(d.Fields[b] - d.Fields[a]) })
		for i, f := range fields {
			fields[i] = fmt.Sprintf("%s (%d)", f, d.Fields[f])
		}
		fmt.Fprintf(w, "  fields that differ: %s\n", strings.Join(fields, ", "))
	}
}

type part struct {
	kind, what string
	n          int64
}

func parts(d mirror.Difference) []part {
	return []part{
		{"inserted", "add rows", d.Inserted},
		{"updated", "change rows", d.Updated},
		{"revived", "bring back deleted rows", d.Revived},
		{"tombstoned", "mark as deleted (tombstone)", d.Tombstoned},
		{"absent", "mark as deleted (no longer upstream)", d.Absent},
	}
}
