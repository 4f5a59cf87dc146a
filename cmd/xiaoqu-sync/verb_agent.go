package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/api"
	"github.com/xiaoqu-sync/xiaoqu-sync/config"
)

func (p *program) agentVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "agent",
		Short: "Let agents ask the mirror, and operate the worker",
		Long: `Doors for agents: AgentUse over HTTP (api), an MCP agent of Xiaoya's (xiaoya), and a
supplier of AI Relay (relay). All are shut until agents.doors names them, and nothing
writes until agents.allow does. docs/agents.md tells how to set each up.`,
		RunE: unknownVerb,
	}
	c.AddCommand(p.agentServe(), p.agentCheck(), p.agentManifest(), p.agentSkill(), p.agentCall(), p.agentToken(), p.agentRelay())
	return c
}

func (p *program) agentServe() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Open the doors until stopped",
		Long: `Open the doors that agents.doors names, and work on the tasks that come through
them. Any number of replicas may do so. SIGTERM ends it within ten seconds: a task
that is being worked on goes back, and the next process does it.`,
		Args: noArguments,
		RunE: p.withAgents(func(ctx context.Context, g *agents, _ []string) (answer, error) {
			if len(g.app.config.Agents.Doors) == 0 {
				return nil, config.Problems{{Field: "agents.doors", Message: "names no door", Hint: "api, xiaoya, relay, or some of them"}}
			}
			if err := g.openDoors(); err != nil {
				return nil, err
			}
			return nil, g.serve(ctx)
		}),
	}
}

// withAgents runs a verb on the catalogue at work.
func (p *program) withAgents(f func(ctx context.Context, g *agents, args []string) (answer, error)) func(*cobra.Command, []string) error {
	return p.localVerb(func(ctx context.Context, a *app, args []string) (answer, error) {
		if err := a.tables(ctx, a.config.Names()); err != nil {
			return nil, err
		}
		g, err := a.openAgents(ctx)
		if err != nil {
			return nil, err
		}
		defer g.close()
		return f(ctx, g, args)
	})
}

// catalogue makes the catalogue of the configuration, for verbs that need no
// database.
func (p *program) catalogue() (*config.Config, []*agent.Capability, error) {
	cfg, err := p.load(config.Input{DatabaseOnly: true})
	if err != nil {
		return nil, nil, err
	}
	all, err := catalogueOf(cfg)
	return cfg, all, err
}

func catalogueOf(cfg *config.Config) ([]*agent.Capability, error) {
	s, err := agent.New(agent.Options{Resources: mirrored(cfg), Allow: cfg.Agents.Allow, Worker: hands{}})
	if err != nil {
		return nil, err
	}
	return s.Capabilities(), nil
}

func (p *program) capabilitiesVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "capabilities",
		Short: "List what agents can ask for, with schemas (AgentUse)",
		Args:  noArguments,
		RunE: p.bare(func(_ context.Context, _ []string) (answer, error) {
			_, all, err := p.catalogue()
			if err != nil {
				return nil, err
			}
			return newCapabilities(all), nil
		}),
	}
}

func (p *program) agentSkill() *cobra.Command {
	return &cobra.Command{
		Use:   "skill",
		Short: "Print SKILL.md: what an agent should know first",
		Args:  noArguments,
		RunE: p.bare(func(_ context.Context, _ []string) (answer, error) {
			_, all, err := p.catalogue()
			if err != nil {
				return nil, err
			}
			return document(api.Skill(all, skillVersion)), nil
		}),
	}
}

// skillVersion is the catalogue's; it rises when a capability changes its meaning.
const skillVersion = "1.0.0"

func (p *program) agentCall() *cobra.Command {
	var input string
	c := &cobra.Command{
		Use:   "call CAPABILITY",
		Short: "Do one capability from the command line",
		Example: `  xiaoqu-sync agent call mirror.freshness --output json
  echo '{"resource":"users","after":0}' | xiaoqu-sync agent call changes.list --input - --output json`,
		Args: oneArgument,
		RunE: p.withAgents(func(ctx context.Context, g *agents, args []string) (answer, error) {
			text := []byte(input)
			if input == "-" {
				var err error
				if text, err = io.ReadAll(io.LimitReader(os.Stdin, 1<<20)); err != nil {
					return nil, usageError{errors.New("the input can't be read from standard input")}
				}
			}
			return g.call(ctx, args[0], text)
		}),
	}
	c.Flags().StringVar(&input, "input", "{}", "the input as JSON; - reads it from standard input")
	return c
}

// callOffTime bounds the last word about a call that was broken off.
const callOffTime = 3 * time.Second

