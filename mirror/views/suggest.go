package views

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Suggestion is a column that a sample of records suggests, or that is declared.
type Suggestion struct {
	Column
	Records  int      // of the sample that have the member; 0: it is only declared
	Nulls    int      // of these, null
	Examples []string // words that many records share; of everything else only the form
}

const (
	suggestDepth    = 3  // objects within objects that are opened
	suggestMost     = 60 // columns
	sharedValues    = 8  // different values at most that pass for words of the trade
	sharedPerValue  = 3  // records at least that share each of them on average
	sharedLength    = 24
	suggestExamples = 3
)

// Suggest looks at records and proposes columns for their members, those that most
// records have first. Values that could be about a person are shown by their form:
// letters as a, digits as 9. What is declared comes behind what the records have,
// and settles what they leave open: a type where all are null, a numeric where all
// happen to be integers.
func Suggest(records []json.RawMessage, declared []Column) []Suggestion {
	s := sample{members: map[string]*member{}}
	declaredType := map[string]Type{}
	for _, c := range declared {
		declaredType[c.Path] = c.Type
	}
	for _, r := range records {
		s.object(r, nil)
	}
	var all suggestions
	for _, path := range s.order {
		m := s.members[path]
		if m.objects == m.records-m.nulls && m.objects > 0 {
			continue // its own members are proposed
		}
		typ := m.typ()
		if t, ok := declaredType[path]; ok && (m.records == m.nulls || typ == Integer && t == Numeric) {
			typ = t
		}
		all.add(Suggestion{Column: Column{Name: columnNameOf(m.steps), Path: path, Type: typ}, Records: m.records, Nulls: m.nulls, Examples: m.examples()})
	}
	for _, c := range declared {
		if s.members[c.Path] == nil {
			all.add(Suggestion{Column: c})
		}
	}
	slices.SortStableFunc(all, func(x, y Suggestion) int { return cmp.Compare(y.Records-y.Nulls, x.Records-x.Nulls) })
	return all[:min(len(all), suggestMost)]
}

type suggestions []Suggestion

// add takes a suggestion under a name that no other has. It leaves out what every
// view has already, and members whose name no path can hold. An id is a text, as
// the column id is, whatever it is made of: it is compared with one.
func (all *suggestions) add(s Suggestion) {
	if slices.Contains([]string{"$.id", "$.modify_time", "$.version", "$.deleted_at"}, s.Path) {
		return
	}
	if s.Type == Integer && idName.MatchString(s.Name) {
		s.Type = Text
	}
	taken := func(name string) bool {
		return slices.Contains(reserved(), name) || slices.ContainsFunc(*all, func(o Suggestion) bool { return o.Name == name })
	}
	for taken(s.Name) {
		s.Name += "_value"
	}
	if s.Check() == nil {
		*all = append(*all, s)
	}
}

// sample gathers what is seen at each path.
type sample struct {
	members map[string]*member
	order   []string
}

type member struct {
	steps                    []string
	records, nulls           int
	objects, lists, booleans int
	integers, numbers        int
	texts, dates, times      int
	textLists                int
	values                   map[string]int // short texts, until there are too many
}

func (s *sample) object(raw json.RawMessage, steps []string) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return
		}
		text, _ := name.(string)
		s.value(value, append(slices.Clone(steps), text))
	}
}

func (s *sample) value(raw json.RawMessage, steps []string) {
	path := pathOf(steps)
	m := s.members[path]
	if m == nil {
		m = &member{steps: steps, values: map[string]int{}}
		s.members[path] = m
		s.order = append(s.order, path)
	}
	m.records++
	switch raw[0] {
	case 'n':
		m.nulls++
	case '{':
		m.objects++
		if len(steps) < suggestDepth {
			s.object(raw, steps)
		}
	case '[':
		m.lists++
		var texts []string
		if json.Unmarshal(raw, &texts) == nil {
			m.textLists++
		}
	case 't', 'f':
		m.booleans++
	case '"':
		var text string
		_ = json.Unmarshal(raw, &text) // it is one
		m.text(text)
	default:
		m.numbers++
		if !bytes.ContainsAny(raw, ".eE") {
			m.integers++
		}
		m.note(string(raw))
	}
}

var (
	dateForm = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
	timeForm = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}`)
)

func (m *member) text(text string) {
	m.texts++
	switch {
	case dateForm.MatchString(text):
		m.dates++
	case timeForm.MatchString(text):
		m.times++
	}
	m.note(text)
}

func (m *member) note(value string) {
	if _, known := m.values[value]; known || len(m.values) < 10*sharedValues {
		m.values[value]++
	}
}

// typ is the one type that all values have, text or jsonb if they have none.
func (m *member) typ() Type {
	switch n := m.records - m.nulls; {
	case n == 0:
		return Text
	case m.booleans == n:
		return Boolean
	case m.integers == n:
		return Integer
	case m.numbers == n:
		return Numeric
	case m.dates == n:
		return Date
	case m.dates+m.times == n:
		return Timestamptz
	case m.textLists == n:
		return Texts
	case m.objects+m.lists > 0:
		return JSON
	default:
		return Text
	}
}

func (m *member) examples() []string {
	values := make([]string, 0, len(m.values))
	shared := len(m.values) <= sharedValues && m.records >= sharedPerValue*len(m.values) && !aboutPeople.MatchString(strings.Join(m.steps, "."))
	for v := range m.values {
		if !shared || len(v) > sharedLength || personal.MatchString(v) {
			v = form(v)
		}
		values = append(values, v)
	}
	slices.Sort(values)
	values = slices.Compact(values)
	return values[:min(len(values), suggestExamples)]
}

var idName = regexp.MustCompile(`(?:^|_)id$`)

// aboutPeople finds members by whose names few different values may still be those
// of few people: five managers are in every record.
var aboutPeople = regexp.MustCompile(`(?i)name|mobile|phone|tel|mail|addr|contact|customer|owner|person|user|staff|manager|agent|sign|author|operator|creat|updat|birth|card|passport|licen|account|wechat|weixin|qq|remark|note|姓名|名|电话|手机|地址|证|微信|联系|备注`)

// personal finds runs of digits that may be a number of somebody's, and addresses.
var personal = regexp.MustCompile(`\d{5}|@`)

// form is a value's shape.
func form(v string) string {
	var b strings.Builder
	for i, r := range v {
		switch {
		case i >= 2*sharedLength:
			return b.String() + "…"
		case unicode.IsDigit(r):
			b.WriteByte('9')
		case r < unicode.MaxASCII && unicode.IsLetter(r):
			b.WriteByte('a')
		case unicode.IsLetter(r):
			b.WriteRune('字')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

var plainStep = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func pathOf(steps []string) string {
	path := "$"
	for _, s := range steps {
		if plainStep.MatchString(s) {
			path += "." + s
		} else {
			path += fmt.Sprintf("['%s']", s)
		}
	}
	return path
}

var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// columnNameOf makes a name of the steps: fee, totalAmount is fee_total_amount.
func columnNameOf(steps []string) string {
	name := camel.ReplaceAllString(strings.Join(steps, "_"), "${1}_$2")
	name = strings.Map(func(r rune) rune {
		switch r = unicode.ToLower(r); {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		default:
			return '_'
		}
	}, name)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name[:min(len(name), 42)]
}
