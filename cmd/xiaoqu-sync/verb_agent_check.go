package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/api"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/mcp"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/relay"
	"github.com/xiaoqu-sync/xiaoqu-sync/config"
)

// maxManifest is the most that a manifest to compare with may have, in bytes.
const maxManifest = 4 << 20

func (p *program) agentManifest() *cobra.Command {
	return &cobra.Command{
		Use:   "manifest xiaoya|relay|openapi",
		Short: "Print what is handed in at a platform",
		Long: `Print the manifest for Xiaoya, the one for Relay, or the OpenAPI document of the HTTP
door, made of the configuration. Keep what was reviewed: agent check --reviewed compares.`,
		Example:   "  xiaoqu-sync agent manifest relay > relay.json",
		Args:      oneOf,
		ValidArgs: []string{config.DoorXiaoya, config.DoorRelay, "openapi"},
		RunE: p.bare(func(_ context.Context, args []string) (answer, error) {
			cfg, err := p.load(config.Input{DatabaseOnly: true})
			if err != nil {
				return nil, err
			}
			text, err := manifestOf(cfg, args[0])
			return document(text), err
		}),
	}
}

// manifestOf renders a door's description of the catalogue.
func manifestOf(cfg *config.Config, door string) ([]byte, error) {
	service, err := agent.New(agent.Options{Resources: mirrored(cfg), Allow: cfg.Agents.Allow, Worker: hands{}})
	if err != nil {
		return nil, err
	}
	switch door {
	case config.DoorXiaoya:
		return mcp.Manifest(application(cfg.Agents), service.Capabilities())
	case config.DoorRelay:
		return relay.Manifest(relay.Options{
			Service: service, Supplier: supplier(cfg.Agents.Relay), EndpointURL: cfg.Agents.PublicURL + "/relay", Scopes: []string{"*"},
		})
	default:
		return api.OpenAPI(service.Capabilities(), cfg.Agents.PublicURL, buildVersion().Version), nil
	}
}

func (p *program) agentCheck() *cobra.Command {
	var reviewed, manifest string
	c := &cobra.Command{
		Use:   "check",
		Short: "Look whether the doors can be opened, and their manifests handed in",
		Long: `Go through what a release needs: database and reader's role, secrets, each door's
manifest against its platform's rules. Changes nothing. A step that failed says what to
do; exit 2.`,
		Example: `  xiaoqu-sync agent check
  xiaoqu-sync agent check --reviewed xiaoya-reviewed.json    name what needs a new review
  xiaoqu-sync agent check --manifest relay-edited.json       a manifest with fees of your own`,
		Args: noArguments,
		RunE: p.localVerb(func(ctx context.Context, a *app, _ []string) (answer, error) {
			return a.checkAgents(ctx, reviewed, manifest)
		}),
	}
	c.Flags().StringVar(&reviewed, "reviewed", "", "the manifest that Xiaoya reviewed last")
	c.Flags().StringVar(&manifest, "manifest", "", "a manifest for Relay to hold against its rules, in place of our own")
	return c
}

