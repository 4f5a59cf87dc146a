package alert

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

const (
	eventVersion = "1.0"
	codeStale    = "STALE"
	codeNever    = "NEVER_COMPLETE"
	codeLagging  = "CUTOFF_OLD"

	maxValue = 120 // characters of a value that is not ours
	maxNames = 10  // resources that a message names
)

// Event is what a target is told. Its JSON is the public form, documented in
// docs/alerts.md.
type Event struct {
	SchemaVersion string     `json:"schema_version"`
	ID            string     `json:"id"` // the same when it is sent again because its answer was lost
	Class         Class      `json:"class"`
	Reminder      bool       `json:"reminder"` // it was told before and goes on
	Instance      string     `json:"instance"`
	Host          string     `json:"host"` // where it was seen last
	Time          time.Time  `json:"time"` // when this was sent
	Since         time.Time  `json:"since"`
	Code          string     `json:"code"`
	RequestID     string     `json:"request_id"` // of the first resource that has one
	Resources     []Affected `json:"resources"`

	Title   string `json:"title"`
	What    string `json:"what"`    // happened
	Meaning string `json:"meaning"` // for the data
	Next    string `json:"next"`    // to do
}

// Affected is one resource of an event.
type Affected struct {
	Resource  string    `json:"resource"`
	Class     Class     `json:"class"` // of a recovery: what it recovered from
	Code      string    `json:"code"`
	Detail    string    `json:"detail"` // held: deleted/live rows; drift: rows that differ; else ""
	RequestID string    `json:"request_id"`
	Since     time.Time `json:"since"`
}

// event makes one event of what gather put together.
func (a *Alerter) event(group []mirror.Alert) Event {
	first := group[0]
	e := Event{
		SchemaVersion: eventVersion, Class: Class(first.Class), Reminder: first.ToldAt != nil,
		Instance: a.clean(a.opts.Instance), Host: a.clean(first.Host), Code: first.Code,
		Time: time.Now().UTC().Truncate(time.Millisecond), Since: first.Since,
	}
	if first.EndedAt != nil {
		e.Class, e.Code, e.Reminder = Recovered, "", false
	}
	slices.SortFunc(group, func(x, y mirror.Alert) int {
		return strings.Compare(x.Resource+"\x00"+x.Class, y.Resource+"\x00"+y.Class)
	})
	id := sha256.New()
	for _, al := range group {
		fmt.Fprintln(id, al.Resource, al.Class, al.Since, al.ToldAt, al.EndedAt)
		e.Resources = append(e.Resources, Affected{al.Resource, Class(al.Class), al.Code, al.Detail, al.RequestID, al.Since})
		if e.RequestID == "" {
			e.RequestID = al.RequestID
		}
		if al.Since.Before(e.Since) {
			e.Since = al.Since
		}
	}
	e.ID = hex.EncodeToString(id.Sum(nil)[:12])
	a.speak(&e)
	return e
}

// speak fills in the texts.
func (a *Alerter) speak(e *Event) {
	w := a.texts.wording(e.Class, e.Code)
	var details, classes []string
	for _, r := range e.Resources {
		if r.Detail != "" {
			details = append(details, r.Resource+" "+r.Detail)
		}
		if name := a.texts.wording(r.Class, "").title; !slices.Contains(classes, name) {
			classes = append(classes, name)
		}
	}
	names := e.names()
	list := strings.Join(names[:min(len(names), maxNames)], ", ")
	if len(names) > maxNames {
		list += fmt.Sprintf(" … (%d)", len(names))
	}
	fill := strings.NewReplacer(
		"{resources}", list, "{resource}", strings.Join(names, " "), "{code}", plain(e.Code), "{detail}", strings.Join(details, ", "),
		"{classes}", strings.Join(classes, a.texts.comma), "{since}", a.clock(e.Since), "{limit}", brief(a.opts.StaleAfter),
	)
	e.Title = a.texts.prefix + joined(plain(e.Instance), fill.Replace(w.title))
	if list != "" {
		e.Title += a.texts.colon + list
	}
	if e.Reminder {
		e.Title += a.texts.again
	}
	e.What, e.Meaning, e.Next = fill.Replace(w.what), fill.Replace(w.meaning), fill.Replace(w.next)
}

// names are the resources, each once.
func (e Event) names() []string {
	names := make([]string, len(e.Resources))
	for i, r := range e.Resources {
		names[i] = r.Resource
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (a *Alerter) clock(t time.Time) string {
	return t.In(a.opts.TimeZone).Format("2006-01-02 15:04:05 -07:00")
}

// brief is a duration without its zero parts: 2h, not 2h0m0s.
func brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// clean makes a value that is not ours fit to be told: no secret, no mobile
// number, no line break, not long.
func (a *Alerter) clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, a.opts.Redact(s))
	if r := []rune(s); len(r) > maxValue {
		s = string(r[:maxValue]) + "…"
	}
	return s
}

// plain takes out of a value what a robot would read as markup or as a mention.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("<>[]()*`@#!|\\", r) {
			return '_'
		}
		return r
	}, s)
}
