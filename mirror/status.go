package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/migrations"
)

// Status is how the mirror stands, for people and machines.
type Status struct {
	Schema    string           `json:"schema"`
	Version   int64            `json:"schema_version"`
	At        time.Time        `json:"at"` // the database's clock
	Resources []ResourceStatus `json:"resources"`
}

// ResourceStatus is one resource's part. Its Phase is "first" until a round was
// complete: what is there until then is not all there is.
type ResourceStatus struct {
	Resource      string     `json:"resource"`
	Phase         Phase      `json:"phase"`
	Tenant        string     `json:"tenant"`
	LiveRows      int64      `json:"live_rows"`
	DeletedRows   int64      `json:"deleted_rows"`
	ChangeSeq     int64      `json:"change_seq"`
	DataCutoffAt  *time.Time `json:"data_cutoff_at"`  // of the last complete round
	LastSuccessAt *time.Time `json:"last_success_at"` // when that round ended
	AgeSeconds    *int64     `json:"age_seconds"`     // since the cut-off, or since the success when there was none
	PagesInHand   int64      `json:"pages_in_hand"`   // of a round that is not complete
	Quarantined   int64      `json:"quarantined"`
	Mended        int64      `json:"mended"`
	LastError     *LastError `json:"last_error"`
	Lease         *Holder    `json:"lease"` // nil when nobody holds it
	LastRun       *Run       `json:"last_run"`

	Pass          *PassStatus `json:"pass"`           // nil when nothing is staged
	RebuiltAt     *time.Time  `json:"rebuilt_at"`     // when the last rebuild was merged
	RebuildReason string      `json:"rebuild_reason"` // of that rebuild
	VerifiedAt    *time.Time  `json:"verified_at"`
	VerifiedDrift *Difference `json:"verified_drift"` // what that verification found

	Misfits []Misfit `json:"misfits"` // null when not looked for, or not known in time
	// Unfilled are typed columns whose paths lead to nothing in any live record.
	Unfilled []string `json:"unfilled,omitempty"`
	// IdleMasks are masked paths that hide nothing in any live record.
	IdleMasks []string `json:"idle_masks,omitempty"`
}

// PassStatus is a full pass in staging.
type PassStatus struct {
	Purpose    Purpose     `json:"purpose"`
	Phase      string      `json:"phase"` // "paging", "complete" or "held"
	Reason     string      `json:"reason"`
	Pages      int64       `json:"pages"`
	Rows       int64       `json:"rows"`
	Restarts   int64       `json:"restarts"` // how often it was begun anew
	StartedAt  time.Time   `json:"started_at"`
	Difference *Difference `json:"difference"` // what a merge would do, when the deletion fuse holds it
}

// LastError is why the last run failed, until a round is complete again.
type LastError struct {
	Code      string    `json:"code"`
	Message   string    `json:"message"`
	RequestID string    `json:"request_id"`
	At        time.Time `json:"at"`
}

const readStatus = `
select w.resource, case when s.last_success_at is null then 'first' else s.phase end, coalesce(s.tenant, ''), coalesce(s.live_rows, 0), coalesce(s.deleted_rows, 0),
       coalesce(s.change_seq, 0), s.complete_cutoff_at, s.last_success_at,
       extract(epoch from now() - coalesce(s.complete_cutoff_at, s.last_success_at))::bigint, coalesce(s.pages, 0),
       (select count(*) from {sync}.quarantine q where q.resource = w.resource and q.kind = 'refused'),
       (select count(*) from {sync}.quarantine q where q.resource = w.resource and q.kind = 'mended'),
       coalesce(s.last_error_code, ''), coalesce(s.last_error_message, ''), coalesce(s.last_error_request_id, ''), s.last_error_at, now()
from unnest($1::text[]) with ordinality as w (resource, n)
left join {sync}.state s on s.resource = w.resource
order by w.n`

