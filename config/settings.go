package config

import (
	"slices"
	"strings"
	"time"
)

// kind is what a setting is in the file and in the schema.
type kind int

const (
	kindText kind = iota
	kindDuration
	kindBoolean
	kindInteger
	kindNumber
)

// setting is one row of the table: all there is to know about one name.
type setting struct {
	name string // path in the file
	def  string // default, as text
	help string
	kind kind
	env  bool // has an environment variable
	// variableName is the variable's name where it is not made of the setting's.
	variableName string
	empty        bool // an empty environment variable is a value, not an absence
	required     bool
	secret       bool           // its value never appears in a message
	schema       map[string]any // further keywords of its JSON Schema
	// set stores a value and returns it as people may see it.
	set func(c *Config, text string) (shown string, err error)
}

func (s setting) variable() string {
	if s.variableName != "" {
		return s.variableName
	}
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(s.name, ".", "_"))
}

func (s setting) flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(s.name) }

// databaseURL is the one setting that every verb needs.
const databaseURL = "database.url"

func settings() []setting {
	return slices.Concat(connectionSettings(), credentialSettings(), vaultSettings(), behaviourSettings(), alertSettings(), agentSettings())
}

func connectionSettings() []setting {
	return []setting{
		{
			name: "base_url", env: true, required: true,
			help:   "Address of the Xiaoqu server, without /mcp. https, or http on loopback.",
			schema: map[string]any{"pattern": "^https?://"},
			set:    text(func(c *Config) *string { return &c.BaseURL }, parseBaseURL),
		},
		{
			name: "service_name", env: true, required: true,
			help:   "Name of this service, as agreed with the tenant.",
			schema: map[string]any{"minLength": 1, "maxLength": maxServiceName},
			set:    text(func(c *Config) *string { return &c.ServiceName }, parseServiceName),
		},
		{
			name: databaseURL, env: true, required: true, secret: true,
			help:   "PostgreSQL address: a URL or keyword=value pairs. Better in the environment, it holds a password.",
			schema: map[string]any{"minLength": 1},
			set:    setDatabaseURL,
		},
		{
			name: "database.schema", env: true, def: "xiaoqu",
			help:   "Schema that readers use; bookkeeping goes to the schema of that name with _sync added.",
			schema: map[string]any{"pattern": schemaName.String()},
			set:    text(func(c *Config) *string { return &c.Database.Schema }, parseSchemaName),
		},
		{
			name: "database.auto_migrate", kind: kindBoolean, def: "true",
			help: "Apply pending migrations before a sync.",
			set:  boolean(func(c *Config) *bool { return &c.Database.AutoMigrate }),
		},
	}
}

func behaviourSettings() []setting {
	return []setting{
		{
			name: "request_timeout", env: true, kind: kindDuration, def: "30s",
			help: "How long one call of the remote may take: 1s to 10m.",
			set:  duration(func(c *Config) *time.Duration { return &c.RequestTimeout }, time.Second, 10*time.Minute),
		},
		{
			name: "page_limit", kind: kindInteger, def: "200",
			help:   "Records to ask for in one page.",
			schema: map[string]any{"minimum": 1, "maximum": maxPageLimit},
			set:    integer(func(c *Config) *int { return &c.PageLimit }, 1, maxPageLimit),
		},
		{
			name: "time_zone", def: "Asia/Shanghai",
			help:   "Time zone of schedules and of times that come without one.",
			schema: map[string]any{"minLength": 1},
			set:    setTimeZone,
		},
		{
			name: "schedule_jitter", kind: kindDuration, def: "30s",
			help: "A run begins up to this much after its moment, and at most a tenth of the time to the next: 0s to 1h.",
			set:  duration(func(c *Config) *time.Duration { return &c.ScheduleJitter }, 0, time.Hour),
		},
		{
			name: "rebuild.max_delete_ratio", kind: kindNumber, def: "0.3",
			help:   "A rebuild that would delete a larger share of the live rows is held.",
			schema: map[string]any{"minimum": 0, "maximum": 1},
			set:    ratio(func(c *Config) *float64 { return &c.Rebuild.MaxDeleteRatio }),
		},
		{
			name: "http.listen", env: true, empty: true, def: "127.0.0.1:9464",
			help: "host:port where run serves health, metrics and the status page; empty for none.",
			set:  text(func(c *Config) *string { return &c.HTTP.Listen }, parseListen),
		},
		{
			name: "log.level", env: true, def: "auto",
			help:   "Least severe level that is logged; auto: info, on a terminal warn.",
			schema: map[string]any{"enum": logLevels()},
			set:    text(func(c *Config) *string { return &c.Log.Level }, oneOf(logLevels())),
		},
		{
			name: "log.format", env: true, def: "text",
			help:   "Form of the log on standard error.",
			schema: map[string]any{"enum": logFormats()},
			set:    text(func(c *Config) *string { return &c.Log.Format }, oneOf(logFormats())),
		},
	}
}

func logLevels() []string  { return []string{"auto", "debug", "info", "warn", "error"} }
func logFormats() []string { return []string{"text", "json"} }

// defaultResources are what the contract names (contract §5).
func defaultResources() []string { return []string{"users", "properties", "contracts"} }

// defaultSchedule is how often a resource is synced by the daemon.
const defaultSchedule = "@every 5m"
