package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync/alert"
	"github.com/xiaoqu-sync/xiaoqu-sync/config"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// maxSecretFile is the most that a file with an address or a secret may hold, in bytes.
const maxSecretFile = 64 << 10

// alerter is who tells people. A receiver whose address or secret is missing is a
// mistake that stops a verb before it begins: it would be noticed by nobody later.
func (a *app) alerter() (*alert.Alerter, error) {
	if a.alerts != nil {
		return a.alerts, nil
	}
	targets, problems := a.program.alertTargets(a.config)
	if len(problems) > 0 {
		return nil, problems
	}
	al, err := alert.New(alert.Options{
		Store: a.mirror, Targets: targets, Resources: a.config.Names(),
		Instance: cmp.Or(a.config.Alerts.Name, a.config.ServiceName, a.config.Database.Schema), Host: a.holder().Host,
		Language: a.config.Alerts.Language, TimeZone: a.config.TimeZone,
		StaleAfter: a.config.Alerts.StaleAfter, RemindAfter: a.config.Alerts.RemindAfter,
		Judge: judge, Redact: a.program.redactor.String, Logger: a.log.Named("alert"),
	})
	if err != nil {
		return nil, config.Problems{{Field: "alerts.targets", Message: err.Error()}}
	}
	a.program.redactor.Add(al.Secrets()...)
	a.alerts = al
	return al, nil
}

// judge says what an error of a run means for those who are told.
func judge(err error) alert.Cause {
	f := classify(err)
	var key *credentials.Error
	unusable := errors.As(err, &key) && key.Kind == credentials.BadKey
	return alert.Cause{
		Code: f.code, RequestID: f.requestID, Credentials: f.exit == exitCredentials || unusable, Passing: f.retryable,
	}
}

// tell has people told of what a verb that ends brought about, in bounded time.
// Nothing of it changes how the verb ends.
func (a *app) tell(ctx context.Context, outcomes []sync.Outcome) {
	if a.alerts == nil {
		return
	}
	a.alerts.Observe(ctx, outcomes)
	if err := a.alerts.Flush(ctx); err != nil {
		a.log.Warn("alerts were not kept in the database; nobody was told", zap.Error(err))
	}
}

// tellOfAll is for an error that stopped a verb before it came to any resource. It
// returns the error. One that passes is left to the data's age.
func (a *app) tellOfAll(ctx context.Context, resources []string, err error) error {
	if judge(err).Passing || ctx.Err() != nil {
		return err
	}
	outcomes := make([]sync.Outcome, len(resources))
	for i, r := range resources {
		outcomes[i] = sync.Outcome{Resource: r, Result: sync.Failed, Err: err}
	}
	a.tell(ctx, outcomes)
	return err
}

// alertTargets fetches what the configuration only names.
func (p *program) alertTargets(cfg *config.Config) ([]alert.Target, config.Problems) {
	var targets []alert.Target
	var problems config.Problems
	for _, t := range cfg.Alerts.Targets {
		fetch := func(part, variable, file string) credentials.Secret {
			value, err := p.fetchSecret(variable, file)
			if err != nil {
				problems = append(problems, t.Problem(part, err.Error(), "it holds the receiver's "+part+"; without it nobody is told"))
			}
			p.redactor.Add(value)
			return credentials.NewSecret(value)
		}
		target := alert.Target{Kind: alert.Kind(t.Kind), Name: t.Name(), URL: credentials.NewSecret(t.URL)}
		if t.URL == "" {
			target.URL = fetch("url", t.URLEnv, t.URLFile)
		}
		if t.SecretEnv+t.SecretFile != "" {
			target.Secret = fetch("secret", t.SecretEnv, t.SecretFile)
		}
		for _, e := range t.Events {
			target.Events = append(target.Events, alert.Class(e))
		}
		targets = append(targets, target)
	}
	return targets, problems
}

// fetchSecret reads a variable, or a file when there is one. Whitespace around the
// value is not its part: files end in a line break.
func (p *program) fetchSecret(variable, file string) (string, error) {
	if file == "" {
		value, _ := p.lookup(variable)
		if value = strings.TrimSpace(value); value == "" {
			return "", fmt.Errorf("the variable %s is not set", variable)
		}
		return value, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w", file, withoutPath(err))
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	value := strings.TrimSpace(string(b))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s cannot be read: %w", file, withoutPath(err))
	case len(b) > maxSecretFile:
		return "", fmt.Errorf("%s is larger than 64 KiB", file)
	case value == "":
		return "", fmt.Errorf("%s is empty", file)
	}
	return value, nil
}

// withoutPath takes the path out of an error, where the text names it already.
func withoutPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
