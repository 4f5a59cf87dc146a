package mirror_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
)

const remind = 4 * time.Hour

// notice notes conditions written like "+halt users" and "-halt users".
func (f fixture) notice(t testing.TB, texts ...string) {
	t.Helper()
	var notes []mirror.AlertNote
	for _, text := range texts {
		class, resource, _ := strings.Cut(text[1:], " ")
		notes = append(notes, mirror.AlertNote{Target: "robot", Resource: resource, Class: class, Over: text[0] == '-', Code: "C", RequestID: "r_1"})
	}
	if err := f.NoteAlerts(t.Context(), notes, remind); err != nil {
		t.Fatal(err)
	}
}

// claim takes what is due and returns it with its text: "halt users", "again
// halt users", "end halt users".
func (f fixture) claim(t testing.TB) ([]mirror.Alert, string) {
	t.Helper()
	alerts, err := f.ClaimAlerts(t.Context(), []string{"robot"}, []string{"users", "contracts"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, a := range alerts {
		text := a.Class + " " + a.Resource
		switch {
		case a.EndedAt != nil:
			text = "end " + text
		case a.ToldAt != nil:
			text = "again " + text
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return alerts, strings.Join(texts, ", ")
}

func (f fixture) settle(t testing.TB, alerts []mirror.Alert, told bool, wait time.Duration) {
	t.Helper()
	if err := f.SettleAlerts(t.Context(), alerts, told, wait); err != nil {
		t.Fatal(err)
	}
}

// due claims, compares, and settles as told.
func (f fixture) due(t testing.TB, want string) {
	t.Helper()
	alerts, got := f.claim(t)
	if got != want {
		t.Fatalf("due: %q, want %q", got, want)
	}
	f.settle(t, alerts, true, remind)
}

// later lets time pass for the alerts.
func (f fixture) later(t testing.TB, by time.Duration) {
	t.Helper()
	f.exec(t, fmt.Sprintf(`update xiaoqu_sync.alerts set due_at = due_at - interval '%[1]f s', told_at = told_at - interval '%[1]f s',
		claimed_until = claimed_until - interval '%[1]f s'`, by.Seconds()))
}

func TestAConditionIsToldOnceThenAgainThenItsEnd(t *testing.T) {
	f := setUp(t)
	f.notice(t, "+halt users", "+halt contracts", "+held users")
	f.due(t, "halt contracts, halt users, held users")
	f.notice(t, "+halt users", "+halt contracts", "+held users")
	f.due(t, "")
	f.later(t, remind)
	f.notice(t, "-held users")
	f.due(t, "again halt contracts, again halt users, end held users")
	f.notice(t, "-halt users", "-halt contracts", "-held users", "-never properties")
	f.due(t, "end halt contracts, end halt users")
	f.notice(t, "-halt users")
	f.later(t, 2*remind)
	f.due(t, "")
	if n := value[int](t, f, "select count(*) from xiaoqu_sync.alerts"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestSinceIsTheFirstMomentUnlessItIsGiven(t *testing.T) {
	f := setUp(t)
	note := func(since time.Time) {
		t.Helper()
		if err := f.NoteAlerts(t.Context(), []mirror.AlertNote{{Target: "robot", Resource: "users", Class: "stale", Since: since}}, remind); err != nil {
			t.Fatal(err)
		}
	}
	const read = "select since from xiaoqu_sync.alerts"
	note(time.Time{})
	first := value[time.Time](t, f, read)
	note(time.Time{})
	if again := value[time.Time](t, f, read); !again.Equal(first) {
		t.Errorf("%s became %s", first, again)
	}
	given := timeAt(t, "2026-09-01T08:00:00Z")
	note(given)
	if got := value[time.Time](t, f, read); !got.Equal(given) {
		t.Errorf("since %s", got)
	}
}

func TestAnEndThatNobodyNeedsIsNotTold(t *testing.T) {
	f := setUp(t)
	f.notice(t, "+halt users")
	f.notice(t, "-halt users")
	f.due(t, "")
	f.notice(t, "+halt users")
	f.due(t, "halt users")
	f.notice(t, "-halt users")
	f.notice(t, "+halt users") // back before the end was told
	f.due(t, "")
	f.later(t, remind)
	f.due(t, "again halt users")
}

func TestWhatIsOnTheWireIsClaimedByOneOnly(t *testing.T) {
	f := setUp(t)
	f.notice(t, "+halt users")
	first, got := f.claim(t)
	if got != "halt users" || first[0].Attempts != 1 || first[0].Code != "C" || first[0].RequestID != "r_1" {
		t.Fatalf("claimed %+v", first)
	}
	f.due(t, "")
	f.later(t, time.Minute) // the first died
	second, got := f.claim(t)
	if got != "halt users" || second[0].Attempts != 2 {
		t.Fatalf("claimed %+v", second)
	}
	f.settle(t, first, false, 0) // it did not, it was slow
	f.due(t, "")
	second[0].Attempts = 5
	f.settle(t, second, false, 0)
	third, got := f.claim(t)
	if got != "halt users" || third[0].Attempts != 6 {
		t.Fatalf("claimed %+v", third)
	}
	f.settle(t, third, true, remind)
	f.due(t, "")
}

func TestWhatHappensWhileAnAlertIsOnTheWireIsNotLost(t *testing.T) {
	for name, tt := range map[string]struct {
		told, meanwhile []string
		took            bool
		want            string
	}{
		"it ends and was told":             {nil, []string{"-halt users"}, true, "end halt users"},
		"it ends and was not told":         {nil, []string{"-halt users"}, false, ""},
		"its end is told and it is back":   {[]string{"-halt users"}, []string{"+halt users"}, true, "halt users"},
		"its end is lost and it is back":   {[]string{"-halt users"}, []string{"+halt users"}, false, "halt users"},
		"it is back and ends again":        {[]string{"-halt users"}, []string{"+halt users", "-halt users"}, true, ""},
		"it ends and is back":              {nil, []string{"-halt users", "+halt users"}, true, ""},
		"it goes on":                       {nil, []string{"+halt users"}, true, ""},
		"it goes on and was not told":      {nil, []string{"+halt users"}, false, "halt users"},
		"its end goes on and was not told": {[]string{"-halt users"}, []string{"-halt users"}, false, "end halt users"},
	} {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			f.notice(t, "+halt users")
			if tt.told != nil {
				f.due(t, "halt users")
				f.notice(t, tt.told...)
			}
			flying, _ := f.claim(t)
			if len(flying) != 1 {
				t.Fatalf("claimed %+v", flying)
			}
			for _, text := range tt.meanwhile {
				f.notice(t, text)
			}
			f.due(t, "")
			wait := time.Duration(0)
			if tt.took {
				wait = remind
			}
			f.settle(t, flying, tt.took, wait)
			f.due(t, tt.want)
		})
	}
}

func TestOverdue(t *testing.T) {
	f := setUp(t)
	all := []string{"users", "contracts", "properties"}
	list := func() string {
		t.Helper()
		old, err := f.Overdue(t.Context(), all, 2*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, o := range old {
			texts = append(texts, fmt.Sprintf("%s %t %t %s", o.Resource, o.Never, o.Lagging, time.Since(o.Since).Round(time.Hour)))
		}
		return strings.Join(texts, ", ")
	}
	if got := list(); got != "" {
		t.Errorf("before anything was tried: %s", got)
	}
	for _, r := range all {
		if _, err := f.BeginRun(t.Context(), mirror.Run{Resource: r, Mode: "first", StartedAt: time.Now().Add(-3 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	f.exec(t, `insert into xiaoqu_sync.state (resource, last_success_at, complete_cutoff_at) values
		('users', now() - interval '1 hour', now() - interval '5 hours'), ('contracts', now() - interval '1 hour', null)`)
	if got := list(); got != "users false true 5h0m0s, properties true false 3h0m0s" {
		t.Errorf("overdue: %s", got)
	}
	f.exec(t, "update xiaoqu_sync.state set last_success_at = last_success_at - interval '4 hours'")
	if got := list(); got != "users false false 5h0m0s, contracts false false 5h0m0s, properties true false 3h0m0s" {
		t.Errorf("overdue: %s", got)
	}
}
