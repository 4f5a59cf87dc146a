package config_test

import (
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
)

// withFlag sets one value on top of what loads.
func withFlag(name, value string) config.Input {
	return config.Input{Env: environment(), Flags: map[string]string{name: value}}
}

func TestValuesThatAreTaken(t *testing.T) {
	for _, tt := range []struct{ flag, value, want string }{
		{"base-url", "https://crm.example.com", "https://crm.example.com"},
		{"base-url", "https://crm.example.com:8443/open///", "https://crm.example.com:8443/open"},
		{"base-url", "http://localhost:8080", "http://localhost:8080"},
		{"base-url", "http://127.9.9.9", "http://127.9.9.9"},
		{"base-url", "http://[::1]:80", "http://[::1]:80"},
		{"base-url", "https://crm.example.com/notmcp", "https://crm.example.com/notmcp"},
		{"service-name", "客户系统", "客户系统"},
		{"request-timeout", "1s", "1s"},
		{"request-timeout", "600s", "10m0s"},
		{"page-limit", "1", "1"},
		{"rebuild-max-delete-ratio", "0", "0"},
		{"rebuild-max-delete-ratio", "1", "1"},
		{"time-zone", "UTC", "UTC"},
		{"http-listen", ":9464", ":9464"},
		{"http-listen", "[::1]:9464", "[::1]:9464"},
		{"database-schema", "_x9", "_x9"},
		{"database-auto-migrate", "false", "false"},
	} {
		t.Run(tt.flag+" "+tt.value, func(t *testing.T) {
			for _, s := range load(t, withFlag(tt.flag, tt.value)).Effective() {
				if s.Origin == "flag --"+tt.flag && s.Value == tt.want {
					return
				}
			}
			t.Errorf("%s does not show as %q", tt.flag, tt.want)
		})
	}
}

type refusal struct{ flag, value, want string }

func refusals() []refusal {
	return []refusal{
		{"base-url", "crm.example.com", "not a full address"},
		{"base-url", "ftp://crm.example.com", "not a full address"},
		{"base-url", "https://", "not a full address"},
		{"base-url", "https://crm example.com", "not a full address"},
		{"base-url", "http://crm.example.com", "unencrypted"},
		{"base-url", "http://127.0.0.1.example.com", "unencrypted"},
		{"base-url", "https://u:pw@crm.example.com", "user name or password"},
		{"base-url", "https://crm.example.com?a=1", "query"},
		{"base-url", "https://crm.example.com?", "query"},
		{"base-url", "https://crm.example.com#", "fragment"},
		{"base-url", "https://crm.example.com:0", "port"},
		{"base-url", "https://crm.example.com:65536", "port"},
		{"base-url", "https://crm.example.com/mcp", "without /mcp"},
		{"base-url", "https://crm.example.com/open/mcp/", "without /mcp"},
		{"service-name", "", "1 to 128"},
		{"service-name", strings.Repeat("名", 129), "1 to 128"},
		{"service-name", "a\nb", "control characters"},
		{"service-name", " a", "space"},
		{"request-timeout", "999ms", "between"},
		{"request-timeout", "10m1s", "between"},
		{"request-timeout", "30", "not a duration"},
		{"page-limit", "0", "1 to 200"},
		{"page-limit", "201", "1 to 200"},
		{"page-limit", "1e2", "1 to 200"},
		{"rebuild-max-delete-ratio", "1.01", "0 to 1"},
		{"rebuild-max-delete-ratio", "-0.1", "0 to 1"},
		{"rebuild-max-delete-ratio", "NaN", "0 to 1"},
		{"time-zone", "", "must name"},
		{"time-zone", "Local", "must name"},
		{"time-zone", "Mars/Olympus", "not a time zone"},
		{"time-zone", "../etc/passwd", "not a time zone"},
		{"http-listen", "9464", "host:port"},
		{"http-listen", "a:http", "host:port"},
		{"http-listen", "a:0", "host:port"},
		{"database-schema", "Xiaoqu", "not a schema name"},
		{"database-schema", "a-b", "not a schema name"},
		{"database-schema", strings.Repeat("a", 42), "not a schema name"},
		{"database-schema", "pg_x", "belongs to PostgreSQL"},
		{"database-schema", "information_schema", "belongs to PostgreSQL"},
		{"database-auto-migrate", "yes", "yes or no"},
		{"log-level", "trace", "not known"},
		{"log-format", "", "not known"},
		{"credentials-source", "keychain", "is not known here"},
		{"credentials-vault-mount", "a b", "not a path in Vault"},
		{"credentials-vault-path", "a/../b", "not a path in Vault"},
		{"credentials-vault-path", "a//b", "not a path in Vault"},
		{"credentials-vault-field", "", "not a field"},
		{"credentials-vault-auth", "ldap", "is not known here"},
		{"credentials-vault-role-id", "a\nb", "control characters"},
		{"credentials-vault-wait", "0s", "between"},
		{"resources", "", "names no resource"},
		{"resources", "users,freshness", "reserved"},
		{"resources", "users_live", "reserved"},
		{"resources", "users_all", "reserved"},
		{"resources", "9users", "not a resource name"},
		{"resources", "users,users", "twice"},
		{"service-name", "xqok-abc", "service key or a token"},
		{"resources", "XQAK-abc", "service key or a token"},
		{"open-key", "x", "not a setting"},
	}
}

