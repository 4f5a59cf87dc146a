package config

import (
	"net/url"
	"slices"
	"strings"
)

const redacted = "[redacted]"

// harmless are the connection parameters whose values people may see; every
// other one might be a secret.
func harmless(name string) bool {
	return slices.Contains([]string{
		"host", "hostaddr", "port", "user", "dbname", "sslmode", "sslrootcert", "application_name",
		"connect_timeout", "target_session_attrs", "channel_binding", "search_path",
	}, name) || strings.HasPrefix(name, "pool_")
}

// setDatabaseURL looks at the form only; whether it connects is not our business.
// It never repeats any part of a value that it refuses.
func setDatabaseURL(c *Config, s string) (string, error) {
	var shown string
	var err error
	switch scheme, _, isURL := strings.Cut(s, "://"); {
	case isURL && !strings.ContainsAny(scheme, " ='"):
		shown, err = showURL(s)
	case strings.Contains(s, "="):
		shown, err = showPairs(s)
	default:
		err = wrong("such as postgres://user@host/database or host=… dbname=…", "is not a PostgreSQL address")
	}
	if err != nil {
		return "", err
	}
	c.Database.URL = s
	return shown, nil
}

// showURL is the address without its secrets.
func showURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil {
		return "", wrong("percent-encode special characters in user and password", "is not a URL that can be read")
	}
	if u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "", wrong("it begins with postgres://", "is not a PostgreSQL address")
	}
	// An unencoded / ? or # inside a password ends the host early and would leave
	// the rest of it where it is shown.
	if strings.Contains(s, "#") || strings.Contains(u.Path+u.RawQuery, "@") {
		return "", wrong("percent-encode special characters in user and password: / is %2F, ? is %3F, # is %23, @ is %40", "has a special character in a wrong place")
	}
	var b strings.Builder
	b.WriteString(u.Scheme + "://")
	if u.User != nil {
		b.WriteString(url.User(u.User.Username()).String())
		if _, ok := u.User.Password(); ok {
			b.WriteString(":" + redacted)
		}
		b.WriteString("@")
	}
	b.WriteString(u.Host + u.EscapedPath())
	sep := "?"
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		if pair == "" {
			continue
		}
		if name, _, _ := strings.Cut(pair, "="); !harmless(name) {
			pair = showName(name) + "=" + redacted
		}
		b.WriteString(sep + pair)
		sep = "&"
	}
	return b.String(), nil
}

// showPairs is the keyword form without its secrets: host=h password='p w'.
func showPairs(s string) (string, error) {
	var out []string
	for rest := strings.TrimSpace(s); rest != ""; {
		name, after, ok := strings.Cut(rest, "=")
		name = strings.TrimSpace(name)
		if !ok || !plainName.MatchString(name) {
			return "", wrong("such as host=… dbname=…; quote values with spaces: password='…'", "is not a list of keyword=value pairs")
		}
		value, left, ok := cutValue(strings.TrimLeft(after, " \t\r\n"))
		if !ok {
			return "", wrong("", "has a quote that is not closed")
		}
		if !harmless(name) {
			value = redacted
		}
		out = append(out, name+"="+value)
		rest = strings.TrimSpace(left)
	}
	return strings.Join(out, " "), nil
}

// cutValue takes one value, quoted or not, off the front, as libpq would. The
// value keeps its quotes: it is for people to see.
func cutValue(s string) (value, rest string, ok bool) {
	quoted := strings.HasPrefix(s, "'")
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case quoted && c == '\'' && i > 0:
			return s[:i+1], s[i+1:], true
		case !quoted && strings.IndexByte(" \t\r\n", c) >= 0:
			return s[:i], s[i:], true
		}
	}
	return s, "", !quoted
}

// showName is a parameter's name, unless it could be a piece of a secret.
func showName(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return redacted
}
