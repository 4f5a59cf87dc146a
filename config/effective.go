package config

import (
	"strconv"
	"strings"
)

// Setting is one value that is in force, for people and for `config show`.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`  // passwords show as [redacted]
	Origin string `json:"origin"` // default, FILE:LINE, environment VARIABLE, or flag --NAME
}

// Effective lists every setting with where its value comes from, in a fixed order.
func (c *Config) Effective() []Setting {
	var out []Setting
	for _, s := range settings() {
		if strings.HasPrefix(s.name, "agents.") && s.name != agentsDoors && len(c.Agents.Doors) == 0 && c.origins[s.name] == originDefault {
			continue // nobody has asked for doors
		}
		out = append(out, Setting{Name: s.name, Value: c.shown[s.name], Origin: c.origins[s.name]})
	}
	out = append(out, Setting{Name: targetsName, Value: c.Alerts.shown(), Origin: c.origins[targetsName]})
	out = append(out, Setting{Name: resourcesName, Value: strings.Join(c.names, ","), Origin: c.origins[resourcesName]})
	for _, name := range c.names {
		r := c.Resources[name]
		out = append(out, c.part(name, "schedule", r.Schedule), c.part(name, "list_key", r.ListKey))
		if len(r.Columns) > 0 {
			out = append(out, c.part(name, "columns", strconv.Itoa(len(r.Columns))+" columns"))
		}
		if len(r.Masked) > 0 {
			out = append(out, c.part(name, "masked", strings.Join(r.Masked, ",")))
		}
	}
	return out
}

// shown are the targets by name, with what each one hears of.
func (a Alerts) shown() string {
	names := make([]string, len(a.Targets))
	for i, t := range a.Targets {
		names[i] = t.Name()
		if len(t.Events) > 0 {
			names[i] += " (" + strings.Join(t.Events, ", ") + ")"
		}
	}
	return strings.Join(names, "; ")
}

func (c *Config) part(resource, name, value string) Setting {
	field := join(join(resourcesName, resource), name)
	origin, ok := c.origins[field]
	if !ok {
		origin = originDefault
	}
	return Setting{Name: field, Value: value, Origin: origin}
}
