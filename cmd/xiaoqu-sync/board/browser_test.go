package board_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// artefacts is where screenshots are left for people; git ignores it.
var artefacts = filepath.Join("..", "..", "..", "artefacts", "board")

// browser starts a real Chromium, or skips the test where there is none.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no chromium here (Debian: apt-get install chromium fonts-noto-cjk)")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to make one for root
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, leave := chromedp.NewContext(ctx)
	t.Cleanup(leave)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("chromium: %v", err)
	}
	return ctx
}

// complaints collects what the browser's console would show.
type complaints struct {
	mu    sync.Mutex
	lines []string
}

func (c *complaints) listen(ctx context.Context) error {
	note := func(format string, args ...any) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.lines = append(c.lines, fmt.Sprintf(format, args...))
	}
	return chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			note("console.%s", e.Type)
		case *runtime.EventExceptionThrown:
			note("exception: %s", e.ExceptionDetails.Text)
		case *cdplog.EventEntryAdded:
			note("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	})
}

func (c *complaints) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := c.lines
	c.lines = nil
	return lines
}

type look struct {
	language, theme string
	width, height   int64
}

func (l look) String() string {
	form := "desktop"
	if l.width < 600 {
		form = "phone"
	}
	return strings.Join([]string{l.language[:2], l.theme, form}, "-")
}

func looks() []look {
	var all []look
	for _, language := range []string{"zh-CN", "en-GB"} {
		for _, theme := range []string{"light", "dark"} {
			all = append(all, look{language, theme, 1280, 800}, look{language, theme, 360, 780})
		}
	}
	return all
}

// shoot shows the page as a look wants it, everything unfolded, and leaves a
// picture; overflow is how many pixels the page is wider than the screen.
func shoot(ctx context.Context, url string, l look, file string) (overflow int, err error) {
	if err := l.wear(ctx); err != nil {
		return 0, err
	}
	err = chromedp.Do(
		ctx,
		chromedp.EmulateViewport(l.width, l.height),
		chromedp.Navigate(url),
	)
	if err != nil {
		return 0, err
	}
	if _, err = chromedp.Run(ctx, chromedp.Evaluate[int](`document.querySelectorAll("article:first-of-type details").forEach(d => d.open = true), 0`)); err != nil {
		return 0, err
	}
	if overflow, err = chromedp.Run(ctx, chromedp.Evaluate[int](`document.documentElement.scrollWidth - document.documentElement.clientWidth`)); err != nil {
		return 0, err
	}
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		return overflow, err
	}
	return overflow, os.WriteFile(file, picture, 0o644)
}

// wear sets language and theme.
func (l look) wear(ctx context.Context) error {
	if _, err := chromedp.Call(ctx, cdplog.Enable, cdp.Empty{}); err != nil {
		return err
	}
	headers := network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": l.language}}
	if _, err := chromedp.Call(ctx, network.SetExtraHTTPHeaders, headers); err != nil {
		return err
	}
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.theme}},
	})
	return err
}

func TestThePageInARealBrowser(t *testing.T) {
	ctx := browser(t)
	if err := os.MkdirAll(artefacts, 0o755); err != nil {
		t.Fatal(err)
	}
	var console complaints
	if err := console.listen(ctx); err != nil {
		t.Fatal(err)
	}
	trouble := serve(t, troubled(t).Mirror)
	for _, l := range looks() {
		check(ctx, t, &console, "trouble", trouble, l)
	}
	quiet := serve(t, well(t).Mirror)
	check(ctx, t, &console, "well", quiet, look{"zh-CN", "light", 1280, 800})
	check(ctx, t, &console, "well", quiet, look{"en-GB", "dark", 360, 780})
	check(ctx, t, &console, "away", serve(t, nobody(t)), look{"zh-CN", "light", 360, 780})
}

// check shoots one look and fails on what the browser has against it.
func check(ctx context.Context, t *testing.T, console *complaints, name, url string, l look) {
	t.Helper()
	overflow, err := shoot(ctx, url, l, filepath.Join(artefacts, name+"-"+l.String()+".png"))
	if err != nil {
		t.Fatalf("%s %s: %v", name, l, err)
	}
	if overflow > 0 {
		t.Errorf("%s %s: %d pixels wider than the screen", name, l, overflow)
	}
	for _, line := range console.take() {
		if name != "away" || !strings.Contains(line, "503") { // which the browser reports of the page itself
			t.Errorf("%s %s: %s", name, l, line)
		}
	}
}
