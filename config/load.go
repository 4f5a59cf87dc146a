package config

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
)

const (
	variablePrefix    = "XIAOQU_"
	keyVariable       = "XIAOQU_OPEN_KEY"
	resourcesName     = "resources"
	resourcesVariable = "XIAOQU_RESOURCES"
	sourceEnvironment = "environment"
	sourceFlag        = "flag"
	originDefault     = "default"
)

// loader fills one Config, source by source, and gathers what is wrong.
type loader struct {
	cfg      *Config
	settings []setting
	check    func(string) error

	checkColumn func(Column) error
	checkPath   func(string) error
	problems    Problems
}

// place is where a value stands.
type place struct {
	source       string
	line, column int
	field        string // how the place calls it
	origin       string // as Effective says it
}

func (l *loader) add(at place, message, hint string) {
	l.problems = append(l.problems, Problem{
		Source: at.source, Line: at.line, Column: at.column, Field: at.field, Message: message, Hint: hint,
	})
}

func (l *loader) addError(at place, err error) {
	var m *mistake
	if errors.As(err, &m) {
		l.add(at, m.message, m.hint)
		return
	}
	l.add(at, err.Error(), "")
}

// refuseKey reports a service key or token by name, never by value.
func (l *loader) refuseKey(at place, value string) bool {
	if !looksSecret(value) {
		return false
	}
	l.add(at, "holds a service key or a token", "set "+keyVariable+"; nothing else takes a key")
	return true
}

// looksSecret knows the key's and the token's shape (contract §2).
func looksSecret(s string) bool {
	s = strings.ToLower(s)
	return strings.Contains(s, "xqok-") || strings.Contains(s, "xqak-")
}

func (l *loader) apply(s setting, value string, at place) {
	l.cfg.tried[s.name] = true
	if l.refuseKey(at, value) {
		return
	}
	shown, err := s.set(l.cfg, value)
	if err != nil {
		l.addError(at, err)
		return
	}
	l.cfg.origins[s.name], l.cfg.shown[s.name] = at.origin, shown
}

func (l *loader) defaults() {
	for _, s := range l.settings {
		if s.required {
			continue
		}
		l.apply(s, s.def, place{field: s.name, origin: originDefault})
		l.cfg.tried[s.name] = false
	}
	l.setNames(defaultResources(), originDefault)
	l.cfg.origins[targetsName] = originDefault
}

// setNames replaces the set of resources and keeps what is known of each.
func (l *loader) setNames(names []string, origin string) {
	kept := make(map[string]Resource, len(names))
	for _, name := range names {
		r, ok := l.cfg.Resources[name]
		if !ok {
			r.Schedule = defaultSchedule
		}
		kept[name] = r
	}
	l.cfg.names, l.cfg.Resources = names, kept
	l.cfg.origins[resourcesName] = origin
}

func (l *loader) environment(env []string) {
	vars := map[string]string{}
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(name, variablePrefix) {
			vars[name] = strings.TrimSpace(value)
		}
	}
	known := []string{resourcesVariable}
	for _, s := range l.settings {
		if !s.env {
			continue
		}
		known = append(known, s.variable())
		// An empty variable is one that is not set, except where empty says something.
		if value, ok := vars[s.variable()]; ok && (value != "" || s.empty) {
			l.apply(s, value, variablePlace(s.variable()))
		}
	}
	if value := vars[resourcesVariable]; value != "" {
		l.list(value, variablePlace(resourcesVariable))
	}
	l.warnUnknown(vars, known)
}

func variablePlace(name string) place {
	return place{source: sourceEnvironment, field: name, origin: sourceEnvironment + " " + name}
}

// warnUnknown remarks on variables of ours that nothing reads: likely misspelt.
func (l *loader) warnUnknown(vars map[string]string, known []string) {
	// Secrets are read where they are used, the others by the tests' servers.
	known = append(known, keyVariable, SecretIDVariable, XiaoyaKeyVariable, XiaoyaCredentialVariable, RelaySecretVariable, RelayPreviousVariable, "XIAOQU_TEST_DATABASE_URL", "XIAOQU_TEST_VAULT", "XIAOQU_PG_BINDIR")
	for _, t := range l.cfg.Alerts.Targets { // read by cmd
		known = append(known, t.URLEnv, t.SecretEnv)
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if slices.Contains(known, name) {
			continue
		}
		p := Problem{Source: sourceEnvironment, Field: name, Message: "is not read by anything", Warning: true}
		if looksSecret(name) {
			p.Field = ""
		}
		if near := nearest(name, known); near != "" {
			p.Hint = "did you mean " + near + "?"
		}
		l.cfg.warnings = append(l.cfg.warnings, p)
	}
}

func (l *loader) flags(flags map[string]string) {
	byFlag := map[string]setting{}
	for _, s := range l.settings {
		byFlag[s.flag()] = s
	}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		at := place{source: sourceFlag, field: "--" + name, origin: sourceFlag + " --" + name}
		switch s, ok := byFlag[name]; {
		case ok:
			l.apply(s, flags[name], at)
		case name == resourcesName:
			l.list(flags[name], at)
		default:
			l.add(at, "is not a setting", "")
		}
	}
}

// list takes resources by name, between commas.
func (l *loader) list(value string, at place) {
	if l.refuseKey(at, value) {
		return
	}
	var names []string
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if err := checkResourceName(name); err != nil {
			l.addError(at, err)
			continue
		}
		if slices.Contains(names, name) {
			l.add(at, quote(name)+" stands there twice", "")
			continue
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		l.add(at, "names no resource", "such as "+strings.Join(defaultResources(), ","))
		return
	}
	l.setNames(names, at.origin)
}

// checkResourceName keeps clear of what readers find beside the tables.
func checkResourceName(name string) error {
	if !resourceName.MatchString(name) {
		return wrong("lower-case letters, digits and _, at most 40, beginning with a letter", "%s is not a resource name", quote(name))
	}
	if name == "freshness" || strings.HasSuffix(name, "_live") || strings.HasSuffix(name, "_all") {
		return wrong("choose the name of a resource of the remote", "%s is reserved for a view", quote(name))
	}
	return nil
}

// missing reports what has no value anywhere, each with every way to give it.
func (l *loader) missing(haveFile, databaseOnly bool) {
	for _, s := range l.settings {
		if !s.required || l.cfg.tried[s.name] || databaseOnly && s.name != databaseURL {
			continue
		}
		hint := "set " + s.variable() + ", or " + s.name + " in the file"
		if !haveFile {
			hint += " given by --config"
		}
		l.add(place{field: s.name}, "is missing", hint)
	}
}

// nearest is the known name that is a few letters away, "" when none is.
func nearest(name string, known []string) string {
	if len(name) > maxQuoted {
		return ""
	}
	best, far := "", 1+max(1, len(name)/4)
	for _, k := range known {
		if d := distance(name, k); d < far || (d == far && best != "" && cmp.Less(k, best)) {
			best, far = k, d
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
