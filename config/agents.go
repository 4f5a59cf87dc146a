package config

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// The doors for agents.
const (
	DoorAPI    = "api"    // AgentUse over plain HTTP
	DoorXiaoya = "xiaoya" // an MCP agent of Xiaoya's
	DoorRelay  = "relay"  // a supplier of AI Relay (RSP 1.0)
)

// The variables that hold the doors' secrets. They are no settings: nothing but
// the environment takes them, or a file that a setting names.
const (
	XiaoyaKeyVariable        = "XIAOQU_AGENTS_XIAOYA_KEY"
	XiaoyaCredentialVariable = "XIAOQU_AGENTS_XIAOYA_CREDENTIAL"
	RelaySecretVariable      = "XIAOQU_AGENTS_RELAY_SECRET"
	RelayPreviousVariable    = "XIAOQU_AGENTS_RELAY_SECRET_PREVIOUS"
)

// Agents says what agents may ask, and through which doors. Everything is off
// until it is named here.
type Agents struct {
	Listen     string // host:port of agent serve
	PublicURL  string // how platforms reach it: https, or http on loopback
	ReaderRole string // the role that records are read with
	Masked     bool   // read the masked views instead of the live ones
	Doors      []string
	Allow      []string // capabilities that write, by id
	Xiaoya     Xiaoya
	Relay      Relay
}

// Xiaoya is the door of an MCP agent.
type Xiaoya struct {
	AppID, Version, Name, Description string
	AgentID                           string // whom a call must be meant for
	KeyFile                           string // of the call context's signature; or XIAOQU_AGENTS_XIAOYA_KEY
	IntrospectURL                     string // asks the platform instead of checking a signature
	CallbackURL                       string // the invocation's id is added to it
	CredentialFile                    string // for callbacks and introspection; or XIAOQU_AGENTS_XIAOYA_CREDENTIAL
	Headers                           XiaoyaHeaders
}

// XiaoyaHeaders name the protected headers, which the platform's rules leave open.
type XiaoyaHeaders struct {
	Agent, Invocation, Timestamp, Signature string
}

// Relay is the door of a supplier.
type Relay struct {
	Name, Description, Region string
	Categories                []string
	Binding                   string // none or token
	HelpURL                   string // where people get a binding code
	SecretFile, PreviousFile  string // or the variables above
	CallbackURL               string // the order's id is added to it
}

// agentsDoors is the setting that opens any door.
const agentsDoors = "agents.doors"

func doors() []string { return []string{DoorAPI, DoorXiaoya, DoorRelay} }

var (
	roleName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$-]{0,62}$`)
	headerName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,63}$`)
	appID      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
)

func agentSettings() []setting {
	return slices.Concat([]setting{
		{
			name: "agents.listen", env: true, empty: true, def: "127.0.0.1:9474",
			help: "host:port where agent serve listens.",
			set:  text(func(c *Config) *string { return &c.Agents.Listen }, parseListen),
		},
		{
			name: "agents.public_url", env: true,
			help: "How platforms reach the doors, for manifests and links: https, or http on loopback.",
			set:  text(func(c *Config) *string { return &c.Agents.PublicURL }, parseAddress),
		},
		{
			name: "agents.reader_role", env: true,
			help: "The PostgreSQL role that records are read with; the worker's own must be a member of it.",
			set:  text(func(c *Config) *string { return &c.Agents.ReaderRole }, formed(roleName, "is not the name of a role")),
		},
		{
			name: "agents.masked", kind: kindBoolean, def: "true",
			help: "Read the masked views; false reads the live ones, with all personal data.",
			set:  boolean(func(c *Config) *bool { return &c.Agents.Masked }),
		},
		{
			name: agentsDoors, env: true,
			help: "Which doors are open, with commas: api, xiaoya, relay. None until named.",
			set:  words(func(c *Config) *[]string { return &c.Agents.Doors }, doors()),
		},
		{
			name: "agents.allow",
			help: "Capabilities that write, by id, with commas: " + strings.Join(writing(), ", ") + ". None until named.",
			set:  words(func(c *Config) *[]string { return &c.Agents.Allow }, writing()),
		},
	}, xiaoyaSettings(), relaySettings())
}

