package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maxExposure is ten times what systemd-analyze security prints, as its
// --threshold wants it.
const maxExposure = "15"

// units lists what systemd is given, with an instance for the templates.
func units() []string {
	return []string{"xiaoqu-sync.service", "xiaoqu-sync-agent.service", "xiaoqu-sync@acme.service", "xiaoqu-sync@acme.timer"}
}

// unitFolder holds copies of the units that name a program which every machine
// has, for verify looks whether it is there.
func unitFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, unit := range units() {
		text, err := os.ReadFile(filepath.Join("systemd", strings.Replace(unit, "@acme", "@", 1)))
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.ReplaceAll(string(text), "/usr/bin/xiaoqu-sync ", "/bin/true ")
		if strings.HasSuffix(unit, ".service") && changed == string(text) {
			t.Fatalf("%s does not start /usr/bin/xiaoqu-sync", unit)
		}
		if err := os.WriteFile(filepath.Join(dir, unit), []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// analyze runs systemd-analyze on the copies and gives what it printed.
func analyze(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not on this machine")
	}
	c := exec.CommandContext(t.Context(), program, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0", "SYSTEMD_UNIT_PATH="+dir+":")
	out, err := c.CombinedOutput()
	return string(out), err
}

func TestUnitsAreUnderstoodToTheLastWord(t *testing.T) {
	dir := unitFolder(t)
	// An unknown key is a remark with exit 0: every word is a failure.
	out, err := analyze(t, dir, append([]string{"verify", "--man=no"}, units()...)...)
	if err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("verify: %v\n%s", err, out)
	}
}

func TestServicesAreBarelyExposed(t *testing.T) {
	dir := unitFolder(t)
	for _, unit := range units() {
		if !strings.HasSuffix(unit, ".service") {
			continue
		}
		out, err := analyze(t, dir, "security", "--offline=true", "--threshold="+maxExposure, unit)
		if err != nil {
			t.Errorf("%s: %v\n%s", unit, err, out)
			continue
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		t.Log(lines[len(lines)-1])
	}
}
