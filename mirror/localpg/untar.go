package localpg

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	packageDir = "package/"
	nativeDir  = "native/"
	// maxUnpacked bounds the files of the package together, in bytes.
	maxUnpacked = 1 << 30
)

var errTooLarge = errors.New("unpacks to more than 1 GiB")

// untar writes the server's files: those below the package's native directory.
func untar(r io.Reader, to string) error {
	gz, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	left := int64(maxUnpacked)
	for tr := tar.NewReader(gz); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, ok := strings.CutPrefix(h.Name, packageDir+nativeDir)
		if !ok || h.Typeflag != tar.TypeReg || !filepath.IsLocal(rel) {
			continue
		}
		if left -= h.Size; left < 0 {
			return errTooLarge
		}
		if err := extract(tr, filepath.Join(to, rel), h.FileInfo().Mode()); err != nil {
			return err
		}
	}
}

// extract writes one file. Whoever the server runs as has to read it.
func extract(r io.Reader, path string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	perm := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		perm = 0o755
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
