package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/remote/remotetest"
)

// order is what the parent asks of the simulator, one JSON object a line.
type order struct {
	Do       string        `json:"do"`
	Seed     [3]int        `json:"seed,omitempty"`
	Latency  time.Duration `json:"latency,omitempty"`
	Resource string        `json:"resource,omitempty"`
}

// notice is the simulator's answer to each, and its first line.
type notice struct {
	URL  string    `json:"url,omitempty"`
	Key  string    `json:"key,omitempty"`
	Last time.Time `json:"last,omitzero"` // when the last session was begun
}

// simulate is the simulator's process. It ends when its orders do.
func simulate(in io.Reader, out io.Writer) error {
	s, err := remotetest.New(remotetest.Options{Seed: 7})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	answers := json.NewEncoder(out)
	if err := answers.Encode(notice{URL: s.URL(), Key: s.Key()}); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return err
		}
		if err := answers.Encode(obey(s, o)); err != nil {
			return err
		}
	}
	return nil
}

func obey(s *remotetest.Server, o order) notice {
	var n notice
	switch o.Do {
	case "seed":
		s.Seed(o.Seed[0], o.Seed[1], o.Seed[2])
	case "latency":
		s.Latency(o.Latency)
	case "expire":
		s.ExpireTokens(o.Resource)
	case "last":
		for _, c := range s.Calls() {
			if c.Kind == "initialize" {
				n.Last = c.At
			}
		}
	}
	return n
}

// simulator is the parent's end of one.
type simulator struct {
	cmd     *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Reader
	url     string
	key     string
}

func startSimulator(ctx context.Context) (*simulator, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &simulator{cmd: exec.CommandContext(ctx, self, simulatorFlag)}
	s.cmd.Stderr = os.Stderr
	if s.orders, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	answers, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.answers = bufio.NewReader(answers)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	first, err := s.hear()
	s.url, s.key = first.URL, first.Key
	return s, err
}

func (s *simulator) hear() (notice, error) {
	line, err := s.answers.ReadBytes('\n')
	var n notice
	if err == nil {
		err = json.Unmarshal(line, &n)
	}
	if err != nil {
		return n, fmt.Errorf("the simulator: %w", err)
	}
	return n, nil
}

func (s *simulator) ask(o order) (notice, error) {
	line, err := json.Marshal(o)
	if err != nil {
		return notice{}, err
	}
	if _, err := s.orders.Write(append(line, '\n')); err != nil {
		return notice{}, fmt.Errorf("the simulator: %w", err)
	}
	return s.hear()
}

// pace makes every answer late by d.
func (s *simulator) pace(d time.Duration) error {
	_, err := s.ask(order{Do: "latency", Latency: d})
	return err
}

// fill adds records of the three resources.
func (s *simulator) fill(users, properties, contracts int) error {
	_, err := s.ask(order{Do: "seed", Seed: [3]int{users, properties, contracts}})
	return err
}

// stop ends it and waits for that.
func (s *simulator) stop() {
	_ = s.orders.Close()
	_ = s.cmd.Wait() // by our own wish: how it ended says nothing
}

// environment is what the verbs need to find the simulator and a database.
func (s *simulator) environment(database string) []string {
	env := []string{
		"XIAOQU_BASE_URL=" + s.url, "XIAOQU_SERVICE_NAME=bench", "XIAOQU_OPEN_KEY=" + s.key,
		"XIAOQU_DATABASE_URL=" + database, "XIAOQU_LOG_LEVEL=warn",
	}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "XIAOQU_") {
			env = append(env, kv)
		}
	}
	return env
}
