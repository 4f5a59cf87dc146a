// Package goreleaser checks the release's description with goreleaser's own
// reader, which a build of goreleaser would take many minutes to do. It is a
// module of its own for what that drags in.
package goreleaser

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

func TestTheReleaseIsDescribedInKnownWords(t *testing.T) {
	root := filepath.Join("..", "..")
	project, err := config.Load(filepath.Join(root, ".goreleaser.yaml")) // refuses unknown keys
	if err != nil {
		t.Fatal(err)
	}
	for _, build := range project.Builds {
		if _, err := os.Stat(filepath.Join(root, build.Main)); err != nil {
			t.Error(err)
		}
		for _, hook := range build.Hooks.Post {
			for _, file := range regexp.MustCompile(`deploy/[a-z./]+`).FindAllString(hook.Cmd, -1) {
				if _, err := os.Stat(filepath.Join(root, file)); err != nil {
					t.Errorf("%s: %v", hook.Cmd, err)
				}
			}
		}
	}
	for _, archive := range project.Archives {
		for _, file := range archive.Files {
			if found, err := filepath.Glob(filepath.Join(root, file.Source)); err != nil || len(found) == 0 {
				t.Errorf("there is no %s: %v", file.Source, err)
			}
		}
	}
}