func TestValuesThatAreRefused(t *testing.T) {
	for _, tt := range refusals() {
		t.Run(tt.flag+" "+tt.value, func(t *testing.T) {
			ps := problems(t, withFlag(tt.flag, tt.value))
			if len(ps) == 0 {
				t.Fatal("taken")
			}
			p := ps[0]
			if p.Source != "flag" || p.Field != "--"+tt.flag || !strings.Contains(p.Message, tt.want) {
				t.Errorf("got %+v, want %q in it", p, tt.want)
			}
			for _, secret := range []string{"pw", "abc"} {
				if strings.Contains(p.String(), secret) {
					t.Errorf("%q repeats %q", p, secret)
				}
			}
		})
	}
}

func TestDatabaseAddressesShowWithoutTheirSecrets(t *testing.T) {
	for in, want := range map[string]string{
		"postgres://db/crm":                   "postgres://db/crm",
		"postgresql://app:s3cr3t@db:5432/crm": "postgresql://app:[redacted]@db:5432/crm",
		"postgres://app:s3cr%2F3t@[::1]/crm?sslmode=require&password=s3cr3t": "postgres://app:[redacted]@[::1]/crm?sslmode=require&password=[redacted]",
		"postgres://h1:1,h2:2/crm?target_session_attrs=any":                  "postgres://h1:1,h2:2/crm?target_session_attrs=any",
		"postgres:///crm?host=/run/pg&sslpassword=s3cr3t":                    "postgres:///crm?host=/run/pg&sslpassword=[redacted]",
		"postgres://db/crm?PASSWORD=s3cr3t&s3%20cr3t":                        "postgres://db/crm?PASSWORD=[redacted]&[redacted]=[redacted]",
		"postgres://app:s3:cr3t@db/crm":                                      "postgres://app:[redacted]@db/crm",
		"host=db user=app password=s3cr3t dbname=crm":                        "host=db user=app password=[redacted] dbname=crm",
		`host = db  password = 's3 cr\'3t' dbname=crm`:                       "host=db password=[redacted] dbname=crm",
		`password='s3cr3t://x' host=db`:                                      "password=[redacted] host=db",
		`password=s3\ cr3t host=db`:                                          "password=[redacted] host=db",
		"passfile=/home/s3cr3t host='my db'":                                 "passfile=[redacted] host='my db'",
	} {
		t.Run(want, func(t *testing.T) {
			c := load(t, config.Input{Env: append(environment(), "XIAOQU_DATABASE_URL="+in)})
			if c.Database.URL != in {
				t.Errorf("the address was changed: %s", c.Database.URL)
			}
			for _, s := range c.Effective() {
				if s.Name == "database.url" && s.Value != want {
					t.Errorf("shows %s", s.Value)
				}
				if strings.Contains(s.Value, "cr3t") {
					t.Errorf("%s shows a secret: %s", s.Name, s.Value)
				}
			}
		})
	}
}

