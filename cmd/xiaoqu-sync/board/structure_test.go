package board_test

import (
	"crypto/sha256"
	"encoding/base64"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// pages are the page in each language and in each state that has a form of its own.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, url := range map[string]string{
		"well": serve(t, well(t).Mirror), "trouble": serve(t, troubled(t).Mirror), "away": serve(t, nobody(t)),
	} {
		for _, language := range []string{"en", "zh"} {
			_, all[name+" "+language] = get(t, url, language)
		}
	}
	return all
}

func TestThePageIsSound(t *testing.T) {
	for name, page := range pages(t) {
		t.Run(name, func(t *testing.T) {
			root := parse(t, page)
			headings(t, root)
			tables(t, root)
			drawings(t, root)
			links(t, root)
			for _, d := range elements(root, "time") {
				if _, err := time.Parse(time.RFC3339, attr(d, "datetime")); err != nil {
					t.Error(err)
				}
			}
			if n := len(elements(root, "main")); n != 1 {
				t.Errorf("%d main", n)
			}
			if title := text(elements(root, "title")[0]); len(title) < 10 {
				t.Errorf("title %q", title)
			}
		})
	}
}

// headings fails unless there is one h1 and no level is left out on the way down.
func headings(t *testing.T, root *html.Node) {
	t.Helper()
	level, firsts := 0, 0
	for _, h := range elements(root, "h1", "h2", "h3", "h4", "h5", "h6") {
		next := int(h.Data[1] - '0')
		if next > level+1 {
			t.Errorf("%s after h%d: %q", h.Data, level, text(h))
		}
		if text(h) == "" {
			t.Errorf("an empty %s", h.Data)
		}
		level = next
		if next == 1 {
			firsts++
		}
	}
	if firsts != 1 {
		t.Errorf("%d h1", firsts)
	}
}

func tables(t *testing.T, root *html.Node) {
	t.Helper()
	for _, table := range elements(root, "table") {
		columns := elements(elements(table, "thead")[0], "th")
		for _, row := range elements(elements(table, "tbody")[0], "tr") {
			cells := elements(row, "th", "td")
			if len(cells) != len(columns) || cells[0].Data != "th" {
				t.Errorf("a row of %d cells under %d columns, the first is %s", len(cells), len(columns), cells[0].Data)
			}
		}
		for _, th := range elements(table, "th") {
			if attr(th, "scope") == "" || text(th) == "" {
				t.Errorf("a header cell without scope or text: %q", text(th))
			}
		}
	}
}

// drawings fails unless each says what it shows, or says that it is for the eye only.
func drawings(t *testing.T, root *html.Node) {
	t.Helper()
	for _, svg := range elements(root, "svg") {
		named := attr(svg, "role") == "img" && attr(svg, "aria-label") != ""
		if !named && attr(svg, "aria-hidden") != "true" {
			t.Error("a drawing without a name")
		}
	}
}

// links fails for what leaves the page, runs, or points nowhere.
func links(t *testing.T, root *html.Node) {
	t.Helper()
	ids := map[string]bool{}
	for _, d := range elements(root) {
		if id := attr(d, "id"); id != "" {
			if ids[id] {
				t.Errorf("the id %q twice", id)
			}
			ids[id] = true
		}
	}
	for _, d := range elements(root) {
		for _, a := range d.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" || strings.Contains(a.Val, "://") && !strings.HasPrefix(a.Val, "data:") {
				t.Errorf("<%s %s=%q>", d.Data, a.Key, a.Val)
			}
			if target, inner := strings.CutPrefix(a.Val, "#"); a.Key == "href" && inner && !ids[target] {
				t.Errorf("a link to %q, which is not there", target)
			}
			if a.Key == "aria-labelledby" && !ids[a.Val] {
				t.Errorf("named by %q, which is not there", a.Val)
			}
		}
	}
	if bad := elements(root, "script", "form", "iframe", "object", "img", "input", "button"); len(bad) > 0 {
		t.Errorf("a %s", bad[0].Data)
	}
}

func TestThePolicyAllowsTheOneStyleSheetAndNothingElse(t *testing.T) {
	resp, page := get(t, serve(t, newWorld(t).Mirror), "en")
	styles := elements(parse(t, page), "style")
	if len(styles) != 1 {
		t.Fatalf("%d style sheets", len(styles))
	}
	sum := sha256.Sum256([]byte(styles[0].FirstChild.Data))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src data:; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	if got := resp.Header.Get("Content-Security-Policy"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

var variable = regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6});`)

// palettes reads the colours of both themes off the style sheet.
func palettes(t *testing.T) (light, dark map[string]float64) {
	t.Helper()
	_, page := get(t, serve(t, nobody(t)), "en")
	before, after, found := strings.Cut(page, "@media (prefers-color-scheme: dark)")
	if !found {
		t.Fatal("there is no dark theme")
	}
	read := func(css string) map[string]float64 {
		colours := map[string]float64{}
		for _, m := range variable.FindAllStringSubmatch(css, -1) {
			colours[m[1]] = luminance(t, m[2])
		}
		return colours
	}
	return read(before), read(after)
}

// luminance is WCAG's relative luminance of a colour in hexadecimal.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	v, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(channel uint64) float64 {
		c := float64(channel&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(v>>16) + 0.7152*linear(v>>8) + 0.0722*linear(v)
}

func TestColoursHaveContrast(t *testing.T) {
	light, dark := palettes(t)
	const words, shapes = 4.5, 3.0 // WCAG 2.2, AA: 1.4.3 and 1.4.11
	pairs := []struct {
		front, back string
		least       float64
	}{
		{"text", "ground", 7},
		{"text", "card", 7},
		{"quiet", "ground", words},
		{"quiet", "card", words},
		{"link", "card", words},
		{"link", "ground", words},
		{"ok", "ok-ground", words},
		{"note", "note-ground", words},
		{"bad", "bad-ground", words},
		{"now", "now-ground", words},
		{"text", "ok-ground", words},
		{"text", "note-ground", words},
		{"alarm-text", "alarm", words},
		{"bar-bad", "card", shapes},
		{"bar-now", "card", shapes},
	}
	for name, colours := range map[string]map[string]float64{"light": light, "dark": dark} {
		for _, p := range pairs {
			a, okA := colours[p.front]
			b, okB := colours[p.back]
			if !okA || !okB {
				t.Errorf("%s: no colour %s or %s", name, p.front, p.back)
				continue
			}
			if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < p.least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, at least %.1f is needed", name, p.front, p.back, ratio, p.least)
			}
		}
	}
}
