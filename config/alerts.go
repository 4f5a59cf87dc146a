package config

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v4"
)

const targetsName = "alerts.targets"

// variableName is a name in the environment. A pasted address or secret is none.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// Alerts says who is told when something is wrong, and when.
type Alerts struct {
	StaleAfter  time.Duration // how old data may get
	RemindAfter time.Duration // how long trouble goes on before it is told again
	Language    string        // zh or en
	Name        string        // of this mirror, in messages; "" for service_name
	Targets     []AlertTarget // none: nobody is told
}

// AlertTarget is one receiver. Of its address exactly one way is set, of its
// secret at most one; the values themselves are not the file's to hold.
type AlertTarget struct {
	Kind       string   // json, wecom, dingtalk or feishu
	URL        string   // of kind json only, without anything secret in it
	URLEnv     string   // variable of the environment that holds the address
	URLFile    string   // file that does
	SecretEnv  string   // variable that holds the signature's secret
	SecretFile string   // file that does
	Events     []string // classes of events; empty for all

	at place
}

// Name tells targets apart, and is the same as long as the address comes from the
// same place. It holds no secret.
func (t AlertTarget) Name() string {
	switch {
	case t.URLEnv != "":
		return t.Kind + " env " + t.URLEnv
	case t.URLFile != "":
		return t.Kind + " file " + t.URLFile
	default:
		return t.Kind + " " + t.URL
	}
}

// Problem is what a later step finds wrong with a part of the target, such as
// url_env; it has the target's place in the file.
func (t AlertTarget) Problem(part, message, hint string) Problem {
	return Problem{
		Source: t.at.source, Line: t.at.line, Column: t.at.column, Field: join(t.at.field, part), Message: message, Hint: hint,
	}
}

func alertKinds() []string { return []string{"json", "wecom", "dingtalk", "feishu"} }

func alertEvents() []string {
	return []string{"halt", "credentials", "held", "stale", "drift", "recovered"}
}

func alertSettings() []setting {
	return []setting{
		{
			name: "alerts.stale_after", kind: kindDuration, def: "2h",
			help: "How old the data of a resource may get before the targets are told: 1m to 720h.",
			set:  duration(func(c *Config) *time.Duration { return &c.Alerts.StaleAfter }, time.Minute, 720*time.Hour),
		},
		{
			name: "alerts.remind_after", kind: kindDuration, def: "4h",
			help: "How long trouble goes on before the targets are told again: 5m to 168h.",
			set:  duration(func(c *Config) *time.Duration { return &c.Alerts.RemindAfter }, 5*time.Minute, 168*time.Hour),
		},
		{
			name: "alerts.language", def: "zh",
			help:   "Language of the messages.",
			schema: map[string]any{"enum": []string{"zh", "en"}},
			set:    text(func(c *Config) *string { return &c.Alerts.Language }, oneOf([]string{"zh", "en"})),
		},
		{
			name:   "alerts.name",
			help:   "What messages call this mirror; empty for service_name.",
			schema: map[string]any{"maxLength": maxAlertName},
			set:    text(func(c *Config) *string { return &c.Alerts.Name }, parseAlertName),
		},
	}
}

const maxAlertName = 60 // characters

func parseAlertName(s string) (string, error) {
	if len([]rune(s)) > maxAlertName || strings.TrimSpace(s) != s || strings.ContainsFunc(s, unicode.IsControl) {
		return "", wrong("", "must have at most %d characters, no space at its ends and no control character", maxAlertName)
	}
	return s, nil
}

// alertTargets reads the list of receivers.
func (w *walker) alertTargets(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return
	}
	at := w.place(n, targetsName)
	if n.Kind != yaml.SequenceNode {
		w.add(at, "want a list, found "+describe(n), "begin each receiver with - kind: …")
		return
	}
	var names []string
	for i, one := range n.Content {
		field := join(targetsName, strconv.Itoa(i))
		before := len(w.problems)
		t := w.alertTarget(one, field)
		if len(w.problems) > before {
			continue
		}
		if slices.Contains(names, t.Name()) {
			w.add(w.place(one, field), "is the same receiver as an earlier one", "name its events in one place")
			continue
		}
		names = append(names, t.Name())
		w.cfg.Alerts.Targets = append(w.cfg.Alerts.Targets, t)
	}
	w.cfg.origins[targetsName] = at.origin
}

