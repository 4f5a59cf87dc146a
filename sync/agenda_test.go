package sync

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// agendaOf begins at ten o'clock, without jitter unless it is asked for.
func agendaOf(t *testing.T, jitter time.Duration, schedules map[string]string) (*agenda, time.Time) {
	t.Helper()
	p, err := NewPlan(schedules, time.UTC, jitter)
	if err != nil {
		t.Fatal(err)
	}
	now := at(t, "UTC", "2026-09-15 10:00:00")
	return newAgenda(p, 1, now), now
}

// names are the resources of what is due.
func names(due []Due) []string {
	all := []string{}
	for _, d := range due {
		all = append(all, d.Resource)
	}
	return all
}

func TestWhatIsDueTogetherIsTakenTogether(t *testing.T) {
	a, now := agendaOf(t, 30*time.Second, map[string]string{"users": "@every 1m", "properties": "*/1 * * * *", "contracts": "@every 1h"})
	begin := now.Add(a.wake(now, time.Hour))
	if late := begin.Sub(now.Add(time.Minute)); late < 0 || late > 6*time.Second {
		t.Fatalf("the first runs begin %v after their moment, and a tenth of the period is the most", late)
	}
	if due, _ := a.take(begin.Add(-time.Millisecond)); len(due) != 0 {
		t.Errorf("due ahead of the jitter: %v", due)
	}
	due, missed := a.take(begin)
	if diff := cmp.Diff([]string{"properties", "users"}, names(due)); diff != "" || len(missed) > 0 {
		t.Errorf("due (-want +got): %s\nmissed %v", diff, missed)
	}
	if !due[0].Moment.Equal(now.Add(time.Minute)) {
		t.Errorf("the moment is %v and not that of the plan", due[0].Moment)
	}
	// On the hour all three share the delay of the one with the shortest period.
	a.take(now.Add(59*time.Minute + 30*time.Second))
	at := now.Add(59*time.Minute + 30*time.Second)
	at = at.Add(a.wake(at, time.Hour))
	if due, _ = a.take(at); len(due) != 3 {
		t.Errorf("on the hour: %v", names(due))
	}
}

func TestMomentsThatNobodySawAreCounted(t *testing.T) {
	a, now := agendaOf(t, 0, map[string]string{"users": "@every 5m", "contracts": "0 12 * * *"})
	due, missed := a.take(now.Add(62 * time.Minute))
	if diff := cmp.Diff([]string{"users"}, names(due)); diff != "" || missed["users"] != 11 || missed["contracts"] != 0 {
		t.Errorf("due %v, missed %v: want one run of users and eleven missed", names(due), missed)
	}
	if next := a.next["users"]; !next.Equal(now.Add(65 * time.Minute)) {
		t.Errorf("next is %v", next)
	}
}

func TestAClockThatIsSetBackDoesNotSilenceThePlan(t *testing.T) {
	a, now := agendaOf(t, 0, map[string]string{"users": "@every 5m"})
	a.take(now.Add(5 * time.Minute))
	if due, _ := a.take(now.Add(5*time.Minute - time.Second)); len(due) != 0 {
		t.Error("a small correction brought the moment back")
	}
	a.take(now.Add(-3 * time.Hour))
	if wake := a.wake(now.Add(-3*time.Hour), time.Hour); wake != 5*time.Minute {
		t.Errorf("three hours back, the next run is in %v", wake)
	}
}

func TestReplaceKeepsWhatStaysTheSame(t *testing.T) {
	a, now := agendaOf(t, 0, map[string]string{"users": "@every 5m", "contracts": "@every 5m", "properties": "@every 1h"})
	p, err := NewPlan(map[string]string{"users": "@every 5m", "contracts": "@every 10m", "properties": "@every 1m"}, time.UTC, 0)
	if err != nil {
		t.Fatal(err)
	}
	later := now.Add(5*time.Minute + time.Second) // users and contracts are due and not taken yet
	a.replace(p, later)
	due, _ := a.take(later)
	if diff := cmp.Diff([]string{"contracts", "users"}, names(due)); diff != "" {
		t.Errorf("a moment that had come was lost (-want +got): %s", diff)
	}
	want := map[string]time.Time{"users": now.Add(10 * time.Minute), "contracts": now.Add(10 * time.Minute), "properties": now.Add(6 * time.Minute)}
	if diff := cmp.Diff(want, a.next, cmp.Comparer(time.Time.Equal)); diff != "" {
		t.Errorf("next (-want +got): %s", diff)
	}
}

func TestCatchUpIsForWhatMissedItsRun(t *testing.T) {
	a, now := agendaOf(t, 0, map[string]string{"users": "@every 5m", "contracts": "@every 5m", "properties": "@every 1h"})
	due := a.catchUp(map[string]time.Time{"users": now.Add(-time.Second), "properties": now.Add(-59 * time.Minute)}, now.Add(time.Minute))
	if diff := cmp.Diff([]string{"contracts", "properties", "users"}, names(due)); diff != "" {
		t.Errorf("(-want +got): %s", diff)
	}
	due = a.catchUp(map[string]time.Time{"users": now, "contracts": now, "properties": now}, now.Add(time.Minute))
	if len(due) != 0 {
		t.Errorf("everything is fresh, and due is %v", names(due))
	}
}
