package credentials_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
)

func keyFile(t *testing.T, mode os.FileMode, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKeyOfAFileIsTrimmedAndItsModeIsNoted(t *testing.T) {
	for name, test := range map[string]struct {
		mode    os.FileMode
		content string
		notes   []string
	}{
		"as it should be":          {0o400, canaryKey, nil},
		"the group may read":       {0o640, canaryKey, nil},
		"newline":                  {0o600, canaryKey + "\n", []string{"a newline around the key was trimmed"}},
		"others can read":          {0o644, canaryKey, []string{"every user of this machine (mode 0644)"}},
		"others can read and mark": {0o604, "\ufeff" + canaryKey, []string{"byte order mark", "mode 0604"}},
	} {
		t.Run(name, func(t *testing.T) {
			source := credentials.FromFile(keyFile(t, test.mode, test.content))
			key, err := source.Key(t.Context())
			if err != nil || key.Reveal() != canaryKey {
				t.Fatalf("key %q, error %v", key.Reveal(), err)
			}
			note := source.Note()
			assertClean(t, note)
			for _, want := range test.notes {
				if !strings.Contains(note, want) {
					t.Errorf("note %q does not say %q", note, want)
				}
			}
			if len(test.notes) == 0 && note != "" {
				t.Errorf("note %q", note)
			}
		})
	}
}

func TestKeyOfAFileIsReadAnew(t *testing.T) {
	path := keyFile(t, 0o600, "xqok-old")
	source := credentials.FromFile(path)
	if err := os.WriteFile(path, []byte("xqok-new\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if key, version, err := source.Current(t.Context()); err != nil || key.Reveal() != "xqok-new" || version != "" {
		t.Errorf("got %q, version %q, %v", key.Reveal(), version, err)
	}
}

func TestBadKeyOfAFileIsRefusedByName(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct{ path, want string }{
		"no file":           {filepath.Join(dir, "none"), "none can't be read: no such file"},
		"a folder":          {dir, "is a directory"},
		"empty":             {keyFile(t, 0o600, " \n"), "is empty"},
		"a token":           {keyFile(t, 0o600, "xqak-c4n4ry"), "access token"},
		"wrong prefix":      {keyFile(t, 0o600, "c4n4ry"), "does not begin with xqok-"},
		"control character": {keyFile(t, 0o600, "xqok-c4n\x004ry"), "control character (U+0000)"},
		"two lines":         {keyFile(t, 0o600, canaryKey+"\n"+canaryKey), "control character (U+000A)"},
		"not text":          {keyFile(t, 0o600, "xqok-\xff\xfe"), "outside ASCII"},
		"too long":          {keyFile(t, 0o600, "xqok-"+strings.Repeat("c4n4ry", 4000)), "longer than 4096 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := credentials.FromFile(test.path).Key(t.Context())
			var failure *credentials.Error
			if !errors.As(err, &failure) || failure.Kind != credentials.BadKey || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			assertClean(t, err.Error())
		})
	}
}

func TestKeyOfSystemdIsFoundByItsName(t *testing.T) {
	path := keyFile(t, 0o400, canaryKey)
	directory := func(dir string) func(string) (string, bool) {
		return func(name string) (string, bool) { return dir, name == "CREDENTIALS_DIRECTORY" && dir != "" }
	}
	key, err := credentials.FromSystemd(directory(filepath.Dir(path)), "key").Key(t.Context())
	if err != nil || key.Reveal() != canaryKey {
		t.Errorf("got %q, %v", key.Reveal(), err)
	}
	for name, test := range map[string]struct{ dir, name, want string }{
		"not under systemd": {"", "key", "CREDENTIALS_DIRECTORY is not set"},
		"a way out":         {filepath.Dir(path), "../key", "name is a path"},
		"dots":              {filepath.Dir(path), "..", "name is a path"},
		"another name":      {filepath.Dir(path), "kez", "no such file"},
	} {
		if _, err := credentials.FromSystemd(directory(test.dir), test.name).Key(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
