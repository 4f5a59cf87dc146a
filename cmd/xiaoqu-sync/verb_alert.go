package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync/alert"
)

func (p *program) alertVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "alert",
		Short: "Try out who is told when something is wrong",
		RunE:  unknownVerb,
	}
	c.AddCommand(&cobra.Command{
		Use:   "test",
		Short: "Send a test message to every receiver, and show what each answered",
		Long: `Send a test message to every receiver of the configuration (alerts.targets), and
show what each answered. The database is not asked.`,
		Example: "  xiaoqu-sync alert test --config xiaoqu-sync.yaml",
		Args:    noArguments,
		RunE: p.localVerb(func(ctx context.Context, a *app, _ []string) (answer, error) {
			al, err := a.alerter()
			if err != nil {
				return nil, err
			}
			if len(a.config.Alerts.Targets) == 0 {
				return nil, usageError{errors.New("no receiver is configured: alerts.targets in the configuration file names them")}
			}
			tested := alertTested{al.Test(ctx)}
			return tested, tested.err()
		}),
	})
	return c
}

// alertTested is what the receivers answered.
type alertTested struct {
	Targets []alert.Answer `json:"targets"`
}

func (t alertTested) text(w io.Writer) {
	table := newTable(w, "RECEIVER", "VERDICT", "ANSWER")
	for _, a := range t.Targets {
		verdict := stepOK
		if !a.OK {
			verdict = stepFailed
		}
		table.row(verdictColour(verdict), a.Target, verdict, a.Answer)
	}
	table.flush()
}

func (t alertTested) err() error {
	for _, a := range t.Targets {
		if !a.OK {
			return unheardError{t}
		}
	}
	return nil
}

// unheardError is a test in which a receiver did not take the message.
type unheardError struct{ tested alertTested }

func (u unheardError) Error() string {
	var names []string
	for _, a := range u.tested.Targets {
		if !a.OK {
			names = append(names, a.Target)
		}
	}
	return fmt.Sprintf("%d of %d receivers did not take the message: %s", len(names), len(u.tested.Targets), strings.Join(names, ", "))
}

// failure is a mistake of the configuration as soon as one receiver answered no;
// one that does not answer may answer later.
func (u unheardError) failure() failure {
	f := failure{
		exit: exitRemote, code: "RECEIVER_UNREACHABLE", message: u.Error(), retryable: true, details: u.tested,
		suggestions: []string{"check the receiver's address and the network between here and there"},
	}
	for _, a := range u.tested.Targets {
		if errors.Is(a.Err, alert.ErrRefused) {
			f.exit, f.code, f.retryable = exitUsage, "RECEIVER_REFUSES", false
			f.suggestions = []string{"check its address and secret, and the robot's security settings: its keyword can be xiaoqu-sync, which is in every message"}
		}
	}
	return f
}