func TestDatabaseAddressesThatAreRefusedAreNotRepeated(t *testing.T) {
	for _, in := range []string{
		"s3cr3t", "mysql://app:s3cr3t@db/crm", "postgres://app:s3cr3t/x@db/crm", "postgres://app:1/s3cr3t@db/crm",
		"postgres://app:s3cr3t#x@db/crm", "postgres://app:1?s3cr3t@db/crm", "postgres://app:%zzs3cr3t@db/crm",
		"host=db password='s3cr3t", "host=db password=my s3cr3t", "host=db s3cr3t", "my s3cr3t=x y", "postgres://app:s3cr3t@db:port/crm",
	} {
		ps := problems(t, config.Input{Env: append(environment(), "XIAOQU_DATABASE_URL="+in)})
		if len(ps) != 1 || ps[0].Field != "XIAOQU_DATABASE_URL" {
			t.Errorf("%s: got %v", in, ps)
			continue
		}
		if strings.Contains(ps.Error(), "cr3t") {
			t.Errorf("repeated: %s", ps)
		}
	}
}

func TestTheServiceKeyIsNeverTakenFromTheFile(t *testing.T) {
	for name, extra := range map[string]string{
		"open_key":            "open_key: s3cr3t",
		"openKey":             "openKey: s3cr3t",
		"key":                 "key: s3cr3t",
		"service-key":         "service-key: s3cr3t",
		"below credentials":   "credentials: {key: s3cr3t}",
		"below a resource":    "resources: {users: {key: s3cr3t}}",
		"any value":           "time_zone: xqok-s3cr3t",
		"a token":             "log: {level: xqak-s3cr3t}",
		"in a list":           "anything: [[xqok-s3cr3t]]",
		"as a key":            "xqok-s3cr3t: 1",
		"inside another text": "time_zone: 'Bearer XQOK-s3cr3t'",
	} {
		t.Run(name, func(t *testing.T) {
			ps := problems(t, config.Input{Path: "c.yaml", File: []byte(minimal + extra + "\n")})
			found := false
			for _, p := range ps {
				found = found || strings.Contains(p.Message, "the service key is never taken from the file") &&
					strings.Contains(p.Hint, "XIAOQU_OPEN_KEY") && p.Line == 5
			}
			if !found || strings.Contains(ps.Error(), "s3cr3t") {
				t.Errorf("got %v", ps)
			}
		})
	}
}

func TestASecretInAWrongPlaceIsNotRepeated(t *testing.T) {
	for _, extra := range []string{
		"database: postgres://app:s3cr3t@db/crm", "log: {level: 'postgres://app:s3cr3t@db/crm'}",
		"postgres://app:s3cr3t@db/crm: x", "http: {listen: 'password=s3cr3t'}", "database: {url: [s3cr3t]}",
		"database: {url: !!int s3cr3t}", "resources: {'password=s3cr3t': {}}", "database: {s3cr3t with spaces: 1}",
		"resources: {users: {schedule: 'postgres://app:s3cr3t@db'}}",
	} {
		ps := problems(t, config.Input{
			File:          []byte(extra),
			CheckSchedule: func(s string) error { return &mirrorError{s} },
		})
		if len(ps) == 0 || strings.Contains(ps.Error(), "s3cr3t") {
			t.Errorf("%s: got %v", extra, ps)
		}
	}
}

// mirrorError repeats what it was given, as parsers like to do.
type mirrorError struct{ s string }

func (e *mirrorError) Error() string { return "bad: " + e.s }
