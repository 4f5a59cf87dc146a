package alert

import (
	"context"
	"maps"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

const (
	deliverEvery = 10 * time.Second // between two looks for what is due
	lookEvery    = time.Minute      // between two looks at the data's age
	flushTime    = 15 * time.Second // for all that Flush does
	lastTime     = 2 * time.Second  // to write down what was observed, at the end
)

// Store keeps the alerts for all processes that watch one mirror. *mirror.Mirror
// is one.
type Store interface {
	// NoteAlerts writes what became of conditions.
	NoteAlerts(ctx context.Context, notes []mirror.AlertNote, remind time.Duration) error
	// ClaimAlerts takes what is due, so that no other process does.
	ClaimAlerts(ctx context.Context, targets, resources []string, hold time.Duration) ([]mirror.Alert, error)
	// SettleAlerts gives it back, told or not.
	SettleAlerts(ctx context.Context, alerts []mirror.Alert, told bool, wait time.Duration) error
	// Overdue lists the resources whose data is older than age.
	Overdue(ctx context.Context, resources []string, age time.Duration) ([]mirror.Overdue, error)
}

// Options say who is told what. All but Instance and Host are required when there
// is a target; without one, nothing is.
type Options struct {
	Store       Store
	Targets     []Target // none: nothing is told
	Resources   []string // all that are configured; others are never told of
	Instance    string   // whose mirror it is, for people with several
	Host        string   // where this process runs
	Language    string   // "zh" or "en"
	TimeZone    *time.Location
	StaleAfter  time.Duration // how old data may be
	RemindAfter time.Duration // how long a condition goes on before it is told again
	Judge       func(error) Cause
	Redact      func(string) string // takes secrets and mobile numbers out of a text
	Logger      *zap.Logger
}

// Alerter tells the targets. It is safe for concurrent use, also by several
// processes on one mirror.
type Alerter struct {
	opts    Options
	texts   texts
	targets []*target
	client  *http.Client
	// What was observed and is not written down yet. Its size is bounded by the
	// resources and classes. Whoever takes the map out puts it back.
	pending chan map[condition]state
	wake    chan struct{}
}

// New checks the options; nothing is sent. The error names the target that it is
// about, never an address.
func New(o Options) (*Alerter, error) {
	targets, err := openTargets(o.Targets)
	if err != nil {
		return nil, err
	}
	a := &Alerter{
		opts: o, texts: textsIn(o.Language), targets: targets, client: newClient(),
		pending: make(chan map[condition]state, 1), wake: make(chan struct{}, 1),
	}
	a.pending <- map[condition]state{}
	return a, nil
}

// Secrets are the texts that no log may hold: addresses, what is secret in them,
// and keys of signatures.
func (a *Alerter) Secrets() []string {
	var all []string
	for _, t := range a.targets {
		all = append(all, t.secrets()...)
	}
	return all
}

// Observe remembers what runs brought about and returns at once. Run or Flush
// does the rest.
func (a *Alerter) Observe(_ context.Context, outcomes []sync.Outcome) {
	if len(a.targets) == 0 {
		return
	}
	pending := <-a.pending
	for _, o := range outcomes {
		maps.Copy(pending, read(o, a.opts.Judge))
	}
	a.pending <- pending
	select {
	case a.wake <- struct{}{}:
	default: // it is being woken already
	}
}

// Run delivers what is due and watches the data's age until ctx ends; then it
// writes down what it has not told, for the next process, and returns nil. An
// unreachable database is logged when it begins and when it ends.
func (a *Alerter) Run(ctx context.Context) error {
	if len(a.targets) == 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(deliverEvery)
	defer tick.Stop()
	var looked time.Time
	var failing bool
	for woken := true; ; {
		look := woken || time.Since(looked) >= lookEvery
		err := a.round(ctx, look)
		switch {
		case ctx.Err() != nil:
		case err != nil && !failing:
			a.opts.Logger.Warn("alerts cannot be kept in the database; nobody is told anything until that works again", zap.Error(err))
		case err == nil && failing:
			a.opts.Logger.Info("alerts work again")
		}
		failing = err != nil
		if look && err == nil {
			looked = time.Now()
		}
		select {
		case <-ctx.Done():
			return a.leave(ctx)
		case <-a.wake:
			woken = true
		case <-tick.C:
			woken = false
		}
	}
}

// Flush does what Run does, once and in at most 15 s, for processes that end.
// What could not be delivered is the next one's. When ctx has ended, it only
// writes down what was observed. The error is the database's.
func (a *Alerter) Flush(ctx context.Context) error {
	if len(a.targets) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return a.leave(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	return a.round(ctx, true)
}

// leave writes down what was observed although ctx has ended.
func (a *Alerter) leave(ctx context.Context) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
	defer cancel()
	if err := a.write(last); err != nil {
		a.opts.Logger.Warn("what was observed is lost to alerts; the next run observes it again", zap.Error(err))
	}
	return nil
}

// round writes down, looks at the data's age, and delivers.
func (a *Alerter) round(ctx context.Context, look bool) error {
	if err := a.write(ctx); err != nil {
		return err
	}
	if look {
		if err := a.look(ctx); err != nil {
			return err
		}
	}
	return a.deliver(ctx)
}

// write moves what was observed into the database. What it could not move it puts
// back, under anything newer.
func (a *Alerter) write(ctx context.Context) error {
	observed := <-a.pending
	a.pending <- map[condition]state{}
	if len(observed) == 0 {
		return nil
	}
	notes := make([]mirror.AlertNote, 0, len(observed))
	for c, s := range observed {
		notes = append(notes, mirror.AlertNote{
			Resource: c.resource, Class: string(c.class), Over: !s.on,
			Code: a.clean(s.code), Detail: s.detail, RequestID: a.clean(s.requestID), Host: a.opts.Host,
		})
	}
	err := a.note(ctx, notes)
	if err != nil {
		newer := <-a.pending
		maps.Copy(observed, newer)
		a.pending <- observed
	}
	return err
}

// look notes which resources' data is too old, and which one's no longer is.
func (a *Alerter) look(ctx context.Context) error {
	overdue, err := a.opts.Store.Overdue(ctx, a.opts.Resources, a.opts.StaleAfter)
	if err != nil {
		return err
	}
	old := map[string]mirror.Overdue{}
	for _, o := range overdue {
		old[o.Resource] = o
	}
	notes := make([]mirror.AlertNote, 0, len(a.opts.Resources))
	for _, r := range a.opts.Resources {
		n := mirror.AlertNote{Resource: r, Class: string(Stale), Over: true}
		if o, ok := old[r]; ok {
			n = mirror.AlertNote{Resource: r, Class: string(Stale), Code: codeStale, Since: o.Since, Host: a.opts.Host}
			switch {
			case o.Never:
				n.Code = codeNever
			case o.Lagging:
				n.Code = codeLagging
			}
		}
		notes = append(notes, n)
	}
	return a.note(ctx, notes)
}

// note writes the notes for every target that wants them; of ends it writes all,
// since the configuration may have been another one when the condition began.
func (a *Alerter) note(ctx context.Context, notes []mirror.AlertNote) error {
	var all []mirror.AlertNote
	for _, t := range a.targets {
		for _, n := range notes {
			if n.Over || wants(t.events, Class(n.Class)) {
				n.Target = t.name
				all = append(all, n)
			}
		}
	}
	return a.opts.Store.NoteAlerts(ctx, all, a.opts.RemindAfter)
}