func (w *walker) alertTarget(n *yaml.Node, field string) AlertTarget {
	t := AlertTarget{at: w.place(n, field)}
	parts := map[string]struct {
		to    *string
		check func(string) error
	}{
		"kind":        {&t.Kind, checkAlertKind},
		"url":         {&t.URL, checkPlainURL},
		"url_env":     {&t.URLEnv, checkVariable},
		"url_file":    {&t.URLFile, checkFile},
		"secret_env":  {&t.SecretEnv, checkVariable},
		"secret_file": {&t.SecretFile, checkFile},
	}
	known := []string{"kind", "url", "url_env", "url_file", "secret_env", "secret_file", "events"}
	for _, e := range w.entries(n, field) {
		switch p, ok := parts[e.name]; {
		case ok:
			w.part(e, p.to, p.check)
		case e.name == "events":
			t.Events = w.alertClasses(e)
		case e.name == "secret":
			w.add(w.place(e.key, e.field), "the secret is never taken from the file", "name a variable in secret_env, or a file in secret_file")
		default:
			w.unknown(e, known)
		}
	}
	w.together(t, n)
	return t
}

// together checks what the parts of a target are to each other.
func (w *walker) together(t AlertTarget, n *yaml.Node) {
	given := map[string]bool{}
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			given[n.Content[i].Value] = true
		}
	}
	addresses := 0
	for _, name := range []string{"url", "url_env", "url_file"} {
		if given[name] {
			addresses++
		}
	}
	switch {
	case n.Kind != yaml.MappingNode && n.ShortTag() != "!!null": // told already
	case !given["kind"]:
		w.add(t.at, "has no kind", "one of "+strings.Join(alertKinds(), ", "))
	case addresses != 1:
		w.add(t.at, "wants one address", "give exactly one of url_env, url_file and, for kind json, url")
	case given["url"] && t.Kind != "json" && t.Kind != "":
		w.add(t.at, "has its address in the file, and a robot's address holds its key", "name a variable in url_env, or a file in url_file")
	case given["secret_env"] && given["secret_file"]:
		w.add(t.at, "has two secrets", "keep secret_env or secret_file")
	case t.Kind == "wecom" && (given["secret_env"] || given["secret_file"]):
		w.add(t.at, "has a secret, and robots of WeCom take no signature", "remove it")
	}
}

// alertClasses reads a list of classes of events.
func (w *walker) alertClasses(e entry) []string {
	if e.value.Kind != yaml.SequenceNode || len(e.value.Content) == 0 {
		w.add(w.place(e.value, e.field), "want a list of events", "such as [halt, credentials, recovered]; leave it out for all")
		return nil
	}
	var events []string
	for i, n := range e.value.Content {
		one := entry{key: n, value: n, field: join(e.field, strconv.Itoa(i))}
		event, ok := w.value(one, kindText, false)
		switch {
		case !ok:
		case !slices.Contains(alertEvents(), event):
			w.add(w.place(n, one.field), quote(event)+" is not known here", "one of "+strings.Join(alertEvents(), ", "))
		case slices.Contains(events, event):
			w.add(w.place(n, one.field), quote(event)+" stands there twice", "")
		default:
			events = append(events, event)
		}
	}
	return events
}

func checkAlertKind(s string) error {
	_, err := oneOf(alertKinds())(s)
	return err
}

// checkPlainURL never repeats the value: people paste addresses with keys in them.
func checkPlainURL(s string) error {
	const hint = "name a variable in url_env, or a file in url_file"
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return wrong("such as https://alerts.example.com/xiaoqu", "is not a full address")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return wrong(hint, "has a user, a query or a fragment, which may hold a key")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return wrong("use https; http is for loopback only", "would tell everybody on the way")
	}
	return nil
}

// checkVariable and checkFile never repeat the value either: it may be the address
// or the secret itself.
func checkVariable(s string) error {
	if !variableName.MatchString(s) {
		return wrong("such as ALERT_URL; the value goes there", "is not the name of a variable")
	}
	return nil
}

func checkFile(s string) error {
	if strings.TrimSpace(s) == "" || strings.ContainsFunc(s, unicode.IsControl) || strings.Contains(s, "://") {
		return wrong("such as /run/secrets/alert-url; the value goes there", "is not the name of a file")
	}
	return nil
}
