package localpg

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	fetchTimeout = 3 * time.Minute
	packageName  = "@embedded-postgres/"
	packageVer   = "18.4.0-beta.17"
	maxPackage   = 200 << 20 // bytes
)

// pin is the package for one platform and the sha512 that its archive must have.
func pin(platform string) (name, sha string, ok bool) {
	switch platform {
	case "linux/amd64":
		return "linux-x64", "jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==", true
	case "linux/arm64":
		return "linux-arm64", "TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==", true
	case "darwin/arm64":
		return "darwin-arm64", "Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==", true
	case "darwin/amd64":
		return "darwin-x64", "4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==", true
	}
	return "", "", false
}

// fetch brings the pinned PostgreSQL into the cache, unless it is there, and
// returns the directory of its programs. It goes through the npm client, so that
// the user's own settings for registries and proxies hold.
func fetch(ctx context.Context) (string, error) {
	name, sha, ok := pin(runtime.GOOS + "/" + runtime.GOARCH)
	if !ok {
		return "", fmt.Errorf("no build is pinned for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	final := filepath.Join(cache, "postgres-"+packageVer)
	lock, err := waitLock(ctx, final+".lock")
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }()
	bin := filepath.Join(final, "bin")
	if hasPrograms(bin) {
		return bin, nil
	}
	tmp, err := os.MkdirTemp(cache, ".fetch-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	archive, err := pack(ctx, tmp, packageName+name+"@"+packageVer)
	if err != nil {
		return "", err
	}
	stage := filepath.Join(tmp, "postgres")
	if err := unpack(archive, sha, stage); err != nil {
		return "", fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	return bin, os.Rename(stage, final)
}

// pack has npm write the package's archive into a directory.
func pack(ctx context.Context, dir, spec string) (archive string, err error) {
	cmd := exec.CommandContext(ctx, "npm", "pack", "--json", "--silent", "--pack-destination", dir, spec)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("npm pack %s: %w", spec, err)
	}
	file, err := packedName(out)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(file)), nil
}

// packedName reads what `npm pack --json` prints: a list, or since npm 12 an object.
func packedName(out []byte) (string, error) {
	type packed struct {
		Filename string `json:"filename"`
	}
	var list []packed
	if json.Unmarshal(out, &list) == nil && len(list) == 1 && list[0].Filename != "" {
		return list[0].Filename, nil
	}
	var byName map[string]packed
	if json.Unmarshal(out, &byName) == nil && len(byName) == 1 {
		for _, p := range byName {
			if p.Filename != "" {
				return p.Filename, nil
			}
		}
	}
	return "", fmt.Errorf("npm pack printed %.200q", out)
}

// unpack checks the archive against its pin before it looks inside.
func unpack(archive, sha, to string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	h := sha512.New()
	n, err := io.Copy(h, io.LimitReader(f, maxPackage+1))
	if err != nil {
		return err
	}
	if got := base64.StdEncoding.EncodeToString(h.Sum(nil)); n > maxPackage || got != sha {
		return fmt.Errorf("sha512 is %s, pinned is %s", got, sha)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := untar(f, to); err != nil {
		return err
	}
	return link(to)
}

// link makes the symbolic links of the libraries: npm archives cannot hold any,
// so the package lists them.
func link(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "pg-symlinks.json"))
	if err != nil {
		return err
	}
	var links []struct {
		Source string `json:"source"`
		Target string `json:"target"`
	}
	if err := json.Unmarshal(b, &links); err != nil {
		return fmt.Errorf("pg-symlinks.json: %w", err)
	}
	for _, l := range links {
		source, target := strings.TrimPrefix(l.Source, nativeDir), strings.TrimPrefix(l.Target, nativeDir)
		if !filepath.IsLocal(source) || !filepath.IsLocal(target) {
			return errors.New("pg-symlinks.json leads out of the package")
		}
		rel, err := filepath.Rel(filepath.Dir(target), source)
		if err != nil {
			return err
		}
		if err := os.Symlink(rel, filepath.Join(dir, target)); err != nil {
			return err
		}
	}
	return nil
}
