// Command image builds the container image without a container engine: a scratch
// file system with CA certificates and the worker, the same bytes for the same
// input. It also writes the worker's bill of materials.
//
//	go run ./image -out DIR [-archive FILE] [-sbom FILE] BINARY...
//
// DIR becomes an OCI layout with one image for each binary, which tools such as
// crane and skopeo push; FILE can be given to docker load. It prints the digest.
package main

import (
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

type options struct {
	out, archive, sbom string
	version            string
	created            time.Time
}

func run(args []string, out io.Writer) error {
	o := options{created: time.Unix(0, 0).UTC()}
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&o.out, "out", "", "`DIR` of the OCI layout to write")
	flags.StringVar(&o.archive, "archive", "", "`FILE` for docker load, with the first binary's image")
	flags.StringVar(&o.sbom, "sbom", "", "`FILE` for the bill of materials (CycloneDX JSON) of the first binary")
	flags.StringVar(&o.version, "version", "", "release; the binary's own unless given")
	flags.Func("created", "`TIME` (RFC 3339) that the image bears; 1970 unless given", func(s string) (err error) {
		o.created, err = time.Parse(time.RFC3339, s)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.out == "" || flags.NArg() == 0 {
		return errors.New("-out and at least one binary are needed")
	}
	index, err := build(o, flags.Args())
	if err != nil {
		return err
	}
	if _, err := layout.Write(o.out, index); err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	digest, err := index.Digest()
	if err == nil {
		fmt.Fprintln(out, digest)
	}
	return err
}

// build makes the index of one image for each binary.
func build(o options, binaries []string) (v1.ImageIndex, error) {
	index := v1.ImageIndex(empty.Index)
	for i, file := range binaries {
		info, err := inspect(file)
		if err != nil {
			return nil, err
		}
		image, err := assemble(o, file, info)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		platform := &v1.Platform{OS: setting(info, "GOOS"), Architecture: setting(info, "GOARCH")}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
		if i > 0 {
			continue
		}
		if err := companions(o, image, info); err != nil {
			return nil, err
		}
	}
	return index, nil
}

// companions writes what the first binary's image comes with.
func companions(o options, image v1.Image, info *buildinfo.BuildInfo) error {
	if o.archive != "" {
		tag, err := name.NewTag("xiaoqu-sync:" + strings.ReplaceAll(version(o, info), "+", "_"))
		if err != nil {
			return err
		}
		if err := tarball.WriteToFile(o.archive, tag, image); err != nil {
			return fmt.Errorf("write the archive: %w", err)
		}
	}
	if o.sbom == "" {
		return nil
	}
	return writeSBOM(o, info)
}

// inspect refuses a binary that would not run in an empty file system.
func inspect(file string) (*buildinfo.BuildInfo, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, err
	}
	switch {
	case setting(info, "GOOS") != "linux":
		err = errors.New("is not built for Linux")
	case setting(info, "CGO_ENABLED") != "0":
		err = errors.New("wants the C library: build it with CGO_ENABLED=0")
	}
	if err != nil {
		return nil, fmt.Errorf("%s %w", file, err)
	}
	return info, nil
}

func setting(info *buildinfo.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

func version(o options, info *buildinfo.BuildInfo) string {
	switch {
	case o.version != "":
		return o.version
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	default:
		return "devel"
	}
}
