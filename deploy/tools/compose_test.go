package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
)

func TestTheComposeFileHangsTogether(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{filepath.Join("..", "compose.yaml")}, cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context()) // checks it against the specification's schema
	if err != nil {
		t.Fatal(err)
	}
	if len(project.Services) != 5 {
		t.Fatalf("services: %v", project.ServiceNames())
	}
	for name, service := range project.Services {
		if service.Build == nil {
			continue
		}
		dockerfile, err := os.ReadFile(filepath.Join(service.Build.Context, service.Build.Dockerfile))
		if err != nil {
			t.Fatal(err)
		}
		if target := service.Build.Target; target != "" && !strings.Contains(string(dockerfile), " AS "+target+"\n") {
			t.Errorf("%s builds the target %q, which is not there", name, target)
		}
		// The contract's https rule spares loopback only, which the two share.
		address := strings.TrimPrefix(*project.Services["worker"].Environment["XIAOQU_BASE_URL"], "http://")
		if !strings.Contains(string(dockerfile), `"--listen", "`+address+`"`) || project.Services["worker"].NetworkMode != "service:simulator" {
			t.Errorf("the worker would not reach the simulator at %s", address)
		}
	}
	key := project.Services["key"].Command
	if path := *project.Services["worker"].Environment["XIAOQU_VAULT_PATH"]; key[3] != path {
		t.Errorf("the key is put to %s and read from %s", key[3], path)
	}
}
