package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionAnswer is what this binary is made of.
type versionAnswer struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (v versionAnswer) text(w io.Writer) {
	fmt.Fprintf(w, "xiaoqu-sync %s (%s, %s)\n", v.Version, v.Go, v.Platform)
	if v.Revision != "" {
		fmt.Fprintf(w, "revision %s\n", v.Revision)
	}
}

// buildVersion reads what the Go tool recorded at build time.
func buildVersion() versionAnswer {
	v := versionAnswer{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (p *program) versionVerb() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this binary",
		Example: "  xiaoqu-sync version --output json",
		Args:    noArguments,
		RunE: p.bare(func(context.Context, []string) (answer, error) {
			return buildVersion(), nil
		}),
	}
}
