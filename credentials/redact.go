package credentials

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"go.uber.org/zap/buffer"
)

const (
	minValue  = 6    // shorter values are parts of ordinary words
	maxValues = 1024 // of the exact values; the oldest go first
)

// Redactor takes secrets and mobile numbers out of text. It knows exact values
// that it was told, the shapes that secrets have, and how mainland mobile
// numbers look. It is safe for concurrent use.
type Redactor struct {
	mu       sync.Mutex
	values   []string
	replacer atomic.Pointer[strings.Replacer]
	shapes   []shape
	lines    buffer.Pool
}

// shape is a form that gives a secret away. The expression runs only on text
// that has the hint (whatever its case), which keeps the usual line cheap.
type shape struct {
	hint string
	form *regexp.Regexp
	with string
}

var (
	credential = regexp.MustCompile(`xq(?:ak|ok)-[A-Za-z0-9._~+/=\-]+`)
	storeToken = regexp.MustCompile(`\bhv[sbr]\.[A-Za-z0-9_\-]{8,}`)
	authScheme = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=\-]{6,}`)
	// Greedy up to the last @ of the word: passwords hold / and @ unescaped when
	// people write such addresses by hand.
	userInfo = regexp.MustCompile(`\b([A-Za-z][A-Za-z0-9+.\-]*://[^\s:/@"]*):[^\s"]*@`)
	dsnField = regexp.MustCompile(`(?i)\b(password\s*=\s*)(?:'[^'"\\]*'|[^\s"'&\\]+)`)
	// As a header line, or as a key of JSON with a string or a list of one.
	headerLine = regexp.MustCompile(`(?i)\b((?:mcp-session-id|x-open-key|x-vault-token)(?:\s*[:=]\s*\[?|\\?"\s*:\s*\[?\\?"))[^\s"\\,\[\]{}]+`)
)

func shapes() []shape {
	return []shape{
		{"xq", credential, mask},
		{"hv", storeToken, mask},
		{"bearer", authScheme, "$1 " + mask},
		{"basic", authScheme, "$1 " + mask},
		{"://", userInfo, "$1:" + mask + "@"},
		{"password", dsnField, "$1" + mask},
		{"mcp-session-id", headerLine, "$1" + mask},
		{"x-open-key", headerLine, "$1" + mask},
		{"x-vault-token", headerLine, "$1" + mask},
	}
}

// NewRedactor makes a Redactor that knows shapes and mobile numbers, and no
// exact value yet.
func NewRedactor() *Redactor { return &Redactor{shapes: shapes(), lines: buffer.NewPool()} }

// Add registers exact values: a key, a token, a password. They are found as they
// are and as JSON and addresses write them. Values of fewer than 6 bytes are
// left out, since ordinary text would be masked with them.
func (r *Redactor) Add(values ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := false
	for _, value := range values {
		// What a shape finds whole needs no memory: tokens may come without end.
		if len(value) < minValue || credential.FindString(value) == value || slices.Contains(r.values, value) {
			continue
		}
		r.values = append(r.values, value)
		changed = true
	}
	if !changed {
		return
	}
	if extra := len(r.values) - maxValues; extra > 0 {
		r.values = slices.Delete(r.values, 0, extra)
	}
	r.replacer.Store(replacer(r.values))
}

func replacer(values []string) *strings.Replacer {
	var all []string
	for _, value := range values {
		all = append(all, writings(value)...)
	}
	// The longest first: a value that holds another one must not be cut open.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(all))
	for _, one := range all {
		pairs = append(pairs, one, mask)
	}
	return strings.NewReplacer(pairs...)
}

// writings lists the forms in which value may stand in a line: itself, escaped
// for an address, quoted, and each of these in JSON, and in JSON inside JSON.
func writings(value string) []string {
	_, user, _ := strings.Cut(url.UserPassword("", value).String(), ":")
	forms := []string{value, url.QueryEscape(value), url.PathEscape(value), user}
	level := forms
	for range 2 {
		var quoted []string
		for _, form := range level {
			// Strings always marshal.
			html, _ := json.Marshal(form)
			plain := strconv.Quote(form)
			quoted = append(quoted, string(html[1:len(html)-1]), plain[1:len(plain)-1])
		}
		forms = append(forms, quoted...)
		level = quoted
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// String gives text without its secrets. A line of JSON stays valid JSON.
func (r *Redactor) String(text string) string {
	if known := r.replacer.Load(); known != nil {
		text = known.Replace(text)
	}
	for _, shape := range r.shapes {
		if hasFold(text, shape.hint) {
			text = shape.form.ReplaceAllString(text, shape.with)
		}
	}
	return maskMobiles(text)
}

// hasFold tells whether text holds the word, which is in lower case, in any
// case, without making a lower-case copy of the text.
func hasFold(text, word string) bool {
	first := word[0]
	upper := first
	if first >= 'a' && first <= 'z' {
		upper -= 'a' - 'A'
	}
	for i := 0; i+len(word) <= len(text); i++ {
		if (text[i] == first || text[i] == upper) && strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
	}
	return false
}
