package config

import (
	"strconv"

	"go.yaml.in/yaml/v4"
)

// resources replaces the set by what the file names, in the file's order.
func (w *walker) resources(n *yaml.Node) {
	if n.Kind == yaml.SequenceNode {
		w.add(w.place(n, resourcesName), "want keys with values, found a list", "write each name as a key of its own: users: {}")
		return
	}
	var names []string
	entries := w.entries(n, resourcesName)
	for _, e := range entries {
		if err := checkResourceName(e.name); err != nil {
			w.addError(w.place(e.key, e.field), err)
			continue
		}
		names = append(names, e.name)
	}
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 || n.ShortTag() == "!!null" {
		w.add(w.place(n, resourcesName), "names no resource", "remove it to mirror the usual three")
	}
	if len(names) == 0 {
		return
	}
	w.setNames(names, w.place(n, "").origin)
	for _, e := range entries {
		if _, ok := w.cfg.Resources[e.name]; ok {
			w.resource(e)
		}
	}
}

// resource reads what the file says about one resource.
func (w *walker) resource(of entry) {
	r := w.cfg.Resources[of.name]
	for _, e := range w.entries(of.value, of.field) {
		switch e.name {
		case "schedule":
			w.part(e, &r.Schedule, w.checkSchedule)
		case "list_key":
			w.part(e, &r.ListKey, checkListKey)
		case "columns":
			r.Columns = w.columns(e)
		case "masked":
			r.Masked = w.masked(e)
		default:
			w.unknown(e, []string{"schedule", "list_key", "columns", "masked"})
		}
	}
	w.cfg.Resources[of.name] = r
}

// part sets one text of a resource.
func (w *walker) part(e entry, to *string, check func(string) error) {
	value, ok := w.value(e, kindText, false)
	if !ok {
		return
	}
	at := w.place(e.value, e.field)
	if err := check(value); err != nil {
		w.addError(at, err)
		return
	}
	*to = value
	w.cfg.origins[e.field] = at.origin
}

func (w *walker) checkSchedule(s string) error {
	if w.check == nil {
		return nil
	}
	if err := w.check(s); err != nil {
		const hint = "five cron fields such as 0 * * * *, or @every 5m"
		if !tellable(s) {
			return wrong(hint, "is not a schedule") // the reason might repeat it
		}
		return wrong(hint, "%s is not a schedule: %.200s", quote(s), err.Error())
	}
	return nil
}

func checkListKey(s string) error {
	if !listKeyName.MatchString(s) {
		return wrong("the name of the list inside data, such as records", "%s is not a name", quote(s))
	}
	return nil
}

// describe says what a node is, never what is in it.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys with values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	case yaml.ScalarNode:
	default:
		return "nothing"
	}
	switch n.ShortTag() {
	case "!!str":
		return "text"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!timestamp":
		return "a date"
	case "!!null":
		return "nothing"
	}
	return "a value with a tag"
}

// showKey is a key of the file as messages repeat it: only when it is plainly a
// name, because a value may have slipped into a key's place.
func showKey(key *yaml.Node) string {
	if plainName.MatchString(key.Value) && !looksSecret(key.Value) {
		return key.Value
	}
	return "?"
}

func prefix(path string) string {
	if path == "" {
		return ""
	}
	return path + "."
}

func join(path, name string) string { return prefix(path) + name }

func itoa(n int) string { return strconv.Itoa(n) }
