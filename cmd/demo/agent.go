package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// The secrets are the demo's own and open nothing else.
const (
	demoRole        = "demo_reader"
	demoXiaoyaKey   = "demo-xiaoya-signing-key"
	demoRelaySecret = "whsec_demo_do_not_use"
)

const demoConfig = `
resources:
  users: {columns: {name: {path: $.name, type: text, index: true}}, masked: [$.mobile]}
  properties: {masked: [$.owner.mobile]}
  contracts: {columns: {status: {path: $.status, type: text}}, masked: [$.customer_mobile]}
agents:
  doors: api, xiaoya, relay
  allow: sync.run, verify.run, rebuild.plan, rebuild.apply, rebuild.resolve
  reader_role: demo_reader
  public_url: http://%s
  xiaoya: {app_id: crm-mirror, agent_id: crm-mirror}
  relay: {binding: none, callback_url: 'http://127.0.0.1:9/v1/callbacks'}
`

// doors shows what agents can do: it opens all three doors on a synced mirror, makes
// one call through each, and leaves them open until Ctrl-C.
func doors(ctx context.Context, xiaoqu *remotetest.Server, out io.Writer) error {
	s := &stage{out: out, xiaoqu: xiaoqu}
	clean, err := s.set(ctx)
	defer clean()
	if err != nil {
		return err
	}
	address, err := s.furnish(ctx)
	if err != nil {
		return err
	}
	stop, err := s.serve(ctx, address)
	if err != nil {
		return err
	}
	defer stop()
	token, err := s.token(ctx)
	if err != nil {
		return err
	}
	for _, c := range calls(address, token) {
		if err := s.call(ctx, c); err != nil {
			return err
		}
	}
	s.say("The doors stay open")
	fmt.Fprintf(out, "%s\n  %[2]s agent check --config %[3]s\n  %[2]s agent manifest relay --config %[3]s\n\nCtrl-C ends it all.\n", exports(s.settings), s.binary, s.config)
	<-ctx.Done()
	return nil
}

// furnish makes the role, the configuration and the mirror.
func (s *stage) furnish(ctx context.Context) (address string, err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address = l.Addr().String()
	if err := l.Close(); err != nil {
		return "", err
	}
	file := filepath.Join(filepath.Dir(s.binary), "config.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, demoConfig, address), 0o600); err != nil {
		return "", err
	}
	s.config = file
	s.settings = append(
		s.settings,
		setting{"XIAOQU_AGENTS_LISTEN", address}, setting{"XIAOQU_AGENTS_XIAOYA_KEY", demoXiaoyaKey}, setting{"XIAOQU_AGENTS_RELAY_SECRET", demoRelaySecret},
	)
	if _, _, err := localpg.Query(ctx, s.postgres.URL(database), "create role "+demoRole); err != nil {
		return "", err
	}
	for _, step := range []func(context.Context) error{
		s.verb("The mirror, and a role that may read the masked views", "migrate", "--grant-reader", demoRole, "--masked"),
		s.verb("The first sync", "sync"),
		s.verb("What agents can ask for", "capabilities"),
	} {
		if err := step(ctx); err != nil {
			return "", err
		}
	}
	return address, nil
}

// serve opens the doors; stop shuts them.
func (s *stage) serve(ctx context.Context, address string) (stop func(), err error) {
	s.say("All three doors open")
	fmt.Fprintf(s.out, "$ xiaoqu-sync agent serve\n")
	c := s.command(ctx, "agent", "serve")
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait() // it ends with the signal's code
	}
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	patience := time.NewTimer(20 * time.Second)
	defer patience.Stop()
	for {
		if answers(ctx, "http://"+address+"/healthz") {
			return stop, nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			stop()
			return nil, ctx.Err()
		case <-patience.C:
			stop()
			return nil, errors.New("the doors did not open within 20 s")
		}
	}
}

func answers(ctx context.Context, url string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// token makes a bearer token for the HTTP door.
func (s *stage) token(ctx context.Context) (string, error) {
	c := s.command(ctx, "agent", "token", "add", "demo", "--scope", "read", "--scope", "sync.run")
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("xiaoqu-sync agent token add: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// call prints a call, and makes it where the tools for it are there.
func (s *stage) call(ctx context.Context, c call) error {
	s.say(c.title)
	fmt.Fprintf(s.out, "%s\n", c.script)
	for _, tool := range []string{"sh", "curl", "openssl"} {
		if _, err := exec.LookPath(tool); err != nil {
			fmt.Fprintf(s.out, "(not made here: there is no %s)\n", tool)
			return nil
		}
	}
	shell := exec.CommandContext(ctx, "sh", "-c", c.script)
	text, err := shell.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", c.title, err, text)
	}
	fmt.Fprintf(s.out, "→ %.1200s\n", strings.TrimSpace(string(text)))
	if !strings.Contains(string(text), c.want) {
		return fmt.Errorf("%s: the answer has no %s", c.title, c.want)
	}
	return nil
}
