package config_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
)

func TestDoorsAreShutUntilNamed(t *testing.T) {
	if c := load(t, config.Input{File: []byte(minimal)}); len(c.Agents.Doors)+len(c.Agents.Allow) > 0 || !c.Agents.Masked {
		t.Errorf("%+v", c.Agents)
	}
}

func TestAgentsAreRead(t *testing.T) {
	c := load(t, config.Input{File: []byte(minimal + `
agents:
  doors: api, relay,api
  allow: sync.run, rebuild.resolve
  reader_role: crm-reader
  public_url: https://agents.example.com/
  masked: false
  relay: {help_url: 'https://example.com/bind', categories: 'CRM, 房产'}
`)})
	a := c.Agents
	if diff := cmp.Diff([]string{"api", "relay"}, a.Doors); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"sync.run", "rebuild.resolve"}, a.Allow); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"CRM", "房产"}, a.Relay.Categories); diff != "" {
		t.Error(diff)
	}
	if a.ReaderRole != "crm-reader" || a.PublicURL != "https://agents.example.com" || a.Masked || a.Relay.Binding != "token" {
		t.Errorf("%+v", a)
	}
	if !slices.ContainsFunc(c.Effective(), func(s config.Setting) bool { return s.Name == "agents.relay.help_url" }) {
		t.Error("what is in force is not shown")
	}
}

func TestMistakesAboutAgents(t *testing.T) {
	tests := map[string]string{
		"agents: {doors: mcp}":         "agents.doors",
		"agents: {allow: records.get}": "agents.allow",
		"agents: {doors: api}":         "agents.reader_role",
		"agents: {doors: relay, reader_role: r, public_url: 'https://a.example.com'}": "agents.relay.help_url",
		"agents: {doors: xiaoya, reader_role: r}":                                     "agents.xiaoya.app_id",
		"agents: {public_url: 'http://agents.example.com'}":                           "agents.public_url",
		"agents: {reader_role: 'r; drop role r'}":                                     "agents.reader_role",
		"agents: {relay: {secret: whsec_abc}}":                                        "agents.relay.secret",
		"agents: {xiaoya: {headers: {agent: 'X Agent'}}}":                             "agents.xiaoya.headers.agent",
	}
	for text, field := range tests {
		_, err := config.Load(config.Input{File: []byte(minimal + text)})
		var problems config.Problems
		if !errors.As(err, &problems) {
			t.Errorf("%s: %v", text, err)
			continue
		}
		found := false
		for _, p := range problems {
			found = found || p.Field == field
			if strings.Contains(p.Message+p.Hint, "whsec_abc") {
				t.Errorf("%s: the secret is repeated", text)
			}
		}
		if !found {
			t.Errorf("%s: %v", text, problems)
		}
	}
}

func TestAHintNamesNoVariableThatNothingReads(t *testing.T) {
	_, err := config.Load(config.Input{File: []byte(minimal + "agents: {doors: 'xiaoya, relay'}")})
	var problems config.Problems
	if !errors.As(err, &problems) || len(problems) < 4 {
		t.Fatal(err)
	}
	for _, p := range problems {
		name, named := strings.CutPrefix(p.Hint, "set XIAOQU_")
		if !named {
			continue
		}
		name, _, _ = strings.Cut("XIAOQU_"+name, ",")
		c, err := config.Load(config.Input{File: []byte(minimal), Env: []string{name + "=https://a.example.com"}})
		if err == nil && len(c.Warnings()) > 0 {
			t.Errorf("%s: the hint names %s, which nothing reads", p.Field, name)
		}
	}
}
