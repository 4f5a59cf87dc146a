package tools_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
)

// tenants runs tenants.sh in a copy of deploy/ and gives the folder.
func tenants(t *testing.T, names string, args ...string) (dir, out string, err error) {
	t.Helper()
	dir = filepath.Join(copyOfDeploy(t), "kubernetes", "tenants")
	// Whoever uses the script in this checkout has folders of their own there.
	if own, _ := filepath.Glob(filepath.Join(dir, "*", "tenant.yaml")); len(own) > 0 {
		for _, f := range own {
			if err := os.RemoveAll(filepath.Dir(f)); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := exec.CommandContext(t.Context(), "sh", append([]string{filepath.Join(dir, "tenants.sh")}, args...)...)
	c.Stdin = strings.NewReader(names)
	text, err := c.CombinedOutput()
	return dir, string(text), err
}

// The worked example of docs/operations.md.
func TestFiftyTenantsAreSpreadAndApart(t *testing.T) {
	names, err := os.ReadFile(filepath.Join("..", "kubernetes", "tenants", "fifty.txt"))
	if err != nil {
		t.Fatal(err)
	}
	dir, out, err := tenants(t, string(names))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	objects := render(t, dir)
	schemas := map[string]bool{}
	for _, m := range only[*core.ConfigMap](objects) {
		if schema := m.Data["XIAOQU_DATABASE_SCHEMA"]; schema != "" {
			schemas[schema] = true
		}
	}
	crons := only[*batch.CronJob](objects)
	if len(crons) != 50 || len(schemas) != 50 {
		t.Fatalf("%d CronJobs, %d schemas", len(crons), len(schemas))
	}
	quarter := regexp.MustCompile(`^([0-9]|1[0-4])-59/15 \* \* \* \*$`)
	perMinute, secrets := map[string]int{}, map[string]bool{}
	for _, c := range crons {
		m := quarter.FindStringSubmatch(c.Spec.Schedule)
		if m == nil || len(c.Name) > 52 {
			t.Fatalf("%s runs at %q", c.Name, c.Spec.Schedule)
		}
		perMinute[m[1]]++
		env := c.Spec.JobTemplate.Spec.Template.Spec.Containers[0].EnvFrom
		secrets[env[1].SecretRef.Name] = true
		if suffix := strings.TrimPrefix(c.Name, "xiaoqu-sync-"); env[0].ConfigMapRef.Name != "xiaoqu-sync-tenant-"+suffix {
			t.Errorf("%s reads the ConfigMap %s", c.Name, env[0].ConfigMapRef.Name)
		}
	}
	if len(secrets) != 50 {
		t.Errorf("%d Secrets", len(secrets))
	}
	most := 0
	for _, n := range perMinute {
		most = max(most, n)
	}
	// 50 in 15 minutes: a fair hash leaves no minute empty or twice as full as many.
	if len(perMinute) < 12 || most > 8 {
		t.Errorf("spread over %d minutes, %d in the fullest", len(perMinute), most)
	}
	t.Logf("%d objects, %d minutes used, %d in the fullest", len(objects), len(perMinute), most)
}

func TestTenantsAreNamedSoThatEverythingTakesTheName(t *testing.T) {
	for _, bad := range []string{"Acme", "a", "acme corp", "acme_corp", "acme-", "../acme", strings.Repeat("a", 32)} {
		if dir, out, err := tenants(t, bad+"\n"); err == nil {
			t.Errorf("%q was taken: %s", bad, out)
		} else if entries, _ := filepath.Glob(filepath.Join(dir, "*", "tenant.yaml")); len(entries) > 0 {
			t.Errorf("%q left %v behind", bad, entries)
		}
	}
	if _, out, err := tenants(t, "acme\n", "7"); err == nil {
		t.Errorf("a period of 7 minutes was taken: %s", out)
	}
}
