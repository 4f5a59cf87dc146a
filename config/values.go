package config

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	maxPageLimit   = 200 // contract: the remote cuts a larger one
	maxServiceName = 128 // characters
	maxQuoted      = 60  // characters of a value that a message repeats
)

var (
	schemaName   = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,40}$`)
	resourceName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	listKeyName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	// plainName is what a message may repeat of a key that we do not know.
	plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,39}$`)
)

// text makes a setter of a parser that may also put a value into its normal form.
func text(field func(*Config) *string, parse func(string) (string, error)) func(*Config, string) (string, error) {
	return func(c *Config, s string) (string, error) {
		v, err := parse(s)
		if err != nil {
			return "", err
		}
		*field(c) = v
		return v, nil
	}
}

func boolean(field func(*Config) *bool) func(*Config, string) (string, error) {
	return func(c *Config, s string) (string, error) {
		if s != "true" && s != "false" {
			return "", wrong("write true or false", "%s is not a yes or no", quote(s))
		}
		*field(c) = s == "true"
		return s, nil
	}
}

func integer(field func(*Config) *int, low, high int) func(*Config, string) (string, error) {
	return func(c *Config, s string) (string, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < low || n > high {
			return "", wrong("", "%s is not a whole number from %d to %d", quote(s), low, high)
		}
		*field(c) = n
		return strconv.Itoa(n), nil
	}
}

func ratio(field func(*Config) *float64) func(*Config, string) (string, error) {
	return func(c *Config, s string) (string, error) {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f >= 0 && f <= 1) { // written so that NaN fails
			return "", wrong("0.3 is 30 percent", "%s is not a share from 0 to 1", quote(s))
		}
		*field(c) = f
		return strconv.FormatFloat(f, 'g', -1, 64), nil
	}
}

func duration(field func(*Config) *time.Duration, low, high time.Duration) func(*Config, string) (string, error) {
	return func(c *Config, s string) (string, error) {
		d, err := time.ParseDuration(s)
		if err != nil {
			return "", wrong("write a number with its unit, such as 30s or 2m", "%s is not a duration", quote(s))
		}
		if d < low || d > high {
			return "", wrong("", "%s is not between %s and %s", quote(s), low, high)
		}
		*field(c) = d
		return d.String(), nil
	}
}

func oneOf(allowed []string) func(string) (string, error) {
	return func(s string) (string, error) {
		if !slices.Contains(allowed, s) {
			return "", wrong("one of "+strings.Join(allowed, ", "), "%s is not known here", quote(s))
		}
		return s, nil
	}
}

// parseBaseURL never repeats the value: people paste addresses with secrets in them.
func parseBaseURL(s string) (string, error) {
	const example = "such as https://crm.example.com"
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Hostname() == "" || (u.Scheme != "https" && u.Scheme != "http"):
		return "", wrong(example, "is not a full address")
	case u.User != nil:
		return "", wrong("remove everything up to the @; the key goes to "+keyVariable, "has a user name or password in it")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(s, "#"):
		return "", wrong(example, "has a query or a fragment")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return "", wrong("use https; http is for loopback only", "would send the key unencrypted")
	}
	if !validPort(u.Port(), u.Port() == "") {
		return "", wrong(example, "has a port that does not exist")
	}
	base := strings.TrimRight(s, "/")
	if u.Path = strings.TrimRight(u.Path, "/"); u.Path == "/mcp" || strings.HasSuffix(u.Path, "/mcp") {
		return "", wrong("the program adds /mcp itself", "give the base, without /mcp")
	}
	return base, nil
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

func parseServiceName(s string) (string, error) {
	if n := len([]rune(s)); n == 0 || n > maxServiceName {
		return "", wrong("", "must have 1 to %d characters", maxServiceName)
	}
	if strings.TrimSpace(s) != s || strings.ContainsFunc(s, unicode.IsControl) {
		return "", wrong("", "must not begin or end with a space or hold control characters")
	}
	return s, nil
}

func parseSchemaName(s string) (string, error) {
	if !schemaName.MatchString(s) {
		return "", wrong("lower-case letters, digits and _, at most 41, not beginning with a digit", "%s is not a schema name", quote(s))
	}
	if strings.HasPrefix(s, "pg_") || s == "information_schema" {
		return "", wrong("choose another name", "%s belongs to PostgreSQL", quote(s))
	}
	if strings.HasSuffix(s, "_sync") {
		return "", wrong("choose another name", "%s is how bookkeeping schemas are called", quote(s))
	}
	return s, nil
}

func parseListen(s string) (string, error) {
	if s == "" {
		return s, nil
	}
	_, port, err := net.SplitHostPort(s)
	if err != nil || !validPort(port, false) {
		return "", wrong(`such as 127.0.0.1:9464, or "" for none`, "%s is not host:port", quote(s))
	}
	return s, nil
}

func validPort(port string, ok bool) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return ok || (err == nil && n > 0)
}

func setTimeZone(c *Config, s string) (string, error) {
	// "" and Local mean whatever the machine has; a mirror must not depend on it.
	if s == "" || s == "Local" {
		return "", wrong("such as Asia/Shanghai or UTC", "must name a time zone")
	}
	zone, err := time.LoadLocation(s)
	if err != nil {
		return "", wrong("such as Asia/Shanghai or UTC", "%s is not a time zone that this machine knows", quote(s))
	}
	c.TimeZone = zone
	return s, nil
}

// tellable says whether a message may repeat a value. An address or a password
// may have slipped into any place.
func tellable(s string) bool {
	return !looksSecret(s) && !strings.Contains(s, "://") && !strings.Contains(strings.ToLower(s), "password")
}

// quote repeats a value in a message, in full only when it is short.
func quote(s string) string {
	if !tellable(s) {
		return "the value"
	}
	if r := []rune(s); len(r) > maxQuoted {
		s = string(r[:maxQuoted]) + "…"
	}
	return strconv.Quote(s)
}
