package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"encoding/pem"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is nobody in particular, the same as in the distroless images.
const user = "65532:65532"

// assemble puts the two layers and the configuration together: what seldom
// changes is below.
func assemble(o options, binary string, info *buildinfo.BuildInfo) (v1.Image, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	for _, files := range [][]file{base(), {{name: "usr/bin/xiaoqu-sync", mode: 0o755, text: program}}} {
		layer, err := pack(files, o.created)
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer:   layer,
			History: v1.History{Created: v1.Time{Time: o.created}, CreatedBy: "deploy/tools/image"},
		})
		if err != nil {
			return nil, err
		}
	}
	configFile, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	configFile = configFile.DeepCopy()
	configFile.OS, configFile.Architecture = setting(info, "GOOS"), setting(info, "GOARCH")
	configFile.Created = v1.Time{Time: o.created}
	configFile.Config = v1.Config{
		User: user, WorkingDir: "/",
		Entrypoint: []string{"/usr/bin/xiaoqu-sync"}, Cmd: []string{"run"},
		Env:          []string{"PATH=/usr/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		ExposedPorts: map[string]struct{}{"9464/tcp": {}},
		Labels:       labels(o, info),
	}
	return mutate.ConfigFile(image, configFile)
}

func labels(o options, info *buildinfo.BuildInfo) map[string]string {
	l := map[string]string{
		"org.opencontainers.image.title":       "xiaoqu-sync",
		"org.opencontainers.image.description": "Keeps a PostgreSQL mirror of one Xiaoqu tenant",
		"org.opencontainers.image.source":      "https://github.com/xiaoqu-sync/xiaoqu-sync",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     version(o, info),
	}
	if revision := setting(info, "vcs.revision"); revision != "" {
		l["org.opencontainers.image.revision"] = revision
	}
	return l
}

type file struct {
	name string
	mode int64
	text []byte
	dir  bool
}

// base is the file system below the worker. Time zones are in the binary.
func base() []file {
	return []file{
		{name: "etc/", mode: 0o755, dir: true},
		{name: "etc/passwd", mode: 0o644, text: []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, text: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{name: "etc/nsswitch.conf", mode: 0o644, text: []byte("hosts: files dns\n")},
		{name: "etc/ssl/", mode: 0o755, dir: true},
		{name: "etc/ssl/certs/", mode: 0o755, dir: true},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, text: certificates()},
		{name: "tmp/", mode: 0o1777, dir: true},
		{name: "usr/", mode: 0o755, dir: true},
		{name: "usr/bin/", mode: 0o755, dir: true},
	}
}

// certificates are Mozilla's roots. One that is trusted under a condition only is
// left out: a file of certificates cannot say the condition.
func certificates() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes it all
		}
	}
	return text.Bytes()
}

// pack makes a layer whose bytes depend on its files and the time alone.
func pack(files []file, created time.Time) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.text)), ModTime: created, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if f.dir {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}
