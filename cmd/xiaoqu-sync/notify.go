package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

const (
	// statusEvery is the shortest time between two lines about progress.
	statusEvery = time.Second
	// reachTime is how long a look at a database that is away may take, beside
	// the wait before it.
	reachTime = 4 * time.Minute
)

// notifier tells systemd how the daemon is (sd_notify). Where there is no
// systemd it does nothing.
type notifier struct {
	on       bool
	interval time.Duration // between two signs of life; 0: nobody waits for any
	log      *zap.Logger
	said     atomic.Int64 // when progress was told last, in Unix nanoseconds
}

func newNotifier(a *app) *notifier {
	n := &notifier{log: a.log.Named("systemd")}
	if socket, _ := a.program.lookup("NOTIFY_SOCKET"); socket == "" {
		return n
	}
	n.on = true
	watchdog, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		n.log.Warn("the watchdog's interval cannot be read", zap.Error(err))
	}
	n.interval = watchdog / 2 // as sd_watchdog_enabled(3) advises
	return n
}

func (n *notifier) send(lines ...string) {
	if !n.on {
		return
	}
	if _, err := systemd.SdNotify(false, strings.Join(lines, "\n")); err != nil {
		n.log.Debug("systemd could not be told", zap.Error(err))
	}
}

func (n *notifier) ready()    { n.send(systemd.SdNotifyReady, "STATUS=at work") }
func (n *notifier) stopping() { n.send(systemd.SdNotifyStopping, "STATUS=ending the page in hand") }

func (n *notifier) reloading() {
	n.send(systemd.SdNotifyReloading, systemd.SdNotifyMonotonicUsec())
}

// alive is for the timetable alone: when it hangs, systemd is to know.
func (n *notifier) alive() {
	if n.interval > 0 {
		n.send(systemd.SdNotifyWatchdog)
	}
}

// waiting says why the daemon is not ready, and that it needs more time.
func (n *notifier) waiting(code string, wait time.Duration) {
	n.send(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (wait+reachTime).Microseconds()),
		fmt.Sprintf("STATUS=%s; trying again in %s", code, wait.Round(time.Second)))
}

// progress says how far a resource's run is.
func (n *notifier) progress(p sync.Progress) {
	now, before := time.Now().UnixNano(), n.said.Load()
	if now-before < int64(statusEvery) || !n.said.CompareAndSwap(before, now) {
		return
	}
	n.send(fmt.Sprintf("STATUS=%s: %d pages, %d records", p.Resource, p.Pages, p.Records))
}

// idle says when there will be something to do again.
func (n *notifier) idle(next map[string]time.Time) {
	var soonest time.Time
	for _, t := range next {
		if soonest.IsZero() || t.Before(soonest) {
			soonest = t
		}
	}
	if !soonest.IsZero() {
		n.send("STATUS=waiting; next run at " + soonest.Format(time.TimeOnly))
	}
}
