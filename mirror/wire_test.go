package mirror_test

import (
	"context"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/localpg"
)

// through opens the fixture's mirror once more, behind a proxy.
func through(t *testing.T, f fixture) (*localpg.Proxy, *mirror.Mirror) {
	t.Helper()
	p := localpg.StartProxy(t, f.url)
	return p, open(t, p.URL())
}

// sides of the server's own COMMIT.
func sides() map[string]localpg.Event {
	return map[string]localpg.Event{"before the server committed": localpg.Commit, "after the server committed": localpg.Committed}
}

func TestAPageIsTwoRoundTrips(t *testing.T) {
	f := setUp(t)
	w, m := through(t, f)
	s := step(f.checkpoint(t), user("a", ""), user("b", ""), `{"refused":true}`)
	if _, err := m.Checkpoint(t.Context(), "users"); err != nil { // connects
		t.Fatal(err)
	}
	before := w.Count(localpg.Answer)
	if _, _, err := m.Commit(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if n := w.Count(localpg.Answer) - before; n != 2 {
		t.Errorf("%d round trips", n)
	}
}

func TestAStagedPageIsTwoRoundTrips(t *testing.T) {
	f := setUp(t)
	w, m := through(t, f)
	p := f.begin(t, mirror.PurposeRebuild)
	if _, _, err := m.Pass(t.Context(), "users"); err != nil { // connects
		t.Fatal(err)
	}
	for _, page := range [][]string{{user("a", ""), `{"refused":true}`}, {}} {
		before := w.Count(localpg.Answer)
		after, _, err := m.Stage(t.Context(), stageStep(p, false, page...))
		if err != nil {
			t.Fatal(err)
		}
		if n := w.Count(localpg.Answer) - before; n != 2 {
			t.Errorf("%d round trips", n)
		}
		p = after
	}
}

func TestConnectionCutWhileStaging(t *testing.T) {
	for name, cut := range sides() {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			w, m := through(t, f)
			s := stageStep(f.begin(t, mirror.PurposeRebuild), true, user("a", ""), user("b", ""))
			w.Cut(cut, 1)
			_, _, err := m.Stage(t.Context(), s)
			wantKind(t, err, mirror.KindUnreachable)
			now, _, err := m.Pass(t.Context(), "users")
			if err != nil {
				t.Fatal(err)
			}
			if landed := now.At.Epoch == s.Before.At.Epoch+1; landed != (cut == localpg.Committed) || landed != now.Complete {
				t.Fatalf("%+v", now)
			}
			if !now.Complete {
				now = f.stage(t, s.Before, true, user("a", ""), user("b", ""))
			}
			w.Cut(cut, 1)
			before := f.checkpoint(t)
			_, _, err = m.Merge(t.Context(), before, now, lenient)
			wantKind(t, err, mirror.KindUnreachable)
			after := f.checkpoint(t)
			if merged := after.Epoch == before.Epoch+1; merged != (cut == localpg.Committed) || merged != (len(f.lines(t)) == 2) {
				t.Errorf("%+v, rows %v", after, f.lines(t))
			}
		})
	}
}

func TestConnectionCutAtCommit(t *testing.T) {
	for name, cut := range sides() {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			w, m := through(t, f)
			s := step(f.checkpoint(t), user("a", ""), user("b", ""))
			w.Cut(cut, 1)
			_, _, err := m.Commit(t.Context(), s)
			wantKind(t, err, mirror.KindUnreachable)
			// The caller reads the checkpoint again and goes on from there.
			now, err := m.Checkpoint(t.Context(), "users")
			if err != nil {
				t.Fatal(err)
			}
			if now.Epoch == s.Before.Epoch {
				if n := len(f.lines(t)); n != 0 {
					t.Fatalf("%d rows without a checkpoint", n)
				}
				if _, _, err := m.Commit(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			} else if _, _, err := m.Commit(t.Context(), s); err == nil {
				t.Error("the step was written twice")
			} else {
				wantKind(t, err, mirror.KindFenced)
			}
			if got := withoutXmin(f.lines(t)); got != "a live 1, b live 2" {
				t.Error(got)
			}
			if (cut == localpg.Committed) != (now.Epoch == s.Before.Epoch+1) {
				t.Errorf("epoch %d", now.Epoch)
			}
		})
	}
}

func TestAConnectionInABrokenTransactionDoesNotGoBackToThePool(t *testing.T) {
	for name, harm := range map[string]func(w *localpg.Proxy){
		"rolled back":           func(*localpg.Proxy) {},
		"no answer to ROLLBACK": func(w *localpg.Proxy) { w.Cut(localpg.Answer, 2) },
		"ROLLBACK does not reach the server": func(w *localpg.Proxy) {
			w.Cut(localpg.Statement, 3) // behind BEGIN and the page
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			w, m := through(t, f)
			s := step(f.checkpoint(t), user("a", ""))
			if _, err := m.Checkpoint(t.Context(), "users"); err != nil { // connects
				t.Fatal(err)
			}
			f.exec(t, "alter table xiaoqu.users add constraint refused check (id <> 'a')")
			harm(w)
			_, _, err := m.Commit(t.Context(), s)
			wantKind(t, err, mirror.KindData)
			if w.Armed() {
				t.Fatal("no ROLLBACK was seen")
			}
			f.exec(t, "alter table xiaoqu.users drop constraint refused") // waits for whoever still holds the table
			for range 4 {                                                 // whichever connection of the pool it is
				if _, err := m.Checkpoint(t.Context(), "users"); err != nil {
					t.Error(err)
				}
			}
			if _, _, err := m.Commit(t.Context(), s); err != nil {
				t.Error(err)
			}
			waitForNoTransaction(t, f)
		})
	}
}

// waitForNoTransaction gives the server time to notice a connection that was cut. One
// that was given back to the pool would stay as it is.
func waitForNoTransaction(t *testing.T, f fixture) {
	t.Helper()
	const open = "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'"
	look, deadline := time.NewTicker(5*time.Millisecond), time.NewTimer(10*time.Second)
	defer look.Stop()
	defer deadline.Stop()
	for {
		n := value[int64](t, f, open)
		if n == 0 {
			return
		}
		select {
		case <-look.C:
		case <-deadline.C:
			t.Fatalf("%d connections are in a transaction", n)
		}
	}
}

func TestNothingHangsOnASilentServer(t *testing.T) {
	f := setUp(t)
	w, m := through(t, f)
	if _, err := m.Checkpoint(t.Context(), "users"); err != nil { // a connection that is fallen silent later
		t.Fatal(err)
	}
	w.Silence()
	for range 2 { // the second call needs a new connection
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := m.Checkpoint(ctx, "users")
		cancel()
		wantKind(t, err, mirror.KindUnreachable)
	}
	if err := w.Retarget(f.url); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Checkpoint(t.Context(), "users"); err != nil {
		t.Errorf("the network is back: %v", err)
	}
}
