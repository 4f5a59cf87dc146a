package deploy_test

import (
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
)

// What is shipped to be edited must be right before anybody edits it. The
// database's address comes from elsewhere in all of them.
func TestShippedConfigurationsAreValid(t *testing.T) {
	for _, file := range []string{"debian/config.yaml", "kubernetes/base/config.yaml", "../config/example.yaml"} {
		c, err := config.Load(config.Input{Path: file, Env: []string{"XIAOQU_DATABASE_URL=postgres://db.example.com/crm"}})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for _, w := range c.Warnings() {
			t.Errorf("%s: %v", file, w)
		}
	}
}
