package mirror

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Run is one run of one resource in the run log.
type Run struct {
	ID        int64      `json:"id"`
	Resource  string     `json:"resource"`
	Mode      string     `json:"mode"`    // how it was started: "sync", "run", …
	Outcome   string     `json:"outcome"` // "" while it runs, "abandoned" when it never said
	Code      string     `json:"code"`    // of the error that ended it, "" when it went well
	Message   string     `json:"message"`
	RequestID string     `json:"request_id"` // of the last call to the remote
	Host      string     `json:"host"`
	PID       int        `json:"pid"`
	StartedAt time.Time  `json:"started_at"` // set by BeginRun when zero
	EndedAt   *time.Time `json:"ended_at"`   // set by EndRun when nil
	Pages     int64      `json:"pages"`
	Counts    Counts     `json:"counts"`
	Retries   int64      `json:"retries"`
	Notices   int64      `json:"notices"` // of the remote, on the pages
	// KeyVersion is what its store calls the version of the service key that the
	// run used at its end; "" where keys have no version.
	KeyVersion string `json:"key_version"`
}

// OutcomeAbandoned is the outcome of a run that ended without a word: killed, or
// cut off from the database.
const OutcomeAbandoned = "abandoned"

const beginRun = `
with left_open as (
    update {sync}.runs set outcome = '` + OutcomeAbandoned + `', ended_at = now()
    where resource = $1::text and ended_at is null
)
insert into {sync}.runs (resource, mode, host, pid, started_at)
values ($1::text, $2::text, $3::text, $4::integer, coalesce($5::timestamptz, now()))
returning id`

// BeginRun notes a run's beginning and returns its id. Earlier runs of this
// resource that have no end are closed as abandoned: the caller holds the lease,
// so none of them can be alive.
func (m *Mirror) BeginRun(ctx context.Context, r Run) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	var started *time.Time
	if !r.StartedAt.IsZero() {
		started = &r.StartedAt
	}
	var id int64
	err := m.pool.QueryRow(ctx, m.layout.Render(beginRun), r.Resource, r.Mode, r.Host, r.PID, started).Scan(&id)
	return id, fail("begin run of "+r.Resource, err)
}

// One statement ends the run, notes its error beside the state, and keeps the log
// bounded: of a resource's runs those behind the newest 10,000 and older than 90
// days go, a few at a time.
const endRun = `
with ended as (
    update {sync}.runs
    set mode = $3::text, outcome = $4::text, code = $5::text, message = $6::text, request_id = $7::text,
        ended_at = coalesce($8::timestamptz, now()), pages = $9::bigint, retries = $10::bigint,
        received = $11::bigint, inserted = $12::bigint, updated = $13::bigint, deleted = $14::bigint, revived = $15::bigint,
        unchanged = $16::bigint, duplicates = $17::bigint, quarantined = $18::bigint, mended = $19::bigint,
        staged = $20::bigint, notices = $21::bigint, key_version = $22::text
    where id = $1::bigint and resource = $2::text
), noted as (
    update {sync}.state
    set last_error_code = $5::text, last_error_message = $6::text, last_error_request_id = $7::text, last_error_at = now()
    where resource = $2::text and $5::text <> ''
), oldest as (
    select id, started_at from {sync}.runs where resource = $2::text order by id limit 100
), bound as (
    select id from {sync}.runs where resource = $2::text order by id desc offset 10000 limit 1
)
delete from {sync}.runs r using oldest o
where r.id = o.id and r.id <> $1::bigint
  and (o.started_at < now() - interval '90 days' or o.id <= (select id from bound))`

// EndRun notes a run's end: outcome, counters, the last call's request id. When
// the run has a Code it becomes the resource's last error, which the next
// complete round clears.
func (m *Mirror) EndRun(ctx context.Context, r Run) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	c := r.Counts
	_, err := m.pool.Exec(ctx, m.layout.Render(endRun), r.ID, r.Resource, r.Mode, r.Outcome, r.Code, storable(r.Message), storable(r.RequestID),
		r.EndedAt, r.Pages, r.Retries, c.Received, c.Inserted, c.Updated, c.Deleted, c.Revived, c.Unchanged, c.Duplicates, c.Quarantined, c.Mended, c.Staged, r.Notices, r.KeyVersion)
	return fail("end run of "+r.Resource, err)
}

// maxRuns bounds one answer of Runs.
const maxRuns = 1000

const readRuns = `
select id, resource, mode, outcome, code, message, request_id, host, pid, started_at, ended_at, pages, retries,
       received, inserted, updated, deleted, revived, unchanged, duplicates, quarantined, mended, staged, notices, key_version
from {sync}.runs where resource = $1::text order by id desc limit $2::integer`

// Runs lists a resource's runs, the newest first: at most limit of them, and
// never more than 1000.
func (m *Mirror) Runs(ctx context.Context, resource string, limit int) ([]Run, error) {
	op := "runs of " + resource
	if err := checkResources(op, []string{resource}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	runs, err := m.runs(ctx, resource, min(max(limit, 0), maxRuns))
	return runs, fail(op, err)
}

func (m *Mirror) runs(ctx context.Context, resource string, limit int) ([]Run, error) {
	rows, err := m.pool.Query(ctx, m.layout.Render(readRuns), resource, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Run, err error) {
		c := &r.Counts
		err = row.Scan(&r.ID, &r.Resource, &r.Mode, &r.Outcome, &r.Code, &r.Message,
			&r.RequestID, &r.Host, &r.PID, &r.StartedAt, &r.EndedAt, &r.Pages, &r.Retries,
			&c.Received, &c.Inserted, &c.Updated, &c.Deleted, &c.Revived, &c.Unchanged, &c.Duplicates, &c.Quarantined, &c.Mended, &c.Staged, &r.Notices, &r.KeyVersion)
		r.StartedAt, r.EndedAt = r.StartedAt.UTC(), utc(r.EndedAt)
		return r, err
	})
}
