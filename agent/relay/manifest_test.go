package relay_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/relay"
)

// ownManifest is what all of the catalogue is handed in with.
func ownManifest(t *testing.T) relay.Options {
	t.Helper()
	service, err := agent.New(agent.Options{
		Resources: []agent.Resource{{Name: "users", Columns: []agent.Column{{Name: "status", Type: "text"}}}},
		Worker:    newWorker(), Allow: agent.Writing(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return relay.Options{
		Service: service, Scopes: []string{"*"}, EndpointURL: "https://mirror.example.com/relay",
		Supplier: relay.Supplier{
			Name: "小趣镜像", Description: "查询与维护小趣数据镜像", Categories: []string{"数据"}, Region: "北京市",
			UserBinding: "token", HelpURL: "https://mirror.example.com/bind",
		},
	}
}

type written struct {
	Actions []struct {
		Name  string `json:"name"`
		Mode  string `json:"mode"`
		Input struct {
			Properties map[string]struct {
				Personal bool `json:"x-pii"`
			} `json:"properties"`
		} `json:"input"`
		Output struct {
			Properties map[string]any `json:"properties"`
		} `json:"output"`
	} `json:"actions"`
}

// A new input of the catalogue is personal or not: somebody has to decide it here.
func TestEveryInputOfTheManifestIsPersonalOrKnownNotToBe(t *testing.T) {
	text, err := relay.Manifest(ownManifest(t))
	if err != nil {
		t.Fatal(err)
	}
	var m written
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	personal, harmless := []string{"id", "after_id", "filters"}, []string{"resource", "resources", "after", "limit", "plan"}
	for _, a := range m.Actions {
		for name, p := range a.Input.Properties {
			if p.Personal != slices.Contains(personal, name) || !p.Personal && !slices.Contains(harmless, name) {
				t.Errorf("%s: is %s personal? the manifest says %t", a.Name, name, p.Personal)
			}
		}
	}
}

func TestWhatAPersonChoosesIsNoInput(t *testing.T) {
	text, err := relay.Manifest(ownManifest(t))
	if err != nil {
		t.Fatal(err)
	}
	var m written
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	several := 0
	for _, a := range m.Actions {
		_, asks := a.Input.Properties["choice"]
		_, says := a.Output.Properties["proposal_id"]
		if a.Mode == "async_multi" {
			several++
		}
		if asks || says != (a.Mode == "async_multi") {
			t.Errorf("%s: choice in the input %t, proposal_id in the output %t", a.Name, asks, says)
		}
	}
	if several != 1 {
		t.Errorf("%d actions let a person choose", several)
	}
}
