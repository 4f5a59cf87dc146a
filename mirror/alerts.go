package mirror

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// AlertNote is what became of a condition that a target is to be told of.
type AlertNote struct {
	Target, Resource, Class string // what it is known by
	Over                    bool   // it has ended; nothing below counts then

	Code, Detail, RequestID, Host string
	Since                         time.Time // zero: now, by the database's clock, and for what is on: what it was
}

// Alert is one thing that one target is to be told.
type Alert struct {
	Target, Resource, Class       string
	Code, Detail, RequestID, Host string

	Since    time.Time
	EndedAt  *time.Time // not nil: that it is over
	ToldAt   *time.Time // when the target last took it; nil: it is news
	Attempts int        // this one included
	Claim    time.Time  // until when it is the caller's, by the database's clock
}

// A condition that comes back before its end was told goes on as if it had never
// ended; while that end may be on the wire, it begins anew. A since that was given,
// and so is not this moment, is the newest word.
const raiseAlerts = `
insert into {sync}.alerts as a (target, resource, class, code, detail, request_id, host, since, seen_at, due_at)
select w.target, w.resource, w.class, w.code, w.detail, w.request_id, w.host, coalesce(w.since, now()), now(), now()
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[])
     as w (target, resource, class, code, detail, request_id, host, since)
order by 1, 2, 3
on conflict (target, resource, class) do update set
    code = excluded.code, detail = excluded.detail, request_id = excluded.request_id, host = excluded.host, seen_at = excluded.seen_at,
    since = case when a.ended_at is not null and a.claimed_until > now() or excluded.since <> excluded.seen_at then excluded.since else a.since end,
    told_at = case when a.ended_at is not null and a.claimed_until > now() then null else a.told_at end,
    due_at = case when a.ended_at is null then a.due_at
                  when a.claimed_until > now() or a.told_at is null then now()
                  else a.told_at + pg_catalog.make_interval(secs => $9::float8) end,
    attempts = case when a.ended_at is null then a.attempts else 0 end,
    ended_at = null`

// Whoever was not told of a condition need not hear of its end.
const endAlerts = `
with over as (
    select a.target, a.resource, a.class, a.told_at is null and coalesce(a.claimed_until, now()) <= now() as unheard
    from {sync}.alerts a
    join unnest($1::text[], $2::text[], $3::text[]) as w (target, resource, class)
      on a.target = w.target and a.resource = w.resource and a.class = w.class
    where a.ended_at is null
    order by 1, 2, 3
    for update of a
), gone as (
    delete from {sync}.alerts a using over o
    where o.unheard and a.target = o.target and a.resource = o.resource and a.class = o.class
)
update {sync}.alerts a set ended_at = now(), due_at = now(), attempts = 0
from over o
where not o.unheard and a.target = o.target and a.resource = o.resource and a.class = o.class`

// NoteAlerts writes what became of conditions, each target, resource and class at
// most once. What is on already stays on; remind is when a target hears again of
// what comes back before it was told of the end.
func (m *Mirror) NoteAlerts(ctx context.Context, notes []AlertNote, remind time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	var on, over alertKeys
	var codes, details, requests, hosts []string
	var since []*time.Time
	for _, n := range notes {
		if n.Over {
			over.add(n.Target, n.Resource, n.Class)
			continue
		}
		on.add(n.Target, n.Resource, n.Class)
		codes, details = append(codes, storable(n.Code)), append(details, storable(n.Detail))
		requests, hosts = append(requests, storable(n.RequestID)), append(hosts, storable(n.Host))
		var at *time.Time
		if !n.Since.IsZero() {
			at = &n.Since
		}
		since = append(since, at)
	}
	if len(over.targets) > 0 {
		if _, err := m.pool.Exec(ctx, m.layout.Render(endAlerts), over.targets, over.resources, over.classes); err != nil {
			return fail("note alerts", err)
		}
	}
	if len(on.targets) == 0 {
		return nil
	}
	_, err := m.pool.Exec(ctx, m.layout.Render(raiseAlerts), on.targets, on.resources, on.classes,
		codes, details, requests, hosts, since, remind.Seconds())
	return fail("note alerts", err)
}

// alertKeys are the primary keys of rows, in columns.
type alertKeys struct{ targets, resources, classes []string }

func (k *alertKeys) add(target, resource, class string) {
	k.targets, k.resources, k.classes = append(k.targets, target), append(k.resources, resource), append(k.classes, class)
}

const claimAlerts = `
with due as (
    select target, resource, class from {sync}.alerts
    where target = any ($1::text[]) and resource = any ($2::text[]) and due_at <= now() and coalesce(claimed_until, now()) <= now()
    order by due_at, target, resource, class
    limit $3::bigint
    for update skip locked
)
update {sync}.alerts a set claimed_until = now() + pg_catalog.make_interval(secs => $4::float8), attempts = a.attempts + 1
from due d
where a.target = d.target and a.resource = d.resource and a.class = d.class
returning a.target, a.resource, a.class, a.code, a.detail, a.request_id, a.host, a.since, a.ended_at, a.told_at, a.attempts, a.claimed_until`

