package alert

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
)

// Kind is the form in which a target takes events.
type Kind string

// The kinds of targets.
const (
	JSON     Kind = "json"     // the event itself, signed
	WeCom    Kind = "wecom"    // 企业微信群机器人
	DingTalk Kind = "dingtalk" // 钉钉自定义机器人
	Feishu   Kind = "feishu"   // 飞书自定义机器人
)

// Target is somebody who is told.
type Target struct {
	Kind   Kind
	Name   string // in logs and in the database, where it must stay the same; holds no secret
	URL    credentials.Secret
	Secret credentials.Secret // of the signature; empty: not signed. WeCom's robots have none
	Events []Class            // empty: all
}

// target is one whose address was read.
type target struct {
	kind   Kind
	name   string
	url    *url.URL
	secret credentials.Secret
	events []Class
}

func openTargets(given []Target) ([]*target, error) {
	var all []*target
	for _, g := range given {
		if slices.ContainsFunc(all, func(t *target) bool { return t.name == g.Name }) {
			return nil, fmt.Errorf("alert: target %s is there twice", g.Name)
		}
		t, err := g.open()
		if err != nil {
			return nil, fmt.Errorf("alert: target %s: %w", g.Name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// open reads the address. No error repeats any of it.
func (t Target) open() (*target, error) {
	u, err := url.Parse(strings.TrimSpace(t.URL.Reveal()))
	switch {
	case !slices.Contains([]Kind{JSON, WeCom, DingTalk, Feishu}, t.Kind):
		return nil, fmt.Errorf("%q is not a kind of target", t.Kind)
	case err != nil || u.Hostname() == "":
		return nil, errors.New("its address is not a full URL")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return nil, errors.New("its address must begin with https:// (http:// is for loopback only)")
	case u.User != nil || u.Fragment != "":
		return nil, errors.New("its address has a user, a password or a fragment in it")
	case t.Kind == WeCom && !t.Secret.IsZero():
		return nil, errors.New("robots of WeCom take no signature: leave the secret out")
	}
	return &target{kind: t.Kind, name: t.Name, url: u, secret: t.Secret, events: t.Events}, nil
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// minToken is the length from which a part of a path can be a key.
const minToken = 16

// secrets are the address and what in it could be a key: of WeCom and DingTalk
// that is in the query, of Feishu the end of the path.
func (t *target) secrets() []string {
	all := []string{t.secret.Reveal()}
	if t.url.RawQuery != "" {
		all = append(all, t.url.RequestURI(), t.url.RawQuery)
	}
	for _, values := range t.url.Query() {
		all = append(all, values...)
	}
	for part := range strings.SplitSeq(t.url.Path, "/") {
		if len(part) >= minToken {
			all = append(all, part)
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}
