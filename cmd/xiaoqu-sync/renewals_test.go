package main

import (
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
)

// A lease that ends takes its login with it; the doors' connections must not be of
// that one any more.
func TestAnotherLoginIsForTheDoorsToo(t *testing.T) {
	t.Parallel()
	c := withAgents(t)
	p := newProgram(c.env, t.Output(), t.Output())
	p.configPath = c.lookup("XIAOQU_CONFIG_FOR_TEST")
	cfg, err := p.load(config.Input{DatabaseOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	s, err := a.openStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if _, err := s.Tokens(t.Context()); err != nil {
		t.Fatal(err)
	}
	const mine = "select pid from pg_stat_activity where datname = current_database() and application_name = 'xiaoqu-sync agent' order by 1"
	old := c.read(t, mine)
	if len(old) == 0 {
		t.Fatal("the doors have no connection")
	}
	a.renewed.tell()
	eventually(t, "the old connections are gone", func() bool {
		for _, row := range c.read(t, mine) {
			if row[0] == old[0][0] {
				return false
			}
		}
		return true
	})
}