func (a *app) checkAgents(ctx context.Context, reviewed, manifest string) (answer, error) {
	c := &checkAnswer{}
	doors := a.config.Agents.Doors
	if len(doors) == 0 {
		c.add("doors", "", config.Problems{{Field: "agents.doors", Message: "names no door", Hint: "api, xiaoya, relay, or some of them"}})
	} else {
		c.add("doors", strings.Join(doors, ", "), nil)
	}
	a.checkReader(ctx, c)
	if slices.Contains(doors, config.DoorXiaoya) || reviewed != "" {
		if err := a.checkXiaoya(c, reviewed); err != nil {
			return nil, err
		}
	}
	if slices.Contains(doors, config.DoorRelay) || manifest != "" {
		if err := a.checkRelay(c, manifest); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if c.first != nil {
		return c, checkError{answer: c}
	}
	return c, nil
}

// checkReader opens what serve opens, and reads with the reader's role.
func (a *app) checkReader(ctx context.Context, c *checkAnswer) {
	err := a.mirror.Ready(ctx, a.config.Names()) // a check makes no tables
	if !c.add("database", "the tables are there", err) {
		c.skip("catalogue", "secrets", "reader's role")
		return
	}
	g, err := a.openAgents(ctx)
	if !c.add("catalogue", "can be made", err) {
		c.skip("secrets", "reader's role")
		return
	}
	defer g.close()
	c.add("secrets", "present", g.openDoors())
	for _, name := range a.config.Names() {
		c.add("reader's role: "+name, "can read", a.readable(ctx, g, name))
		if !a.config.Agents.Masked {
			continue
		}
		// What hides nothing yet may be right, so it fails no check.
		if idle, _, err := a.mirror.Idle(ctx, name, a.definition(name)); err == nil && len(idle) > 0 {
			c.add("masks: "+name, "warning: no record has anything at "+strings.Join(idle, ", ")+", so nothing is hidden there", nil)
		}
	}
}

// readable reads one record as agents would.
func (a *app) readable(ctx context.Context, g *agents, name string) error {
	if a.config.Agents.Masked && len(a.config.Resources[name].Masked) == 0 {
		return config.Problems{{
			Field: "resources." + name + ".masked", Message: "names no path, so there is no masked view for agents to read",
			Hint: "name what agents must not see, then migrate --grant-reader ROLE --masked; or set agents.masked to false",
		}}
	}
	if _, err := g.store.Search(ctx, agent.Query{Resource: name, Limit: 1}); err != nil {
		return agentError{a.told(err)}
	}
	return nil
}

func (a *app) checkXiaoya(c *checkAnswer, reviewed string) error {
	now, err := manifestOf(a.config, config.DoorXiaoya)
	if err != nil {
		return err
	}
	problems, err := mcp.Check(now)
	if err != nil {
		return err
	}
	for _, x := range problems {
		c.add("xiaoya: "+x.Rule, "", unfitManifest(config.DoorXiaoya, place(x.Tool)+x.Says))
	}
	if len(problems) == 0 {
		c.add("xiaoya: release checklist", "holds", nil)
	}
	if reviewed == "" {
		return nil
	}
	before, err := readManifest(reviewed)
	if err != nil {
		return err
	}
	changes, err := mcp.Compare(before, now)
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", reviewed, err)}
	}
	for _, x := range changes {
		says := place(x.Tool) + x.Says
		if x.Review {
			c.add("xiaoya: "+x.What, "", unfitManifest(config.DoorXiaoya, says+": needs a new review"))
			continue
		}
		c.add("xiaoya: "+x.What, says, nil)
	}
	if len(changes) == 0 {
		c.add("xiaoya: reviewed snapshot", "nothing changed", nil)
	}
	return nil
}

func (a *app) checkRelay(c *checkAnswer, file string) error {
	var text []byte
	var err error
	if file != "" {
		text, err = readManifest(file)
	} else {
		text, err = manifestOf(a.config, config.DoorRelay)
	}
	if err != nil {
		return err
	}
	found := relay.Check(text)
	for _, x := range found {
		says := place(x.Where) + x.Message
		if x.Warning {
			c.add("relay: "+x.Rule, "warning: "+says, nil)
			continue
		}
		c.add("relay: "+x.Rule, "", unfitManifest(config.DoorRelay, says))
	}
	if len(found) == 0 {
		c.add("relay: rules of the manifest", "hold", nil)
	}
	return nil
}

// unfitManifest is a rule of a platform's that a manifest breaks.
func unfitManifest(door, says string) error {
	return config.Problems{{Field: "agents." + door, Message: says}}
}

func place(where string) string {
	if where == "" {
		return ""
	}
	return where + ": "
}

func readManifest(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usageError{fmt.Errorf("%s cannot be read: %w", path, withoutPath(err))}
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxManifest))
	if err != nil {
		return nil, usageError{fmt.Errorf("%s cannot be read: %w", path, withoutPath(err))}
	}
	return b, nil
}
