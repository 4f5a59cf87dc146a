package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// Schema is the JSON Schema (draft 2020-12) of the file, for editors. What is
// required may come from the environment, so the schema requires nothing.
func Schema() ([]byte, error) {
	root := object("Configuration of xiaoqu-sync.")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "xiaoqu-sync"
	for _, s := range settings() {
		section, leaf := root, s.name
		for parent, name, ok := strings.Cut(leaf, "."); ok; parent, name, ok = strings.Cut(leaf, ".") {
			section, leaf = child(section, parent), name
		}
		properties(section)[leaf] = s.property()
	}
	properties(child(root, "alerts"))["targets"] = targetsSchema()
	properties(root)[resourcesName] = resourcesSchema()
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("config: schema: %w", err)
	}
	return append(b, '\n'), nil
}

func object(help string) map[string]any {
	return map[string]any{
		"type": "object", "description": help,
		"properties": map[string]any{}, "additionalProperties": false,
	}
}

func properties(o map[string]any) map[string]any {
	p, ok := o["properties"].(map[string]any)
	if !ok {
		p = map[string]any{}
		o["properties"] = p
	}
	return p
}

// child is a section of the file; one with nothing in it is null to YAML.
func child(root map[string]any, name string) map[string]any {
	if section, ok := properties(root)[name].(map[string]any); ok {
		return section
	}
	section := object("Settings of " + name + ".")
	section["type"] = []string{"object", "null"}
	properties(root)[name] = section
	return section
}

func (s setting) property() map[string]any {
	p := map[string]any{"description": s.help}
	maps.Copy(p, s.schema)
	switch s.kind {
	case kindBoolean:
		p["type"], p["default"] = "boolean", s.def == "true"
	case kindInteger:
		p["type"], p["default"] = "integer", number(s.def)
	case kindNumber:
		p["type"], p["default"] = "number", number(s.def)
	case kindDuration:
		p["type"], p["default"] = "string", s.def
		p["pattern"] = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	case kindText:
		p["type"] = "string"
		if !s.required {
			p["default"] = s.def
		}
	}
	return p
}

func number(s string) json.Number {
	if _, err := strconv.ParseFloat(s, 64); err != nil {
		return "0"
	}
	return json.Number(s)
}

func resourcesSchema() map[string]any {
	one := object("One table of the remote: users reads users.changes.list.")
	one["type"] = []string{"object", "null"}
	one["properties"] = map[string]any{
		"schedule": map[string]any{
			"type": "string", "default": defaultSchedule,
			"description": "Five cron fields, or @every with a duration.",
		},
		"list_key": map[string]any{
			"type": "string", "pattern": listKeyName.String(),
			"description": "Name of the list inside data, where an answer holds more than one.",
		},
		"columns": columnsSchema(),
		"masked":  maskedSchema(),
	}
	return map[string]any{
		"type": "object", "minProperties": 1,
		"description":          "What to mirror, by name. Naming any replaces the usual three.",
		"propertyNames":        map[string]any{"pattern": resourceName.String()},
		"additionalProperties": one,
	}
}

// targetsSchema has one closed form for each kind of receiver, since each takes
// other keys.
func targetsSchema() map[string]any {
	return map[string]any{
		"type": []string{"array", "null"}, "description": "Who is told when something is wrong.",
		"items": map[string]any{"oneOf": []any{
			targetSchema([]string{"json"}, true, true),
			targetSchema([]string{"wecom"}, false, false),
			targetSchema([]string{"dingtalk", "feishu"}, false, true),
		}},
	}
}

func targetSchema(kinds []string, plain, signed bool) map[string]any {
	one := object("A receiver.")
	variable := func(help string) map[string]any {
		return map[string]any{"type": "string", "pattern": variableName.String(), "description": help}
	}
	file := func(help string) map[string]any {
		return map[string]any{"type": "string", "minLength": 1, "not": map[string]any{"pattern": "://"}, "description": help}
	}
	p := properties(one)
	p["kind"] = map[string]any{"enum": kinds, "description": "Form of the messages."}
	p["url_env"], p["url_file"] = variable("Variable that holds the address."), file("File that holds the address.")
	p["events"] = map[string]any{
		"type": "array", "minItems": 1, "uniqueItems": true, "items": map[string]any{"enum": alertEvents()},
		"description": "What it hears of; all when left out.",
	}
	addresses := []any{map[string]any{"required": []string{"url_env"}}, map[string]any{"required": []string{"url_file"}}}
	if plain {
		p["url"] = map[string]any{"type": "string", "pattern": "^https?://[^?#@]+$", "description": "Address without anything secret in it."}
		addresses = append(addresses, map[string]any{"required": []string{"url"}})
	}
	if signed {
		p["secret_env"], p["secret_file"] = variable("Variable that holds the secret of the signature."), file("File that holds the secret of the signature.")
		one["not"] = map[string]any{"required": []string{"secret_env", "secret_file"}}
	}
	one["required"], one["oneOf"] = []string{"kind"}, addresses
	return one
}
