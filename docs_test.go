package xiaoqusync_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestThePageOfFaultsNamesTestsThatExist keeps docs/faults.md true when tests are renamed.
func TestThePageOfFaultsNamesTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err = filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !regexp.MustCompile(`_test\.go$`).MatchString(path) {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range function.FindAllSubmatch(text, -1) {
			declared[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllSubmatch(page, -1)
	for _, m := range named {
		if !declared[string(m[1])] {
			t.Errorf("docs/faults.md names %s, which is not there", m[1])
		}
	}
	if len(named) < 50 {
		t.Errorf("docs/faults.md names %d tests", len(named))
	}
}
