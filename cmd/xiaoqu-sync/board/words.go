package board

import (
	"fmt"
	"net/http"
	"time"

	"golang.org/x/text/language"
)

// words are all texts of the page in one language. Fields that hold a verb of
// package fmt say so in their comment.
type words struct {
	Lang, Title                         string
	OtherLang, OtherName, OtherLabel    string // the link to the other language
	RefreshOn, RefreshOff               string
	AsOf, Resources                     string
	AllWell, AllNote, AllBad            string
	SummaryWell                         string // %s age
	SummaryTroubled                     string // %d of %d
	DatabaseAway, DatabaseAwayHint      string
	PillOK, PillNote, PillBad           string
	Working                             string
	DataAge, DataAsOf                   string
	Never, Unknown, Nobody              string
	FindHeld                            string // %s deletions, %s rows
	FindRetried, FindFailed             string // %s code
	FindLate                            string // %s since, %s allowed
	FindFirst, FindRebuild, FindDrift   string
	FactRows, FactSuccess, FactNext     string
	FactLease, FactQuarantine           string
	FactPass, FactInHand                string
	RowsDeleted, Mended, Since          string // %s
	RowsPage                            string // %s rows, page %s
	LastError, Request, More            string
	HeldTitle, HeldAccept, HeldAbort    string
	SampleIDs                           string
	Absent, Tombstoned                  string
	Inserted, Updated, Revived          string
	QuarantineTitle, QuarantineHow      string
	ColKind, ColReason, ColRecords      string
	ChartTook                           string // %d runs, %s longest
	ChartRows                           string // %d runs, %s most
	RunsTitle                           string // %d
	NoRuns                              string
	ColStarted, ColOutcome, ColMode     string
	ColTook, ColReceived, ColChanged    string
	Ago, Ahead, Due                     string // %s, %s, –
	Days, Hours, Minutes, Seconds, Join string // %d each; what stands between two of them
	Fraction                            string // %.1f seconds
	Foot                                string

	modes, outcomes, kinds, meanings map[string]string
}

// speak finds the language of a request: the one it asks for by name, or the
// best of Accept-Language, or English.
func speak(r *http.Request) words {
	known := []words{english(), chinese()}
	matcher := language.NewMatcher([]language.Tag{language.English, language.Chinese})
	if asked := r.URL.Query().Get("lang"); asked != "" {
		_, i := language.MatchStrings(matcher, asked)
		return known[i]
	}
	_, i := language.MatchStrings(matcher, r.Header.Get("Accept-Language"))
	return known[i]
}

// span is a length of time in its two greatest units.
func (w words) span(d time.Duration) string {
	d = max(d, 0)
	days, hours, minutes := int(d/(24*time.Hour)), int(d/time.Hour)%24, int(d/time.Minute)%60
	switch {
	case days > 0 && hours > 0:
		return fmt.Sprintf(w.Days, days) + w.Join + fmt.Sprintf(w.Hours, hours)
	case days > 0:
		return fmt.Sprintf(w.Days, days)
	case hours > 0 && minutes > 0:
		return fmt.Sprintf(w.Hours, hours) + w.Join + fmt.Sprintf(w.Minutes, minutes)
	case hours > 0:
		return fmt.Sprintf(w.Hours, hours)
	case minutes > 0:
		return fmt.Sprintf(w.Minutes, minutes)
	default:
		return fmt.Sprintf(w.Seconds, int(d/time.Second))
	}
}

func (w words) ago(d time.Duration) string { return fmt.Sprintf(w.Ago, w.span(d)) }

func (w words) ahead(d time.Duration) string {
	if d <= 0 {
		return w.Due
	}
	return fmt.Sprintf(w.Ahead, w.span(d))
}

// exact is a run's time: tenths of a second below a minute.
func (w words) exact(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf(w.Fraction, d.Seconds())
	}
	return w.span(d)
}

func (w words) mode(m string) string    { return known(w.modes, m) }
func (w words) outcome(o string) string { return known(w.outcomes, o) }
func (w words) kind(k string) string    { return known(w.kinds, k) }

// meaning says what a code means for the data and what to do, "" for one that a
// later release made up.
func (w words) meaning(code string) string { return w.meanings[code] }

// known is the word for a name of ours, or the name itself.
func known(m map[string]string, name string) string {
	if word, ok := m[name]; ok {
		return word
	}
	return name
}
