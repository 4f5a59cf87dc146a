package alert_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/cmd/xiaoqu-sync/alert"
	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// held and drifted are outcomes of full passes with their figures.
func held(resource string) sync.Outcome {
	return sync.Outcome{
		Resource: resource, Result: sync.Held, Mode: "rebuild", Difference: &mirror.Difference{Absent: 900, Live: 1000},
		Err: fault{errors.New("held"), alert.Cause{Code: "REBUILD_HELD"}},
	}
}

func drifted(resource string) sync.Outcome {
	return sync.Outcome{
		Resource: resource, Result: sync.Drifted, Mode: "verify", Difference: &mirror.Difference{Updated: 2, Inserted: 1, Live: 9},
		Err: fault{errors.New("drift"), alert.Cause{Code: "DRIFT"}},
	}
}

func TestWhatOutcomesLeadTo(t *testing.T) {
	good := ends("users", sync.Synced, "incremental")
	for name, steps := range map[string][]struct {
		outcomes []sync.Outcome
		want     string
	}{
		"what succeeds is not told": {{[]sync.Outcome{good}, ""}, {[]sync.Outcome{ends("users", sync.Verified, "verify")}, ""}},
		"what passes is not told": {
			{[]sync.Outcome{fails("users", "UNREACHABLE")}, ""},
			{[]sync.Outcome{{Resource: "users", Result: sync.SteppedAside}}, ""},
			{[]sync.Outcome{{Resource: "users", Result: sync.Interrupted, Err: context.Canceled}}, ""},
		},
		"three resources with one trouble are one message": {
			{[]sync.Outcome{fails("users", "UNAUTHENTICATED"), fails("contracts", "UNAUTHENTICATED"), fails("properties", "UNAUTHENTICATED")}, "credentials contracts+properties+users"},
			{[]sync.Outcome{good, ends("contracts", sync.Synced, "incremental")}, "recovered contracts/credentials+users/credentials"},
			{[]sync.Outcome{ends("properties", sync.Synced, "resumed")}, "recovered properties/credentials"},
		},
		"a halt is told once": {
			{[]sync.Outcome{fails("users", "MALFORMED")}, "halt users"},
			{[]sync.Outcome{fails("users", "PERMISSION_DENIED")}, ""},
			{[]sync.Outcome{fails("users", "UNREACHABLE")}, ""},
			{[]sync.Outcome{good}, "recovered users/halt"},
			{[]sync.Outcome{good}, ""},
		},
		"a held rebuild stays held until it is accepted": {
			{[]sync.Outcome{held("users")}, "held users"},
			{[]sync.Outcome{held("users"), fails("users", "UNREACHABLE")}, ""},
			{[]sync.Outcome{{Resource: "users", Result: sync.Failed, Err: sync.ErrNothingPlanned}}, ""},
			{[]sync.Outcome{ends("users", sync.Synced, "accept")}, "recovered users/held"},
		},
		"a held rebuild that is dropped": {
			{[]sync.Outcome{held("users")}, "held users"},
			{[]sync.Outcome{ends("users", sync.Aborted, "abort")}, "recovered users/held"},
		},
		"only a rebuild or a verification ends a drift": {
			{[]sync.Outcome{drifted("users")}, "drift users"},
			{[]sync.Outcome{good, ends("users", sync.Planned, "plan")}, ""},
			{[]sync.Outcome{ends("users", sync.Synced, "rebuild")}, "recovered users/drift"},
			{[]sync.Outcome{drifted("users")}, "drift users"},
			{[]sync.Outcome{ends("users", sync.Verified, "verify")}, "recovered users/drift"},
		},
		"a verification does not end a halt": {
			{[]sync.Outcome{fails("users", "MALFORMED"), fails("contracts", "UNAUTHENTICATED")}, "credentials contracts, halt users"},
			{[]sync.Outcome{ends("users", sync.Verified, "verify"), ends("contracts", sync.Verified, "verify")}, "recovered contracts/credentials"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.alerter(t)
			for i, s := range steps {
				if got := w.after(t, a, s.outcomes...); got != s.want {
					t.Errorf("step %d: told %q, want %q", i, got, s.want)
				}
			}
		})
	}
}

func TestRemindersAndRestarts(t *testing.T) {
	w := newWorld(t)
	if got := w.after(t, w.alerter(t), fails("users", "MALFORMED")); got != "halt users" {
		t.Fatalf("told %q", got)
	}
	if got := w.after(t, w.alerter(t), fails("users", "MALFORMED")); got != "" {
		t.Errorf("after a restart: %q", got)
	}
	w.later(t, "3 hours 59 minutes")
	if got := w.after(t, w.alerter(t)); got != "" {
		t.Errorf("too early: %q", got)
	}
	w.later(t, "2 minutes")
	if got := w.after(t, w.alerter(t)); got != "again halt users" {
		t.Errorf("the reminder: %q", got)
	}
	if got := w.after(t, w.alerter(t), ends("users", sync.Synced, "incremental")); got != "recovered users/halt" {
		t.Errorf("the end: %q", got)
	}
}

