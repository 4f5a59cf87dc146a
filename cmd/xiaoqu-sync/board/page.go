package board

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

//go:embed page.html page.css
var files embed.FS

const (
	refreshSeconds = 30 // of the page that refreshes itself, when a reader asks for that
	tableRuns      = 10 // runs that are listed
	maxShownID     = 64 // bytes of a record's id in a held rebuild's sample
)

// page is the form, made once.
type page struct {
	form   *template.Template
	style  template.CSS
	policy string
}

// newPage parses what is embedded. A mistake in it is one of this binary, which
// every test meets, so there is no error.
func newPage() *page {
	css, err := files.ReadFile("page.css")
	if err != nil {
		panic(err)
	}
	hash := sha256.Sum256(css)
	return &page{
		form:  template.Must(template.ParseFS(files, "page.html")),
		style: template.CSS(css),
		policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; img-src data:; " +
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
}

// view is what the form shows.
type view struct {
	W         words
	Style     template.CSS
	Icon      template.URL // the colour of the verdict, for a pinned tab
	Refresh   int          // seconds; 0: by hand
	Level     level
	Headline  string
	Summary   string
	Problem   string // why nothing can be shown
	AsOf      moment
	Zone      string
	Version   string
	Schema    string
	Pointers  []pointer // what to look at, the gravest first
	Resources []resource
}

// moment is a time for people and for machines.
type moment struct{ Text, Machine string }

type resource struct {
	Name     string
	Level    level
	Pill     string
	Working  bool
	Findings []finding
	Age      string // of the data
	AsOf     *moment
	Facts    []fact
	Error    *lastError
	Held     []sample
	Reasons  []reason
	Took     chart
	Rows     chart
	Runs     []run
}

type fact struct{ Name, Value, More string }

type lastError struct {
	Code, Meaning, RequestID string
	At                       moment
}

// pointer is a finding with the resource that it is about.
type pointer struct {
	Name string
	finding
}

type sample struct {
	Name, Count string
	IDs         []string
}

type reason struct{ Kind, Reason, Count string }

type run struct {
	Started                    moment
	Class, Outcome, Mode, Took string
	Received, Changed          string
}

// status is the page for people.
func (b *board) status(w http.ResponseWriter, r *http.Request) {
	text := speak(r)
	v := view{W: text, Style: b.page.style, Version: b.opts.Version, Zone: b.opts.Zone.String()}
	if r.URL.Query().Get("refresh") == "on" {
		v.Refresh = refreshSeconds
	}
	code := http.StatusOK
	read, err := b.read(r.Context())
	if err != nil {
		code = http.StatusServiceUnavailable
		b.fillProblem(&v, err)
	} else {
		b.fill(&v, read)
	}
	v.Icon = icon(v.Level)
	var out bytes.Buffer
	if err := b.page.form.ExecuteTemplate(&out, "page.html", v); err != nil {
		panic(fmt.Errorf("board: page.html: %w", err)) // a mistake of ours; the guard logs it
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", text.Lang)
	h.Set("Vary", "Accept-Language")
	w.WriteHeader(code)
	_, _ = out.WriteTo(w) // a client that has gone has nobody left to tell
}

// fillProblem says why the mirror could not be read.
func (b *board) fillProblem(v *view, err error) {
	now := time.Now()
	v.Level, v.Headline, v.Summary = levelBad, v.W.DatabaseAway, v.W.DatabaseAwayHint
	v.AsOf = b.moment(now, now)
	v.Problem = oneLine(b.opts.Redact(err.Error()))
	var e *mirror.Error
	if errors.As(err, &e) && e.Hint != "" {
		v.Problem += "; " + e.Hint
	}
}

func (b *board) fill(v *view, r reading) {
	now := r.status.At
	v.AsOf, v.Schema = b.moment(now, now), r.status.Schema
	var oldest int64
	troubled := 0
	for _, s := range r.status.Resources {
		one := b.resource(s, r, v.W)
		v.Resources = append(v.Resources, one)
		for _, f := range one.Findings {
			v.Pointers = append(v.Pointers, pointer{one.Name, f})
		}
		v.Level = max(v.Level, one.Level)
		if one.Level > levelOK {
			troubled++
		}
		if s.AgeSeconds != nil {
			oldest = max(oldest, *s.AgeSeconds)
		}
	}
	slices.SortStableFunc(v.Pointers, func(a, b pointer) int { return cmp.Compare(b.Level, a.Level) })
	switch v.Level {
	case levelBad:
		v.Headline = v.W.AllBad
	case levelNote:
		v.Headline = v.W.AllNote
	default:
		v.Headline = v.W.AllWell
	}
	if troubled == 0 {
		v.Summary = fmt.Sprintf(v.W.SummaryWell, v.W.span(time.Duration(oldest)*time.Second))
	} else {
		v.Summary = fmt.Sprintf(v.W.SummaryTroubled, troubled, len(v.Resources))
	}
}

// icon is a dot in the colour of the verdict; its text is ours alone.
func icon(l level) template.URL {
	colour := map[level]string{levelOK: "1a7f45", levelNote: "d08700", levelBad: "c62828"}[l]
	return template.URL("data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E" +
		"%3Ccircle cx='8' cy='8' r='7' fill='%23" + colour + "'/%3E%3C/svg%3E")
}

// clock is a time of day, with the day when that is not today.
func (b *board) clock(t, now time.Time) string {
	t, now = t.In(b.opts.Zone), now.In(b.opts.Zone)
	switch {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format(time.TimeOnly)
	case t.Year() == now.Year():
		return t.Format("01-02 15:04")
	default:
		return t.Format("2006-01-02 15:04")
	}
}

func (b *board) moment(t, now time.Time) moment {
	return moment{Text: b.clock(t, now), Machine: t.In(b.opts.Zone).Format(time.RFC3339)}
}