// writing are the ids of agent.Writing, which a test compares.
func writing() []string {
	return []string{"rebuild.apply", "rebuild.plan", "rebuild.resolve", "sync.run", "verify.run"}
}

func xiaoyaSettings() []setting {
	x := func(f func(*Xiaoya) *string) func(*Config) *string {
		return func(c *Config) *string { return f(&c.Agents.Xiaoya) }
	}
	all := []setting{
		{name: "agents.xiaoya.app_id", help: "Id of the application at the platform.", set: text(x(func(x *Xiaoya) *string { return &x.AppID }), formed(appID, "is not an id"))},
		{name: "agents.xiaoya.version", def: "1.0.0", help: "Version of the application; raise it when a review is asked for.", set: text(x(func(x *Xiaoya) *string { return &x.Version }), formed(appID, "is not a version"))},
		{name: "agents.xiaoya.name", def: "xiaoqu-sync", help: "Name of the application, for people.", set: text(x(func(x *Xiaoya) *string { return &x.Name }), short(100))},
		{name: "agents.xiaoya.description", def: "小趣镜像：查询用户、房源与合同，并运维同步", help: "What the application does, for people.", set: text(x(func(x *Xiaoya) *string { return &x.Description }), short(1000))},
		{name: "agents.xiaoya.agent_id", help: "Whom a call must be meant for; empty for app_id.", set: text(x(func(x *Xiaoya) *string { return &x.AgentID }), formed(appID, "is not an id"))},
		{name: "agents.xiaoya.key_file", help: "File with the key of the call context's signature; or " + XiaoyaKeyVariable + ".", set: text(x(func(x *Xiaoya) *string { return &x.KeyFile }), anyText)},
		{name: "agents.xiaoya.introspect_url", help: "Asks the platform about each call context instead of checking a signature.", set: text(x(func(x *Xiaoya) *string { return &x.IntrospectURL }), parseAddress)},
		{name: "agents.xiaoya.callback_url", help: "Where results of tasks go; the invocation's id is added.", set: text(x(func(x *Xiaoya) *string { return &x.CallbackURL }), parseAddress)},
		{name: "agents.xiaoya.credential_file", help: "File with the platform's credential for callbacks; or " + XiaoyaCredentialVariable + ".", set: text(x(func(x *Xiaoya) *string { return &x.CredentialFile }), anyText)},
	}
	for _, h := range []struct {
		name, def string
		of        func(*XiaoyaHeaders) *string
	}{
		{"agent", "X-Xiaoya-Agent-Id", func(h *XiaoyaHeaders) *string { return &h.Agent }},
		{"invocation", "X-Xiaoya-Invocation-Id", func(h *XiaoyaHeaders) *string { return &h.Invocation }},
		{"timestamp", "X-Xiaoya-Timestamp", func(h *XiaoyaHeaders) *string { return &h.Timestamp }},
		{"signature", "X-Xiaoya-Signature", func(h *XiaoyaHeaders) *string { return &h.Signature }},
	} {
		all = append(all, setting{
			name: "agents.xiaoya.headers." + h.name, def: h.def, help: "Name of the protected header with the call context's " + h.name + ".",
			set: text(func(c *Config) *string { return h.of(&c.Agents.Xiaoya.Headers) }, formed(headerName, "is not the name of a header")),
		})
	}
	return all
}

