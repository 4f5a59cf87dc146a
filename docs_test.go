package xiaoqusync_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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

// TestLinksBetweenPagesLead follows links to files, as whoever reads a page does.
func TestLinksBetweenPagesLead(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	followed := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || len(d.Name()) > 1 && d.Name()[0] == '.'):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		page, err := os.ReadFile(path)
		for _, m := range link.FindAllStringSubmatch(string(page), -1) {
			if strings.Contains(m[1], ":") {
				continue // an address
			}
			followed++
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if followed < 20 {
		t.Errorf("%d links were followed", followed)
	}
}