// alertsAtOnce bounds a claim.
const alertsAtOnce = 500

// ClaimAlerts takes what is due for these targets and resources. No other process
// gets it before hold is over; the caller settles it until then.
func (m *Mirror) ClaimAlerts(ctx context.Context, targets, resources []string, hold time.Duration) ([]Alert, error) {
	const op = "claim alerts"
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	rows, err := m.pool.Query(ctx, m.layout.Render(claimAlerts), filled(targets), filled(resources), alertsAtOnce, hold.Seconds())
	if err != nil {
		return nil, fail(op, err)
	}
	alerts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Alert, err error) {
		err = row.Scan(&a.Target, &a.Resource, &a.Class, &a.Code, &a.Detail, &a.RequestID, &a.Host, &a.Since, &a.EndedAt, &a.ToldAt, &a.Attempts, &a.Claim)
		a.Since, a.EndedAt, a.ToldAt, a.Claim = a.Since.UTC(), utc(a.EndedAt), utc(a.ToldAt), a.Claim.UTC()
		return a, err
	})
	return alerts, fail(op, err)
}

// A row that ended or came back while it was on the wire keeps what that left.
// An end that was told, or of what nobody was told, is forgotten.
const settleAlerts = `
with mine as (
    select a.target, a.resource, a.class, w.ended, w.attempts,
           a.ended_at is not null and ($7::boolean and w.ended or not $7::boolean and a.told_at is null) as done
    from {sync}.alerts a
    join unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::boolean[], $6::integer[])
         as w (target, resource, class, claim, ended, attempts)
      on a.target = w.target and a.resource = w.resource and a.class = w.class and a.claimed_until = w.claim
    order by 1, 2, 3
    for update of a
), gone as (
    delete from {sync}.alerts a using mine w
    where w.done and a.target = w.target and a.resource = w.resource and a.class = w.class
)
update {sync}.alerts a
set claimed_until = null,
    told_at = case when $7::boolean and not w.ended then now() else a.told_at end,
    attempts = case when $7::boolean or w.ended <> (a.ended_at is not null) then 0 else w.attempts end,
    due_at = case when w.ended = (a.ended_at is not null) then now() + pg_catalog.make_interval(secs => $8::float8) else a.due_at end
from mine w
where not w.done and a.target = w.target and a.resource = w.resource and a.class = w.class`

// SettleAlerts gives back what was claimed. What was told is due again after
// wait, as a reminder, and forgotten when it was an end; what was not is due again
// after wait, with the Attempts that the caller left in it. A claim that has run
// out and is somebody else's by now is left alone.
func (m *Mirror) SettleAlerts(ctx context.Context, alerts []Alert, told bool, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	var keys alertKeys
	var claims []time.Time
	var ended []bool
	var attempts []int32
	for _, a := range alerts {
		keys.add(a.Target, a.Resource, a.Class)
		claims, ended, attempts = append(claims, a.Claim), append(ended, a.EndedAt != nil), append(attempts, int32(a.Attempts))
	}
	_, err := m.pool.Exec(ctx, m.layout.Render(settleAlerts), filled(keys.targets), filled(keys.resources), filled(keys.classes),
		filled(claims), filled(ended), filled(attempts), told, wait.Seconds())
	return fail("settle alerts", err)
}

// Overdue is a resource whose data is too old.
type Overdue struct {
	Resource string
	Since    time.Time // as of when its data is, or when the first attempt at it began
	Never    bool      // it was never complete
	Lagging  bool      // rounds end well, and the cut-off that the remote names is as old as that
}

const readOverdue = `
select w.resource, coalesce(s.complete_cutoff_at, s.last_success_at, f.started_at), s.last_success_at is null,
       coalesce(s.last_success_at >= now() - pg_catalog.make_interval(secs => $2::float8), false)
from unnest($1::text[]) with ordinality as w (resource, n)
left join {sync}.state s on s.resource = w.resource
left join lateral (
    select r.started_at from {sync}.runs r where r.resource = w.resource and s.last_success_at is null order by r.id limit 1
) f on true
where coalesce(s.complete_cutoff_at, s.last_success_at, f.started_at) < now() - pg_catalog.make_interval(secs => $2::float8)
order by w.n`

// Overdue lists the resources whose last complete round is as of longer ago than
// age. One that was never complete counts from its first run.
func (m *Mirror) Overdue(ctx context.Context, resources []string, age time.Duration) ([]Overdue, error) {
	const op = "look for old data"
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	rows, err := m.pool.Query(ctx, m.layout.Render(readOverdue), filled(resources), age.Seconds())
	if err != nil {
		return nil, fail(op, err)
	}
	old, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Overdue, err error) {
		err = row.Scan(&o.Resource, &o.Since, &o.Never, &o.Lagging)
		o.Since = o.Since.UTC()
		return o, err
	})
	return old, fail(op, err)
}
