package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
	"github.com/xiaoqu-sync/xiaoqu-sync/agent/store"
)

const (
	defaultTokenLife = 90 * 24 * time.Hour
	maxTokenLife     = 366 * 24 * time.Hour
	codeLife         = 10 * time.Minute // RSP 1.0 §11
	maxUser          = 256              // bytes of a supplier_user_ref of ours
)

func (p *program) agentToken() *cobra.Command {
	c := &cobra.Command{Use: "token", Short: "Bearer tokens of the HTTP door", RunE: unknownVerb}
	var scopes []string
	var life time.Duration
	add := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a token and print it, once",
		Long: `Make a token and print it. It is kept as a hash: nobody can print it again. Scopes are
ids of capabilities; read stands for all that only read.`,
		Example: "  xiaoqu-sync agent token add crm-assistant --scope read --scope sync.run",
		Args:    oneArgument,
		RunE: p.withStore(func(ctx context.Context, a *app, s *store.Store, args []string) (answer, error) {
			if err := checkScopes(scopes, life); err != nil {
				return nil, err
			}
			secret, err := s.AddToken(ctx, args[0], scopes, life)
			switch {
			case errors.Is(err, store.ErrTokenExists):
				return nil, usageError{fmt.Errorf("there is a token %q: revoke it first, or take another name", args[0])}
			case errors.Is(err, store.ErrTokenName):
				return nil, usageError{errors.New("a token's name is a to z, A to Z, 0 to 9, dot, dash and _, at most 64 characters")}
			case err != nil:
				return nil, agentError{a.told(err)}
			}
			return tokenAnswer{Name: args[0], Token: secret, Scopes: scopes, ExpiresAt: time.Now().Add(life).UTC().Truncate(time.Second)}, nil
		}),
	}
	add.Flags().StringSliceVar(&scopes, "scope", []string{"read"}, "what it may be used for: read, or ids of capabilities")
	add.Flags().DurationVar(&life, "life", defaultTokenLife, "how long it is valid, at most 8784h")
	list := &cobra.Command{
		Use: "list", Short: "List the tokens, without their secrets", Args: noArguments,
		RunE: p.withStore(func(ctx context.Context, a *app, s *store.Store, _ []string) (answer, error) {
			all, err := s.Tokens(ctx)
			if err != nil {
				return nil, agentError{a.told(err)}
			}
			return tokensAnswer{Tokens: all}, nil
		}),
	}
	revoke := &cobra.Command{
		Use: "revoke NAME", Short: "End a token now", Args: oneArgument,
		RunE: p.withStore(func(ctx context.Context, a *app, s *store.Store, args []string) (answer, error) {
			gone, err := s.RevokeToken(ctx, args[0])
			if err != nil {
				return nil, agentError{a.told(err)}
			}
			if !gone {
				return nil, usageError{fmt.Errorf("there is no token %q", args[0])}
			}
			return saying("the token " + args[0] + " is revoked"), nil
		}),
	}
	c.AddCommand(add, list, revoke)
	return c
}

func checkScopes(scopes []string, life time.Duration) error {
	if life < time.Minute || life > maxTokenLife {
		return usageError{fmt.Errorf("--life takes 1m to %s", maxTokenLife)}
	}
	known := append(agent.Writing(), agent.Reading()...)
	for _, s := range scopes {
		if s != "read" && s != "*" && !slices.Contains(known, s) {
			return usageError{fmt.Errorf("no capability is called %q; there are read, %s", s, strings.Join(known, ", "))}
		}
	}
	return nil
}

func (p *program) agentRelay() *cobra.Command {
	c := &cobra.Command{Use: "relay", Short: "Users of AI Relay", RunE: unknownVerb}
	var display string
	code := &cobra.Command{
		Use:   "bind-code USER",
		Short: "Make a one-time code that binds a Relay user to USER",
		Long: `Make a one-time code, good for ten minutes. The person gives it to their AI, or
pastes it at Relay; from then on their orders come with USER as supplier_user_ref.`,
		Args: oneArgument,
		RunE: p.withStore(func(ctx context.Context, a *app, s *store.Store, args []string) (answer, error) {
			if user := args[0]; user == "" || user != strings.TrimSpace(user) || len(user) > maxUser {
				return nil, usageError{fmt.Errorf("USER is your name for the account: 1 to %d bytes, no space around it", maxUser)}
			}
			secret, err := s.AddCode(ctx, args[0], display, codeLife)
			if err != nil {
				return nil, agentError{a.told(err)}
			}
			return codeAnswer{User: args[0], Code: secret, ExpiresAt: time.Now().Add(codeLife).UTC().Truncate(time.Second)}, nil
		}),
	}
	code.Flags().StringVar(&display, "name", "", "how the account is called for people")
	c.AddCommand(code)
	return c
}

// withStore runs a verb on what agents keep in PostgreSQL.
func (p *program) withStore(f func(context.Context, *app, *store.Store, []string) (answer, error)) func(*cobra.Command, []string) error {
	return p.localVerb(func(ctx context.Context, a *app, args []string) (answer, error) {
		if err := a.tables(ctx, a.config.Names()); err != nil {
			return nil, err
		}
		s, err := a.openStore(ctx)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		return f(ctx, a, s, args)
	})
}

type tokenAnswer struct {
	Name      string    `json:"name"`
	Token     string    `json:"token"`
	Scopes    []string  `json:"scopes"`
	ExpiresAt time.Time `json:"expires_at"`
}

func (tokenAnswer) revealed() bool { return true }

func (t tokenAnswer) text(w io.Writer) { fmt.Fprintln(w, t.Token) }

type codeAnswer struct {
	User      string    `json:"user"`
	Code      string    `json:"code"`
	ExpiresAt time.Time `json:"expires_at"`
}

func (codeAnswer) revealed() bool { return true }

func (c codeAnswer) text(w io.Writer) { fmt.Fprintln(w, c.Code) }

type tokensAnswer struct {
	Tokens []store.TokenInfo `json:"tokens"`
}

func (t tokensAnswer) text(w io.Writer) {
	tab := newTable(w, "NAME", "SCOPES", "MADE", "EXPIRES")
	for _, x := range t.Tokens {
		tab.row(plain, x.Name, strings.Join(x.Scopes, ","), clock(&x.CreatedAt), clock(x.ExpiresAt))
	}
	tab.flush()
}

// saying is a sentence as a verb's answer.
type saying string

func (s saying) text(w io.Writer) { fmt.Fprintln(w, string(s)) }