// call does a capability, and waits for its task when it begins one.
func (g *agents) call(ctx context.Context, id string, input json.RawMessage) (answer, error) {
	a, err := g.service.Do(ctx, agent.Call{
		Caller: agent.Caller{Door: "cli", Name: "operator", Scopes: []string{"*"}}, Capability: id, Input: input,
	})
	if err != nil {
		return nil, agentError{agent.AsFailure(err)}
	}
	if a.Result != nil {
		return resultAnswer{Summary: a.Result.Summary, Data: a.Result.Data}, nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() { defer close(ended); g.service.Run(ctx) }()
	defer func() { stop(); <-ended }()
	t, err := g.follow(ctx, *a.Task)
	if ctx.Err() != nil { // broken off: nobody else is to go on with it
		<-ended
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), callOffTime)
		defer cancel()
		_, _ = g.service.Cancel(end, *a.Task) // the stop is what is told
	}
	switch {
	case err != nil:
		return nil, err
	case t.Failure != nil:
		return nil, agentError{t.Failure}
	case t.Result == nil:
		return nil, agentError{&agent.Failure{Class: agent.Permanent, Code: "cancelled", Message: "the task was cancelled"}}
	}
	return resultAnswer{Summary: t.Result.Summary, Data: t.Result.Data}, nil
}

// follow waits for the task's end.
func (g *agents) follow(ctx context.Context, t agent.Task) (agent.Task, error) {
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for !t.State.Final() {
		select {
		case <-ctx.Done():
			return t, context.Cause(ctx)
		case <-look.C:
		}
		var err error
		if t, err = g.service.Task(ctx, t.Door, t.Caller, t.ID); err != nil {
			return t, agentError{agent.AsFailure(err)}
		}
	}
	return t, nil
}

// document is a text as it is: a manifest, a skill.
type document []byte

func (d document) text(w io.Writer) { _, _ = w.Write(d) }

// MarshalJSON leaves a document that is JSON as it is, and quotes another.
func (d document) MarshalJSON() ([]byte, error) {
	if json.Valid(d) {
		return d, nil
	}
	return json.Marshal(string(d))
}

// resultAnswer is what a capability answered.
type resultAnswer struct {
	Summary string          `json:"summary"`
	Data    json.RawMessage `json:"data"`
}

func (r resultAnswer) text(w io.Writer) { fmt.Fprintf(w, "%s\n%s\n", r.Summary, r.Data) }

// capabilitiesAnswer is the CLI's machine-readable list (AgentUse).
type capabilitiesAnswer struct {
	Capabilities []listedCapability `json:"capabilities"`
	ExitCodes    map[string]string  `json:"exit_codes"`
}

type listedCapability struct {
	api.Listed
	Command string `json:"command"`
}

func newCapabilities(all []*agent.Capability) capabilitiesAnswer {
	out := capabilitiesAnswer{Capabilities: []listedCapability{}, ExitCodes: map[string]string{
		"0": "done", "1": "internal error", "2": "wrong input, unknown, or not allowed", "3": "busy or not reachable: again later",
		"4": "credentials refused: a person must act", "5": "the remote refuses us", "6": "the remote broke the contract",
		"7": "the remote is unreachable: again later", "8": "a rebuild is held: a person must choose", "10": "the database schema does not fit",
	}}
	for _, l := range api.List(all) {
		l.Auth = api.Auth{Scheme: "database", Scopes: []string{}}
		out.Capabilities = append(out.Capabilities, listedCapability{Listed: l, Command: "xiaoqu-sync agent call " + l.ID + " --input JSON --output json"})
	}
	return out
}

func (c capabilitiesAnswer) text(w io.Writer) {
	t := newTable(w, "CAPABILITY", "RISK", "ANSWERS", "WHAT")
	for _, x := range c.Capabilities {
		t.row(plain, x.ID, x.Risk.Level, x.Result.Mode, x.Title)
	}
	t.flush()
}

// agentError is a capability's failure at the command line.
type agentError struct{ *agent.Failure }

func (e agentError) failure() failure {
	f := failure{
		code: strings.ToUpper(e.Code), message: e.Message, retryable: e.Class.Passing(), suggestions: e.Suggestions, requestID: e.RequestID,
	}
	if len(e.Details) > 0 {
		f.details = e.Details
	} else if e.Field != "" {
		f.details = map[string]string{"field": e.Field}
	}
	f.exit = agentExit(e.Failure)
	return f
}

// agentExit is the exit code of a capability's failure: what the remote or the
// fuse says keeps its code, anything else has its class's.
func agentExit(f *agent.Failure) int {
	switch f.Code {
	case "rebuild_held":
		return exitHeld
	case "remote_unauthenticated":
		return exitCredentials
	case "remote_permission_denied":
		return exitRefused
	case "remote_rate_limited", "remote_unreachable", "remote_session_lost":
		return exitRemote
	case "remote_malformed", "remote_invalid_argument", "remote_sync_cursor_expired":
		return exitContract
	case "schema_mismatch":
		return exitSchema
	}
	switch {
	case f.Class == agent.Internal:
		return exitInternal
	case f.Class.Passing():
		return exitBackend
	default:
		return exitUsage
	}
}
