package config

import (
	"slices"
	"time"
)

// Config is what the program runs with. Load made and checked every value.
type Config struct {
	BaseURL     string // https, or http on loopback; without a trailing slash (contract §1)
	ServiceName string // who we are when a token is asked for (contract §2)
	Database    Database
	Resources   map[string]Resource // by name; Names has the order
	Rebuild     Rebuild
	PageLimit   int            // records a page, 1 to 200
	TimeZone    *time.Location // for schedules and for times without a zone

	// ScheduleJitter is how long after its moment a scheduled run may begin.
	ScheduleJitter time.Duration
	RequestTimeout time.Duration // for one call of the remote
	Log            Log
	Credentials    Credentials
	HTTP           HTTP
	Alerts         Alerts
	Agents         Agents

	names    []string          // resources in the order they were given
	origins  map[string]string // setting name to where its value came from
	shown    map[string]string // setting name to the value as people may see it
	tried    map[string]bool   // settings that were given, well or badly
	warnings []Problem
}

// Resource is one mirrored table of the remote: users reads users.changes.list.
type Resource struct {
	Schedule string // five cron fields or @every; checked by Input.CheckSchedule
	ListKey  string // the list's name inside data, "" to find it by its shape
	Columns  []Column
	Masked   []string // paths of personal data that the masked view hides
}

// Database says where the mirror is.
type Database struct {
	URL         string // holds a password: never log or print it
	Schema      string
	AutoMigrate bool // apply pending migrations before a sync
	// VaultPath is where Vault holds the login, "" when URL has it; VaultField is
	// the field with the password.
	VaultPath, VaultField string
}

// Rebuild bounds what a rebuild may do.
type Rebuild struct {
	MaxDeleteRatio float64 // share of the live rows, 0 to 1, above which it is held
}

// Log says how to log to standard error.
type Log struct {
	Level  string // auto, debug, info, warn or error
	Format string // text or json
}

// HTTP says where health and metrics are served.
type HTTP struct {
	Listen string // host:port, "" for nowhere
}

// Names are the resources in the order in which they were given.
func (c *Config) Names() []string { return slices.Clone(c.names) }

// Warnings are remarks on what was given that do not stop the program, such as
// an environment variable of ours that nothing reads.
func (c *Config) Warnings() []Problem { return slices.Clone(c.warnings) }

// Input is everything a configuration is made of. All of it may be empty.
type Input struct {
	// Path of the YAML file, "" for none. It also names the file in messages.
	Path string
	// File is the file's content when the caller has it already; nil reads Path.
	File []byte
	// Env is the environment in the form of os.Environ.
	Env []string
	// Flags are the flags that were given, by name without dashes: base-url. The
	// name of a setting's flag is its own with dashes: database.url is database-url.
	Flags map[string]string
	// DatabaseOnly leaves out what only the remote needs: base_url and
	// service_name may then be missing.
	DatabaseOnly bool
	// CheckSchedule judges a schedule; nil takes any.
	CheckSchedule func(string) error
	// CheckColumn judges a typed column, CheckPath a path by itself; nil takes any.
	CheckColumn func(Column) error
	CheckPath   func(string) error
}

// Load reads and checks everything. The error is a [Problems] with every mistake;
// it then also holds the warnings, because they often explain one.
func Load(in Input) (*Config, error) {
	l := &loader{
		cfg: &Config{
			Resources: map[string]Resource{}, origins: map[string]string{},
			shown: map[string]string{}, tried: map[string]bool{},
		},
		settings: settings(), check: in.CheckSchedule, checkColumn: in.CheckColumn, checkPath: in.CheckPath,
	}
	l.defaults()
	whole := l.file(in.Path, in.File)
	l.environment(in.Env)
	l.flags(in.Flags)
	if whole {
		l.missing(in.Path != "" || in.File != nil, in.DatabaseOnly)
		l.together(in.DatabaseOnly)
	}
	if len(l.problems) > 0 {
		all := append(l.problems, l.cfg.warnings...)
		all.sort()
		return nil, all
	}
	return l.cfg, nil
}
