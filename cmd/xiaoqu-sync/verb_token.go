package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
)

// tokenVerb is hidden: operators need no token, and what prints one should not
// lie around in a help text.
func (p *program) tokenVerb() *cobra.Command {
	c := &cobra.Command{
		Use:    "token",
		Short:  "Fetch access tokens, for tests of an integration",
		Hidden: true,
		Args:   noArguments,
		RunE:   func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var reveal bool
	personal := &cobra.Command{
		Use:   "personal [MOBILE]",
		Short: "Fetch the token of the person with a mobile number",
		Long: `Fetch the personal token (user_delegated) of the person with a mobile number, as a
front end would use it. Without an argument, or with -, the number is read from
standard input: arguments can be seen by everybody on this machine.

The token is printed into a pipe or a file, and to a terminal only with --reveal.
It ends within 60 seconds after the person is deactivated: fetch it again rather
than store it. It opens no sync: sync refuses personal tokens.`,
		Example: "  xiaoqu-sync token personal < mobile.txt | other-program",
		Args:    cobra.MaximumNArgs(1),
		RunE: p.bare(func(ctx context.Context, args []string) (answer, error) {
			mobile, err := mobileOf(args)
			if err != nil {
				return nil, err
			}
			p.redactor.Add(mobile)
			return p.personalToken(ctx, mobile, reveal)
		}),
	}
	personal.Flags().BoolVar(&reveal, "reveal", false, "print the token to a terminal too")
	c.AddCommand(personal)
	return c
}

func mobileOf(args []string) (string, error) {
	if len(args) == 1 && args[0] != "-" {
		return args[0], nil
	}
	line, err := bufio.NewReader(io.LimitReader(os.Stdin, 128)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", usageError{errors.New("the mobile number can't be read from standard input")}
	}
	return strings.TrimSpace(line), nil
}

// personalToken asks the remote alone: no database is needed for it.
func (p *program) personalToken(ctx context.Context, mobile string, reveal bool) (answer, error) {
	cfg, err := p.load(config.Input{})
	if err != nil {
		return nil, err
	}
	a := p.newApp(cfg)
	defer a.close()
	if err := a.openVault(ctx); err != nil {
		return nil, err
	}
	if err := a.openTokens(ctx, 0); err != nil {
		return nil, err
	}
	token, err := a.tokens.Personal(ctx, mobile)
	if err != nil {
		return nil, err
	}
	shown := personalToken{Principal: "user_delegated", Shown: reveal || !terminal(p.out)}
	if shown.Shown {
		shown.Token = token.Reveal()
	}
	return shown, nil
}

// personalToken is the one answer that may hold a secret.
type personalToken struct {
	Principal string `json:"principal_type"`
	Token     string `json:"token,omitempty"`
	Shown     bool   `json:"shown"`
}

func (t personalToken) text(w io.Writer) {
	if t.Shown {
		fmt.Fprintln(w, t.Token)
	} else {
		fmt.Fprintln(w, "the token was fetched; --reveal shows it on a terminal")
	}
}

// revealed tells that the token is meant to be printed.
func (t personalToken) revealed() bool { return t.Shown }