// Status reads how the resources stand; SELECT on the bookkeeping is enough. It
// is KindSchema when there is no bookkeeping yet.
func (m *Mirror) Status(ctx context.Context, resources []string) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if err := checkResources("status", resources); err != nil {
		return Status{}, err
	}
	state, err := migrations.Inspect(ctx, m.pool, m.layout, nil)
	if err != nil {
		return Status{}, fail("status", err)
	}
	if text := pending(state); text != "" {
		return Status{}, &Error{Kind: KindSchema, Op: "status", Message: text, Hint: "run `xiaoqu-sync migrate`"}
	}
	status := Status{Schema: m.layout.Schema(), Version: state.Version, Resources: []ResourceStatus{}}
	if err := m.readStatus(ctx, resources, &status); err != nil {
		return Status{}, fail("status", err)
	}
	return status, nil
}

func (m *Mirror) readStatus(ctx context.Context, resources []string, status *Status) error {
	rows, err := m.pool.Query(ctx, m.layout.Render(readStatus), resources)
	if err != nil {
		return err
	}
	status.Resources, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (ResourceStatus, error) {
		var r ResourceStatus
		var e LastError
		var failed *time.Time
		err := row.Scan(&r.Resource, &r.Phase, &r.Tenant, &r.LiveRows, &r.DeletedRows, &r.ChangeSeq, &r.DataCutoffAt, &r.LastSuccessAt,
			&r.AgeSeconds, &r.PagesInHand, &r.Quarantined, &r.Mended, &e.Code, &e.Message, &e.RequestID, &failed, &status.At)
		r.DataCutoffAt, r.LastSuccessAt = utc(r.DataCutoffAt), utc(r.LastSuccessAt)
		if failed != nil {
			e.At = failed.UTC()
			r.LastError = &e
		}
		return r, err
	})
	status.At = status.At.UTC()
	for i := range status.Resources {
		r := &status.Resources[i]
		holder, err := m.holder(ctx, r.Resource)
		if err != nil {
			return err
		}
		if holder != (Holder{}) {
			r.Lease = &holder
		}
		last, err := m.runs(ctx, r.Resource, 1)
		if err != nil {
			return err
		}
		if len(last) > 0 {
			r.LastRun = &last[0]
		}
		if err := m.readPasses(ctx, r); err != nil {
			return err
		}
	}
	return err
}

const readPasses = `
select s.rebuilt_at, s.rebuild_reason, s.verified_at, s.verified_drift::text,
       p.purpose, case when p.held then 'held' when p.complete then 'complete' else 'paging' end,
       p.reason, p.pages, p.rows, p.restarts, p.started_at, p.held_difference::text
from {sync}.state s left join {sync}.passes p on p.resource = s.resource
where s.resource = $1::text`

// readPasses fills in what full passes found and the one that is staged.
func (m *Mirror) readPasses(ctx context.Context, r *ResourceStatus) error {
	var (
		drift, reason, difference *string
		purpose                   *Purpose
		phase                     string
		pages, rows, restarts     *int64
		started                   *time.Time
	)
	err := m.pool.QueryRow(ctx, m.layout.Render(readPasses), r.Resource).Scan(&r.RebuiltAt, &r.RebuildReason, &r.VerifiedAt, &drift,
		&purpose, &phase, &reason, &pages, &rows, &restarts, &started, &difference)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	r.RebuiltAt, r.VerifiedAt = utc(r.RebuiltAt), utc(r.VerifiedAt)
	if r.VerifiedDrift, err = readDifference(drift); err != nil || purpose == nil {
		return err
	}
	r.Pass = &PassStatus{
		Purpose: *purpose, Phase: phase, Reason: *reason, Pages: *pages, Rows: *rows, Restarts: *restarts, StartedAt: started.UTC(),
	}
	r.Pass.Difference, err = readDifference(difference)
	return err
}

func readDifference(text *string) (*Difference, error) {
	if text == nil {
		return nil, nil
	}
	var d Difference
	err := json.Unmarshal([]byte(*text), &d)
	return &d, err
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// storable makes a foreign text fit for a text column.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
