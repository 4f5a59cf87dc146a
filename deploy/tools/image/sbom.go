package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM lists what the Go tool recorded in the binary: every module that is
// linked, and the Go release itself.
func writeSBOM(o options, info *buildinfo.BuildInfo) error {
	bom := cdx.NewBOM()
	// The same binary makes the same list: no serial number, the image's time.
	bom.Metadata = &cdx.Metadata{
		Timestamp: o.created.UTC().Format(time.RFC3339),
		Component: &cdx.Component{
			BOMRef: "xiaoqu-sync", Type: cdx.ComponentTypeApplication, Name: "xiaoqu-sync", Version: version(o, info),
			PackageURL: packageURL(info.Main.Path, version(o, info)),
			Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		},
	}
	components := []cdx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		for m.Replace != nil {
			m = m.Replace
		}
		components = append(components, library(m.Path, m.Version))
	}
	bom.Components = &components
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom.Dependencies = &[]cdx.Dependency{{Ref: "xiaoqu-sync", Dependencies: &refs}}

	f, err := os.Create(o.sbom)
	if err != nil {
		return fmt.Errorf("write the bill of materials: %w", err)
	}
	err = cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}

func library(path, version string) cdx.Component {
	url := packageURL(path, version)
	return cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url}
}

func packageURL(path, version string) string { return "pkg:golang/" + path + "@" + version }
