package mirror

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Quarantined is a record that could not be mirrored as it came.
type Quarantined struct {
	ID          int64     `json:"id"`
	Resource    string    `json:"resource"`
	Kind        string    `json:"kind"` // "refused": not in the mirror; "mended": there, with U+FFFD for what no text column holds
	Reason      string    `json:"reason"`
	RecordID    string    `json:"record_id"`  // "" when it has none that can be read
	RawLength   int64     `json:"raw_length"` // bytes as received; of more than 64 MiB only the first 64 KiB are kept
	Seen        int64     `json:"seen"`       // how often the same bytes came
	RequestID   string    `json:"request_id"` // of the call that brought it last
	SnapshotID  string    `json:"snapshot_id"`
	RunID       int64     `json:"run_id"` // 0 when not known
	FirstSeenAt time.Time `json:"first_seen_at"`
	LastSeenAt  time.Time `json:"last_seen_at"`
	Raw         []byte    `json:"raw,omitempty"` // when asked for; personal data
}

// Selection chooses lines of the quarantine. The zero value of a field does not restrict.
type Selection struct {
	Resources []string
	IDs       []int64
	Kind      string // "refused" or "mended"
	After     int64  // only ids above it: where the next part of a long list begins
	Limit     int    // lines, 0 is 100, at most 10,000
	Raw       bool   // with the bytes
}

// selected is how every statement here reads a Selection's first three fields.
const selected = `
(cardinality($1::text[]) = 0 or q.resource = any ($1::text[])) and (cardinality($2::bigint[]) = 0 or q.id = any ($2::bigint[]))
and ($3::text = '' or q.kind = $3::text)`

const readQuarantine = `
select q.id, q.resource, q.kind, q.reason, coalesce(q.record_id, ''), q.raw_length, q.seen, q.request_id, q.snapshot_id,
       coalesce(q.run_id, 0), q.first_seen_at, q.last_seen_at, case when $6::boolean then q.raw end
from {sync}.quarantine q
where` + selected + ` and q.id > $4::bigint
order by q.id limit $5::bigint`

const (
	defaultListed = 100
	maxListed     = 10_000
)

// Quarantine lists what is in quarantine, in the order of ids.
func (m *Mirror) Quarantine(ctx context.Context, s Selection) ([]Quarantined, error) {
	const op = "list quarantine"
	if err := checkResources(op, s.Resources); err != nil {
		return nil, err
	}
	if s.Limit <= 0 {
		s.Limit = defaultListed
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	rows, err := m.pool.Query(ctx, m.layout.Render(readQuarantine),
		filled(s.Resources), filled(s.IDs), s.Kind, s.After, min(s.Limit, maxListed), s.Raw)
	if err != nil {
		return nil, fail(op, err)
	}
	lines, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (q Quarantined, err error) {
		err = row.Scan(&q.ID, &q.Resource, &q.Kind, &q.Reason, &q.RecordID, &q.RawLength, &q.Seen, &q.RequestID, &q.SnapshotID,
			&q.RunID, &q.FirstSeenAt, &q.LastSeenAt, &q.Raw)
		q.FirstSeenAt, q.LastSeenAt = q.FirstSeenAt.UTC(), q.LastSeenAt.UTC()
		return q, err
	})
	return lines, fail(op, err)
}

const dropQuarantine = `
with gone as (delete from {sync}.quarantine q where` + selected + ` returning q.resource)
select resource, count(*) from gone group by resource`

// Drop removes the selected lines for good, whatever After and Limit say, and returns how many there were of each resource.
func (m *Mirror) Drop(ctx context.Context, s Selection) (map[string]int64, error) {
	const op = "drop quarantine"
	if err := checkResources(op, s.Resources); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	rows, err := m.pool.Query(ctx, m.layout.Render(dropQuarantine), filled(s.Resources), filled(s.IDs), s.Kind)
	if err != nil {
		return nil, fail(op, err)
	}
	gone := map[string]int64{}
	var resource string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&resource, &n}, func() error {
		gone[resource] = n
		return nil
	})
	return gone, fail(op, err)
}

// Reason is how many records of a resource are in quarantine for one reason.
type Reason struct {
	Resource string `json:"resource"`
	Kind     string `json:"kind"`   // "refused" or "mended"
	Reason   string `json:"reason"` // words of ours, nothing out of a record
	Records  int64  `json:"records"`
}

// maxReasons bounds one answer of Reasons.
const maxReasons = 200

const readReasons = `
select q.resource, q.kind, q.reason, count(*) from {sync}.quarantine q
where q.resource = any ($1::text[])
group by 1, 2, 3 order by 1, 4 desc, 3 limit $2::integer`

// Reasons counts the resources' quarantine by reason, the commonest first.
func (m *Mirror) Reasons(ctx context.Context, resources []string) ([]Reason, error) {
	const op = "count quarantine"
	if err := checkResources(op, resources); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	rows, err := m.pool.Query(ctx, m.layout.Render(readReasons), filled(resources), maxReasons)
	if err != nil {
		return nil, fail(op, err)
	}
	reasons, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Reason])
	return reasons, fail(op, err)
}

// filled is an empty array for an empty list; nil would be a null.
func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