func relaySettings() []setting {
	r := func(f func(*Relay) *string) func(*Config) *string {
		return func(c *Config) *string { return f(&c.Agents.Relay) }
	}
	bindings := []string{"none", "token"}
	return []setting{
		{name: "agents.relay.name", def: "xiaoqu-sync", help: "Name of the supplier, for people.", set: text(r(func(r *Relay) *string { return &r.Name }), short(100))},
		{name: "agents.relay.description", def: "小趣镜像：查询用户、房源与合同，并运维同步", help: "What the supplier does; it is searched.", set: text(r(func(r *Relay) *string { return &r.Description }), short(1000))},
		{name: "agents.relay.categories", def: "CRM,数据同步", help: "Its categories, one to ten, with commas.", set: words(func(c *Config) *[]string { return &c.Agents.Relay.Categories }, nil)},
		{name: "agents.relay.region", help: "Where it is.", set: text(r(func(r *Relay) *string { return &r.Region }), short(100))},
		{name: "agents.relay.binding", def: "token", help: "Whether users bind an account first.", schema: map[string]any{"enum": bindings}, set: text(r(func(r *Relay) *string { return &r.Binding }), oneOf(bindings))},
		{name: "agents.relay.help_url", help: "Page that tells people how to get a binding code.", set: text(r(func(r *Relay) *string { return &r.HelpURL }), parseAddress)},
		{name: "agents.relay.secret_file", help: "File with the signing secret; or " + RelaySecretVariable + ".", set: text(r(func(r *Relay) *string { return &r.SecretFile }), anyText)},
		{name: "agents.relay.previous_secret_file", help: "File with the secret before it, during a rotation; or " + RelayPreviousVariable + ".", set: text(r(func(r *Relay) *string { return &r.PreviousFile }), anyText)},
		{name: "agents.relay.callback_url", def: "https://relay.newbeeai.online/v1/callbacks", help: "Where events go; the order's id is added.", set: text(r(func(r *Relay) *string { return &r.CallbackURL }), parseAddress)},
	}
}

// words makes a setter of a list of words with commas; allowed nil takes any.
func words(field func(*Config) *[]string, allowed []string) func(*Config, string) (string, error) {
	return func(c *Config, s string) (string, error) {
		var all []string
		for w := range strings.SplitSeq(s, ",") {
			if w = strings.TrimSpace(w); w == "" {
				continue
			}
			if allowed != nil {
				if _, err := oneOf(allowed)(w); err != nil {
					return "", err
				}
			}
			if !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
		*field(c) = all
		return strings.Join(all, ","), nil
	}
}

func formed(form *regexp.Regexp, problem string) func(string) (string, error) {
	return func(s string) (string, error) {
		if s != "" && !form.MatchString(s) {
			return "", wrong("", "%s", problem)
		}
		return s, nil
	}
}

func short(most int) func(string) (string, error) {
	return func(s string) (string, error) {
		if len([]rune(s)) > most {
			return "", wrong("", "has more than %d characters", most)
		}
		return s, nil
	}
}

// parseAddress never repeats the value: people paste addresses with secrets in them.
func parseAddress(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	if err := checkPlainURL(s); err != nil {
		return "", err
	}
	u, err := url.Parse(s)
	if err != nil {
		return "", err
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u.String(), nil
}

// agentsTogether checks what the parts are to each other, when a door is open.
func (l *loader) agentsTogether(need func(name, value, why string)) {
	a := l.cfg.Agents
	if len(a.Doors) == 0 {
		return
	}
	need("agents.reader_role", a.ReaderRole, "agents read with a role that may do nothing else")
	if slices.Contains(a.Doors, DoorXiaoya) {
		need("agents.xiaoya.app_id", a.Xiaoya.AppID, "the door xiaoya is open")
		need("agents.public_url", a.PublicURL, "the door xiaoya is open")
	}
	if slices.Contains(a.Doors, DoorRelay) {
		need("agents.public_url", a.PublicURL, "the door relay is open")
		if a.Relay.Binding == "token" {
			need("agents.relay.help_url", a.Relay.HelpURL, "agents.relay.binding is token")
		}
	}
}
