package tools_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// debian builds the package around any program: what is in it is tried, not
// what the worker does.
func debian(t *testing.T) string {
	t.Helper()
	nfpm, err := exec.LookPath("nfpm")
	if err != nil {
		t.Skip("nfpm is not on this machine; .ci/run installs it")
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("this is not Debian")
	}
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), nfpm, "package", "-f", "deploy/nfpm.yaml", "-p", "deb", "-t", dir+"/")
	c.Dir = filepath.Join("..", "..")
	c.Env = append(os.Environ(), "XIAOQU_VERSION=1.2.3", "GOARCH=amd64", "XIAOQU_BINARY=/bin/true", "SOURCE_DATE_EPOCH=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("nfpm: %v\n%s", err, out)
	}
	return filepath.Join(dir, "xiaoqu-sync_1.2.3_amd64.deb")
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestThePackageHoldsWhatItShould(t *testing.T) {
	file := debian(t)
	got := map[string]string{}
	for line := range strings.Lines(command(t, "dpkg-deb", "-c", file)) {
		if f := strings.Fields(line); !strings.HasSuffix(f[5], "/") && !strings.Contains(f[5], "/share/doc/") {
			got[strings.TrimPrefix(f[5], ".")] = f[0] + " " + f[1]
		}
	}
	want := map[string]string{
		"/usr/bin/xiaoqu-sync":                              "-rwxr-xr-x root/root",
		"/usr/lib/systemd/system/xiaoqu-sync-agent.service": "-rw-r--r-- root/root",
		"/usr/lib/systemd/system/xiaoqu-sync.service":       "-rw-r--r-- root/root",
		"/usr/lib/systemd/system/xiaoqu-sync@.service":      "-rw-r--r-- root/root",
		"/usr/lib/systemd/system/xiaoqu-sync@.timer":        "-rw-r--r-- root/root",
		"/usr/lib/sysusers.d/xiaoqu-sync.conf":              "-rw-r--r-- root/root",
		"/usr/lib/tmpfiles.d/xiaoqu-sync.conf":              "-rw-r--r-- root/root",
		"/etc/xiaoqu-sync/config.yaml":                      "-rw-r--r-- root/root",
		"/etc/xiaoqu-sync/environment":                      "-rw------- root/root",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	kept := strings.Fields(command(t, "dpkg-deb", "-I", file, "conffiles"))
	if diff := cmp.Diff([]string{"/etc/xiaoqu-sync/config.yaml", "/etc/xiaoqu-sync/environment"}, kept); diff != "" {
		t.Errorf("conffiles (-want +got):\n%s", diff)
	}
}

// Nobody asked for a mirror by installing the program.
func TestThePackageStartsNothing(t *testing.T) {
	script := command(t, "dpkg-deb", "-I", debian(t), "postinst")
	for _, word := range []string{"systemctl start", "systemctl restart", "enable", "preset", "deb-systemd"} {
		if strings.Contains(script, word) {
			t.Errorf("postinst says %q", word)
		}
	}
}

func TestThePackageComesKeepsAndGoes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("dpkg wants root")
	}
	file, root := debian(t), t.TempDir()
	for _, dir := range []string{"var/lib/dpkg/updates", "var/lib/dpkg/info", "etc"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "var/lib/dpkg/status"), "")
	dpkg := func(args ...string) {
		command(t, "dpkg", append([]string{"--root=" + root, "--force-script-chrootless"}, args...)...)
	}
	dpkg("-i", file)
	if users, err := os.ReadFile(filepath.Join(root, "etc/passwd")); err != nil || !strings.Contains(string(users), "xiaoqu-sync:") {
		t.Fatalf("no user was made: %v\n%s", err, users)
	}
	mine, key := filepath.Join(root, "etc/xiaoqu-sync/config.yaml"), filepath.Join(root, "etc/xiaoqu-sync/open-key")
	write(t, mine, "# mine\n")
	write(t, key, "a key")
	dpkg("-i", file)
	if text, err := os.ReadFile(mine); err != nil || string(text) != "# mine\n" {
		t.Errorf("an upgrade left %q, %v", text, err)
	}
	dpkg("-r", "xiaoqu-sync")
	if _, err := os.Stat(key); err != nil {
		t.Errorf("a removal took the key: %v", err)
	}
	dpkg("-P", "xiaoqu-sync")
	err := filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		if strings.Contains(filepath.Base(name), "xiaoqu-sync") {
			t.Errorf("a purge left %s", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
