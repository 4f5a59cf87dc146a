package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// compile builds the worker as a release does.
func compile(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "xiaoqu-sync")
	c := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "./cmd/xiaoqu-sync")
	c.Dir = filepath.Join("..", "..", "..")
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

// ship runs the program and gives the image and what it printed.
func ship(t *testing.T, binary string, flags ...string) (v1.Image, string) {
	t.Helper()
	dir := t.TempDir()
	var out bytes.Buffer
	if err := run(append(append([]string{"-out", dir}, flags...), binary), &out); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image, out.String()
}

// contents unpacks an image into root and lists it.
func contents(t *testing.T, image v1.Image, root string) map[string]int64 {
	t.Helper()
	flat := mutate.Extract(image)
	defer flat.Close()
	found := map[string]int64{}
	for r := tar.NewReader(flat); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(root, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(name, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		found[h.Name] = h.Mode
		// The upper layer comes first, before its folders.
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, h.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheImage(t *testing.T) {
	binary := compile(t)
	sbom := filepath.Join(t.TempDir(), "sbom.json")
	archive := filepath.Join(t.TempDir(), "image.tar")
	image, digest := ship(t, binary, "-version", "v1.2.3", "-sbom", sbom, "-archive", archive)
	root := t.TempDir()
	if err := os.Chmod(filepath.Dir(root), 0o755); err != nil { // for whom the image runs as
		t.Fatal(err)
	}

	t.Run("is the same for the same input", func(t *testing.T) {
		if _, again := ship(t, binary, "-version", "v1.2.3"); again != digest {
			t.Errorf("%s, then %s", digest, again)
		}
	})
	t.Run("holds the worker, certificates and nothing to run beside it", func(t *testing.T) {
		want := map[string]int64{
			"etc/passwd": 0o644, "etc/group": 0o644, "etc/nsswitch.conf": 0o644,
			"etc/ssl/certs/ca-certificates.crt": 0o644, "usr/bin/xiaoqu-sync": 0o755,
		}
		if diff := cmp.Diff(want, contents(t, image, root)); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	})
	t.Run("runs as nobody and says what it is", func(t *testing.T) {
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c := config.Config
		if c.User != "65532:65532" || strings.Join(c.Entrypoint, " ") != "/usr/bin/xiaoqu-sync" || config.Architecture == "" {
			t.Errorf("user %q, entrypoint %q, architecture %q", c.User, c.Entrypoint, config.Architecture)
		}
		if c.Labels["org.opencontainers.image.version"] != "v1.2.3" || c.Labels["org.opencontainers.image.licenses"] != "Apache-2.0" {
			t.Errorf("labels %v", c.Labels)
		}
	})
	t.Run("is small", func(t *testing.T) {
		var compressed int64
		layers, err := image.Layers()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range layers {
			size, err := l.Size()
			if err != nil {
				t.Fatal(err)
			}
			compressed += size
		}
		t.Logf("%.1f MB compressed", float64(compressed)/1e6)
		if compressed > 30e6 {
			t.Errorf("%d bytes compressed", compressed)
		}
	})
	t.Run("starts where there is nothing else", func(t *testing.T) {
		inside(t, root)
	})
	t.Run("comes with a bill of materials", func(t *testing.T) {
		text, err := os.ReadFile(sbom)
		if err != nil {
			t.Fatal(err)
		}
		var bom struct {
			BOMFormat  string
			Components []struct{ Name, Version, Purl string }
		}
		if err := json.Unmarshal(text, &bom); err != nil {
			t.Fatal(err)
		}
		if bom.BOMFormat != "CycloneDX" || len(bom.Components) < 10 || !strings.Contains(string(text), "pkg:golang/github.com/jackc/pgx/v5@v5") {
			t.Errorf("%s with %d components", bom.BOMFormat, len(bom.Components))
		}
	})
}

// inside runs the worker with the image as its whole world. Loading the default
// time zone proves that the zones are in the binary.
func inside(t *testing.T, root string) {
	t.Helper()
	if os.Getuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("only root can change the root")
	}
	c := exec.CommandContext(t.Context(), "/usr/bin/xiaoqu-sync", "config", "validate")
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	c.Dir = "/"
	c.Env = []string{
		"XIAOQU_BASE_URL=https://xiaoqu.example.com", "XIAOQU_SERVICE_NAME=crm", "XIAOQU_DATABASE_URL=postgres://db/crm",
		"XIAOQU_OPEN_KEY=xqok-not-a-real-key-0001",
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestABinaryThatWantsTheCLibraryIsRefused(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := buildinfo.ReadFile(self); err != nil || setting(info, "CGO_ENABLED") != "1" {
		t.Skip("this test itself is built without cgo")
	}
	err = run([]string{"-out", t.TempDir(), self}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("got %v", err)
	}
}