func TestTwoReplicasSayItOnce(t *testing.T) {
	w := newWorld(t)
	w.exec(t, `insert into xiaoqu_sync.state (resource, last_success_at) values ('contracts', now() - interval '3 hours')`)
	replicas := make([]*alert.Alerter, 4)
	for i := range replicas {
		replicas[i] = w.alerter(t)
	}
	for _, step := range []struct {
		outcome sync.Outcome
		want    string
	}{
		{fails("users", "MALFORMED"), "halt users, stale contracts"},
		{fails("users", "MALFORMED"), ""},
		{ends("users", sync.Synced, "incremental"), "recovered users/halt"},
	} {
		errs := make(chan error)
		for _, a := range replicas {
			go func() {
				a.Observe(t.Context(), []sync.Outcome{step.outcome})
				errs <- a.Flush(t.Context())
			}()
		}
		for range replicas {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if got := w.told(t); got != step.want {
			t.Errorf("told %q, want %q", got, step.want)
		}
	}
}

func TestOldDataIsToldAlsoWhenNoRunFails(t *testing.T) {
	w := newWorld(t)
	a := w.alerter(t)
	w.exec(t, `insert into xiaoqu_sync.state (resource, last_success_at, complete_cutoff_at) values
		('users', now(), now() - interval '2 hours 1 minute'), ('contracts', now() - interval '119 minutes', null)`)
	w.exec(t, `insert into xiaoqu_sync.runs (resource, mode, started_at) values ('properties', 'first', now() - interval '5 hours')`)
	if got := w.after(t, a, fails("properties", "UNREACHABLE")); got != "stale properties, stale users" { // two codes, two messages
		t.Errorf("told %q", got)
	}
	w.exec(t, `update xiaoqu_sync.state set complete_cutoff_at = now(), last_success_at = now()`)
	if got := w.after(t, a); got != "recovered users/stale" {
		t.Errorf("told %q", got)
	}
}

func TestATargetHearsOnlyWhatItAskedFor(t *testing.T) {
	w := newWorld(t)
	target := w.receiver.target(alert.JSON)
	target.Events = []alert.Class{alert.Halt}
	a := w.alerter(t, target)
	if got := w.after(t, a, fails("users", "MALFORMED"), held("contracts")); got != "halt users" || strings.Contains(w.rows(t), "held") {
		t.Errorf("told %q", got)
	}
	if got := w.after(t, a, ends("users", sync.Synced, "incremental"), ends("contracts", sync.Aborted, "abort")); got != "" {
		t.Errorf("told %q", got)
	}
	if rows := w.rows(t); rows != "" {
		t.Errorf("left behind: %s", rows)
	}
}

func TestAResourceThatIsNoLongerConfiguredIsNotToldOf(t *testing.T) {
	w := newWorld(t)
	w.after(t, w.alerter(t), fails("users", "MALFORMED"))
	w.later(t, "5 hours")
	o := w.options(w.receiver.target(alert.JSON))
	o.Resources = []string{"contracts"}
	a, err := alert.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.after(t, a); got != "" {
		t.Errorf("told %q", got)
	}
}

func TestRunDeliversByItselfAndLeavesNothingUnwritten(t *testing.T) {
	w := newWorld(t)
	a := w.alerter(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- a.Run(ctx) }()
	a.Observe(ctx, []sync.Outcome{fails("users", "MALFORMED")})
	select {
	case d := <-w.receiver.got:
		if got := short(decode(t, d)); got != "halt users" {
			t.Errorf("told %q", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	stopped := w.alerter(t)
	stopped.Observe(ctx, []sync.Outcome{fails("contracts", "MALFORMED")})
	if err := stopped.Flush(ctx); err != nil { // as after a signal
		t.Error(err)
	}
	if got := w.told(t); got != "" || !strings.Contains(w.rows(t), "contracts") {
		t.Errorf("told %q, rows %s", got, w.rows(t))
	}
	if got := w.after(t, w.alerter(t)); got != "halt contracts" {
		t.Errorf("the next process told %q", got)
	}
}

func TestADatabaseThatIsAwayDelaysAlerts(t *testing.T) {
	w := newWorld(t)
	a := w.alerter(t)
	w.exec(t, "alter table xiaoqu_sync.alerts rename to away")
	a.Observe(t.Context(), []sync.Outcome{fails("users", "MALFORMED"), fails("contracts", "MALFORMED")})
	if err := a.Flush(t.Context()); err == nil {
		t.Fatal("no error")
	}
	a.Observe(t.Context(), []sync.Outcome{ends("contracts", sync.Synced, "incremental")})
	w.exec(t, "alter table xiaoqu_sync.away rename to alerts")
	if got := w.after(t, a); got != "halt users" {
		t.Errorf("told %q", got)
	}
}

func TestNobodyToTell(t *testing.T) {
	a, err := alert.New(alert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.Observe(t.Context(), []sync.Outcome{fails("users", "MALFORMED")})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := errors.Join(a.Flush(t.Context()), a.Run(ctx)); err != nil || len(a.Test(t.Context())) != 0 {
		t.Error(err)
	}
}

func TestTargetsThatCannotBe(t *testing.T) {
	at := func(kind alert.Kind, url string) alert.Target {
		return alert.Target{Kind: kind, Name: "it", URL: credentials.NewSecret(url)}
	}
	signed := at(alert.WeCom, "https://h/?key="+token)
	signed.Secret = credentials.NewSecret(secret)
	for want, targets := range map[string][]alert.Target{
		"not a full URL":  {at(alert.JSON, token)},
		"begin with http": {at(alert.JSON, "http://example.com/"+token)},
		"a user":          {at(alert.JSON, "https://u:"+token+"@example.com/")},
		"not a kind":      {at("slack", "https://example.com/"+token)},
		"no signature":    {signed},
		"twice":           {at(alert.JSON, "https://a/"), at(alert.JSON, "https://b/")},
		"it: its address": {at(alert.Feishu, "https://h/%zz"+token)},
	} {
		_, err := alert.New(alert.Options{Targets: targets})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestTheSecretsOfATarget(t *testing.T) {
	w := newWorld(t)
	a := w.alerter(t, w.receiver.target(alert.DingTalk))
	got := a.Secrets()
	for _, want := range []string{token, secret, "key=" + token + "&access_token=" + token} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
	if slices.Contains(got, "") || slices.Contains(got, "hook") {
		t.Errorf("ordinary words are: %q", got)
	}
}
