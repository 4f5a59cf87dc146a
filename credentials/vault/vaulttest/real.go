package vaulttest

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// buildVariable says that a test may build the server, which takes minutes.
const buildVariable = "XIAOQU_TEST_VAULT"

// Real starts a real Vault in memory, which dies with the test. It skips the test
// where the server is not built: `make vaultdev` builds it.
func Real(t testing.TB) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("a real Vault is not for -short")
	}
	binary, err := built(t.Context(), os.Getenv(buildVariable) == "build")
	if err != nil {
		t.Skipf("no real Vault: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), binary)
	stdin, err := cmd.StdinPipe() // it ends when this end is closed, so also when we are killed
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	var ready struct {
		Address   string `json:"address"`
		RootToken string `json:"root_token"`
		UnsealKey string `json:"unseal_key"`
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		t.Fatalf("vaultdev does not start: %v", err)
	}
	return newServer(t, ready.Address, ready.RootToken, ready.UnsealKey)
}

// built gives the server's binary: out of the user's cache, or built into it.
func built(ctx context.Context, build bool) (string, error) {
	source, err := sources()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, name := range []string{"main.go", "go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		sum.Write(content)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "xiaoqu-sync")
	binary := filepath.Join(folder, "vaultdev-"+hex.EncodeToString(sum.Sum(nil))[:16])
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	if !build {
		return "", errors.New("it is not built; `make vaultdev` does, in some minutes")
	}
	return binary, compile(ctx, source, folder, binary)
}

// sources finds test/vaultdev from wherever the test runs.
func sources() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		source := filepath.Join(dir, "test", "vaultdev")
		if _, err := os.Stat(filepath.Join(source, "go.mod")); err == nil {
			return source, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("test/vaultdev is nowhere above this folder")
		}
	}
}

// compile builds the server, one process at a time: the others find it there.
func compile(ctx context.Context, source, folder, binary string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(folder, "vaultdev.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if _, err := os.Stat(binary); err == nil {
		return nil
	}
	half := binary + ".new"
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", half, ".")
	cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build in test/vaultdev: %w\n%s", err, out)
	}
	return os.Rename(half, binary)
}
