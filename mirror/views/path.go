package views

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	maxSteps   = 16
	maxKey     = 200 // bytes
	maxElement = 10_000
)

// Path leads from a record to a value in it: $.fee.amount, $.tags[0], $['a key'].
// An index below zero counts from the end, as PostgreSQL's do.
type Path struct{ steps []string }

// ParsePath reads a path. Its errors say what is wrong and where.
func ParsePath(text string) (Path, error) {
	rest, ok := strings.CutPrefix(text, "$")
	if !ok {
		return Path{}, errors.New("a path begins with $")
	}
	var p Path
	for rest != "" {
		step, behind, err := nextStep(rest)
		if err != nil {
			return Path{}, fmt.Errorf("at character %d: %w", len(text)-len(rest)+1, err)
		}
		p.steps, rest = append(p.steps, step), behind
	}
	switch {
	case len(p.steps) == 0:
		return Path{}, errors.New("a path names a member, such as $.status")
	case len(p.steps) > maxSteps:
		return Path{}, fmt.Errorf("a path has at most %d steps", maxSteps)
	}
	return p, nil
}

// CheckMask says what is wrong with a path that the masked view shall hide.
func CheckMask(text string) error {
	p, err := ParsePath(text)
	if err != nil {
		return err
	}
	if shown := p.steps[0]; slices.Contains([]string{"id", "modify_time", "version", "deleted_at"}, shown) {
		return fmt.Errorf("%s is a column of every view, so it would be seen there", shown)
	}
	return nil
}

// nextStep cuts the first step off.
func nextStep(text string) (step, rest string, err error) {
	switch {
	case strings.HasPrefix(text, "."):
		end := strings.IndexAny(text[1:], ".[") + 1
		if end == 0 {
			end = len(text)
		}
		step, rest = text[1:end], text[end:]
	case strings.HasPrefix(text, "['"):
		end := strings.Index(text, "']")
		if end < 0 {
			return "", "", errors.New("['…'] is not closed")
		}
		step, rest = text[2:end], text[end+2:]
	case strings.HasPrefix(text, "["):
		end := strings.IndexByte(text, ']')
		n, err := strconv.Atoi(text[1:max(end, 1)])
		if end < 0 || err != nil || n > maxElement || n < -maxElement {
			return "", "", errors.New("[…] takes the number of an element, or a 'key'")
		}
		return strconv.Itoa(n), text[end+1:], nil
	default:
		return "", "", errors.New("want .name, ['name'] or [0]")
	}
	if step == "*" {
		return "", "", errors.New("a path leads to one value: take the whole list, as a column with the type jsonb or text[]")
	}
	if step == "" || len(step) > maxKey || strings.ContainsAny(step, "\x00'{}") {
		return "", "", errors.New("the name is empty, too long, or has a quote or a brace in it")
	}
	return step, rest, nil
}

// array is the path as the literal of a text[].
func (p Path) array() string {
	quoted := make([]string, len(p.steps))
	for i, s := range p.steps {
		quoted[i] = literal(s)
	}
	return "array[" + strings.Join(quoted, ", ") + "]::text[]"
}

// literal quotes a text for SQL; settings of the session make no difference to it.
func literal(s string) string {
	if strings.Contains(s, `\`) {
		return ` E'` + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + `'`
	}
	return `'` + strings.ReplaceAll(s, `'`, `''`) + `'`
}
