package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

func (p *program) checkVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Try every step that a sync needs, and say what to do about each",
		Long: `Try every step that a sync needs: configuration, database and its rights, service
key, token, handshake, identity, tools. Never writes. Each step has a verdict, and a step
that failed says what to do.`,
		Example: "  xiaoqu-sync check\n  xiaoqu-sync check --output json",
		Args:    noArguments,
		RunE: p.verb(func(ctx context.Context, a *app, _ []string) (answer, error) {
			return a.check(ctx)
		}),
	}
}

// verdicts of a step.
const (
	stepOK      = "ok"
	stepFailed  = "failed"
	stepSkipped = "skipped"
)

type checkStep struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Detail  string `json:"detail"`
	Hint    string `json:"hint,omitempty"`
}

type checkAnswer struct {
	Steps      []checkStep `json:"steps"`
	KeyVersion string      `json:"key_version,omitempty"` // of the service key, where its store numbers them
	first      error       // the first failure decides the exit code
}

// add records a step and tells whether it passed.
func (c *checkAnswer) add(name, detail string, err error) bool {
	s := checkStep{Name: name, Verdict: stepOK, Detail: detail}
	if err != nil {
		f := classify(err)
		s.Verdict, s.Detail = stepFailed, strings.ReplaceAll(f.message, "\n", "; ")
		if len(f.suggestions) > 0 {
			s.Hint = f.suggestions[0]
		}
		if c.first == nil {
			c.first = err
		}
	}
	c.Steps = append(c.Steps, s)
	return err == nil
}

func (c *checkAnswer) skip(names ...string) {
	for _, n := range names {
		c.Steps = append(c.Steps, checkStep{Name: n, Verdict: stepSkipped, Detail: "an earlier step failed"})
	}
}

// check walks through the steps of a sync. The database and the remote are
// both tried, whatever the other says.
func (a *app) check(ctx context.Context) (answer, error) {
	c := &checkAnswer{}
	c.add("configuration", "valid", nil)
	a.checkDatabase(ctx, c)
	a.checkRemote(ctx, c)
	for i := range c.Steps {
		c.Steps[i].Detail = a.program.redactor.String(c.Steps[i].Detail)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if c.first != nil {
		return c, checkError{answer: c}
	}
	return c, nil
}

func (a *app) checkDatabase(ctx context.Context, c *checkAnswer) {
	findings, err := a.mirror.Probe(ctx, a.config.Names())
	for _, f := range findings {
		var failed error
		switch {
		case f.OK:
		case err != nil:
			failed = err // the last finding is the one that stopped the probe
		default:
			failed = unfitDatabase(f)
		}
		c.add("database: "+f.Name, f.Detail, failed)
	}
}

// unfitDatabase is a finding as the error that a sync would end with.
func unfitDatabase(f mirror.Finding) error {
	kind := mirror.KindDenied
	switch f.Name {
	case "schema":
		kind = mirror.KindSchema
	case "writable":
		kind = mirror.KindUnreachable
	}
	return &mirror.Error{Kind: kind, Op: "probe", Message: f.Detail, Hint: f.Hint}
}

func (a *app) checkRemote(ctx context.Context, c *checkAnswer) {
	client, err := a.remote(ctx, 0) // a person waits for the answer
	detail := "present"
	if c.KeyVersion = a.keyVersion(); c.KeyVersion != "" {
		detail += ", version " + c.KeyVersion
	}
	if !c.add("service key", detail, err) {
		c.skip("token", "handshake", "identity", "tools")
		return
	}
	tools, err := client.Tools(ctx)
	if err != nil {
		a.placeFailure(c, err)
		return
	}
	c.add("token", "exchanged", nil)
	c.add("handshake", "session open", nil)
	id, err := client.Identity(ctx)
	if err == nil {
		err = sync.Vet(id, a.knownTenant(ctx))
	}
	c.add("identity", fmt.Sprintf("%s, capabilities %v, tenant %s", id.PrincipalType, id.Capabilities, dash(id.TenantID)), err)
	for _, r := range a.config.Names() {
		c.add("tool: "+r, r+".changes.list is offered", sync.VetTool(tools, r))
	}
}

// knownTenant is the tenant that the mirror was filled from; "" also when the
// mirror is not there yet or cannot be asked, which has its own step.
func (a *app) knownTenant(ctx context.Context) string {
	tenant, err := a.mirror.Tenant(ctx)
	if err != nil {
		return ""
	}
	return tenant
}

// placeFailure puts a failed handshake where it belongs: key, token, handshake
// or tools.
func (a *app) placeFailure(c *checkAnswer, err error) {
	var e *remote.Error
	switch {
	case !errors.As(err, &e):
		c.add("token", "", err)
		c.skip("handshake", "identity", "tools")
	case e.Tool == "tools/list":
		c.add("token", "exchanged", nil)
		c.add("handshake", "session open", nil)
		c.add("tools", "", err)
		c.skip("identity")
	default:
		c.add("token", "exchanged", nil)
		c.add("handshake", "", err)
		c.skip("identity", "tools")
	}
}

func (c *checkAnswer) text(w io.Writer) {
	t := newTable(w, "STEP", "VERDICT", "DETAIL")
	for _, s := range c.Steps {
		t.row(verdictColour(s.Verdict), s.Name, s.Verdict, s.Detail)
	}
	t.flush()
}

func verdictColour(verdict string) colour {
	switch verdict {
	case stepOK:
		return green
	case stepFailed:
		return red
	default:
		return yellow
	}
}

// checkError is a check in which a step failed; its exit code is that of a
// sync that meets the same.
type checkError struct{ answer *checkAnswer }

func (c checkError) Error() string { return c.answer.first.Error() }

func (c checkError) failure() failure {
	f := classify(c.answer.first)
	f.details = c.answer
	f.suggestions = nil
	for _, s := range c.answer.Steps {
		if s.Hint != "" && s.Verdict == stepFailed {
			f.suggestions = append(f.suggestions, s.Name+": "+s.Hint)
		}
	}
	return f
}
