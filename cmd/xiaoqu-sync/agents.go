package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/api"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/mcp"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/relay"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/store"
	"github.com/xiaoqu-sync/xiaoqu-sync/config"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
)

// agents is what the verbs for agents work with. It owns the store.
type agents struct {
	app      *app
	store    *store.Store
	service  *agent.Service
	couriers map[string]agent.Courier // of open doors; the service has this very map
	api      *api.Door                // nil: shut, as the two below
	xiaoya   *mcp.Door
	relay    *relay.Door
}

// openStore opens what agents keep in PostgreSQL, and their view of records.
func (a *app) openStore(ctx context.Context) (*store.Store, error) {
	o := store.Options{
		URL: a.config.Database.URL, Schema: a.config.Database.Schema, ReaderRole: a.config.Agents.ReaderRole,
		Masked: a.config.Agents.Masked, Resources: mirrored(a.config),
	}
	if a.login != nil {
		o.Login = a.login.Login
	}
	s, err := store.Open(ctx, o)
	if err == nil {
		a.renewed.add(s.Reconnect)
	}
	return s, err
}

// mirrored are the configured resources with their typed columns.
func mirrored(cfg *config.Config) []agent.Resource {
	var out []agent.Resource
	for _, name := range cfg.Names() {
		r := agent.Resource{Name: name}
		for _, c := range cfg.Resources[name].Columns {
			r.Columns = append(r.Columns, agent.Column{Name: c.Name, Type: c.Type})
		}
		out = append(out, r)
	}
	return out
}

// openAgents makes the catalogue at work, without a door yet. A worker is made only
// when something that writes is allowed: it needs the remote and its key. The tables
// must be there.
func (a *app) openAgents(ctx context.Context) (*agents, error) {
	s, err := a.openStore(ctx)
	if err != nil {
		return nil, err
	}
	out := &agents{app: a, store: s, couriers: map[string]agent.Courier{}}
	o := agent.Options{
		Mirror: window{s, a}, Tasks: s, Outbox: s, Couriers: out.couriers, Resources: mirrored(a.config),
		Allow: a.config.Agents.Allow, Logger: a.log.Named("agent"),
	}
	if len(o.Allow) > 0 {
		o.Worker, err = a.hands(ctx)
	}
	if err == nil {
		out.service, err = agent.New(o)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return out, nil
}

// hands needs what the verbs that ask the remote need.
func (a *app) hands(ctx context.Context) (agent.Worker, error) {
	if a.config.BaseURL == "" || a.config.ServiceName == "" {
		return nil, config.Problems{{
			Field: "agents.allow", Message: "capabilities that write ask the remote, and base_url or service_name is missing",
			Hint: "set both, or allow none",
		}}
	}
	if _, err := a.alerter(); err != nil {
		return nil, err
	}
	client, err := a.remote(ctx, credentials.DefaultGrace)
	if err != nil {
		return nil, err
	}
	return hands{app: a, source: client}, nil
}

func (g *agents) close() { g.store.Close() }

func (g *agents) open(door string) bool { return slices.Contains(g.app.config.Agents.Doors, door) }

// openDoors makes the doors that are named, and couriers of those that call back.
func (g *agents) openDoors() error {
	secrets := &doorSecrets{program: g.app.program}
	c := g.app.config.Agents
	if g.open(config.DoorAPI) {
		g.api = api.New(api.Options{Service: g.service, Tokens: g.store, PublicURL: c.PublicURL, Version: buildVersion().Version, Logger: g.app.log.Named("api")})
	}
	if g.open(config.DoorXiaoya) {
		var key []byte
		if x := c.Xiaoya; x.IntrospectURL == "" {
			key = secrets.key("agents.xiaoya.key_file", config.XiaoyaKeyVariable, x.KeyFile)
		} else {
			key = secrets.optional("agents.xiaoya.key_file", config.XiaoyaKeyVariable, x.KeyFile)
		}
		var credential []byte
		if c.Xiaoya.IntrospectURL != "" || c.Xiaoya.CallbackURL != "" {
			credential = secrets.fetch("agents.xiaoya.credential_file", config.XiaoyaCredentialVariable, c.Xiaoya.CredentialFile)
		}
		if len(secrets.problems) == 0 {
			if err := g.openXiaoya(key, string(credential)); err != nil {
				return config.Problems{{Field: "agents.xiaoya", Message: err.Error()}}
			}
		}
	}
	if g.open(config.DoorRelay) {
		keys := [][]byte{secrets.key("agents.relay.secret_file", config.RelaySecretVariable, c.Relay.SecretFile)}
		if before := secrets.optional("agents.relay.previous_secret_file", config.RelayPreviousVariable, c.Relay.PreviousFile); before != nil {
			keys = append(keys, before)
		}
		if len(secrets.problems) == 0 {
			if err := g.openRelay(keys); err != nil {
				return config.Problems{{Field: "agents.relay", Message: err.Error()}}
			}
			g.couriers["relay"] = g.relay
		}
	}
	if len(secrets.problems) > 0 {
		return secrets.problems
	}
	return nil
}

func (g *agents) openXiaoya(key []byte, credential string) (err error) {
	c, x := g.app.config.Agents, g.app.config.Agents.Xiaoya
	o := mcp.Options{
		Service: g.service, Documents: g.store, Application: application(c), PublicURL: c.PublicURL,
		Context: mcp.Context{
			IntrospectURL: x.IntrospectURL, Credential: credential,
			Headers: mcp.Headers{Agent: x.Headers.Agent, Invocation: x.Headers.Invocation, Timestamp: x.Headers.Timestamp, Signature: x.Headers.Signature},
		},
		Logger: g.app.log.Named("xiaoya"),
	}
	if key != nil {
		o.Context.Keys = [][]byte{key}
	}
	if g.xiaoya, err = mcp.New(o); err != nil || x.CallbackURL == "" {
		return err
	}
	g.couriers["mcp"], err = mcp.NewCourier(mcp.CourierOptions{CallbackURL: x.CallbackURL, Credential: credential, PublicURL: c.PublicURL})
	return err
}

// application is how the agent is registered at Xiaoya. A call is for its agent id.
func application(c config.Agents) mcp.Application {
	x := c.Xiaoya
	return mcp.Application{
		ID: cmp.Or(x.AgentID, x.AppID), Version: x.Version, Name: x.Name, Description: x.Description, Chinese: true,
		EntryURL: c.PublicURL, MCPURL: c.PublicURL + "/mcp", CallbackURL: x.CallbackURL,
	}
}

func (g *agents) openRelay(secrets [][]byte) (err error) {
	c, r := g.app.config.Agents, g.app.config.Agents.Relay
	g.relay, err = relay.New(relay.Options{
		Service: g.service, Secrets: func() [][]byte { return secrets }, Supplier: supplier(r), Bindings: g.store,
		EndpointURL: c.PublicURL + "/relay", CallbackURL: r.CallbackURL, Scopes: []string{"*"},
		DocumentURL: func(token string) string { return c.PublicURL + "/artifacts/" + token },
		Logger:      g.app.log.Named("relay"),
	})
	return err
}

func supplier(r config.Relay) relay.Supplier {
	return relay.Supplier{
		Name: r.Name, Description: r.Description, Categories: r.Categories, Region: r.Region, UserBinding: r.Binding, HelpURL: r.HelpURL,
	}
}
