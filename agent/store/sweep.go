package store

import (
	"context"
	"time"
)

// sweepBatch bounds one transaction of a sweep, in tasks.
const sweepBatch = 500

// What ended goes with its events and documents, and so does a call that was left
// in the middle and that nobody made again.
const sweepTasks = `
with old as (
	select id from {sync}.agent_tasks
	where ended_at < now() - $1::float8 * interval '1 second'
		or at_once and state = 'running' and due_at < now() - $1::float8 * interval '1 second'
	limit $2::integer for update skip locked
)
delete from {sync}.agent_tasks t using old where t.id = old.id returning t.id`

const (
	sweepDocuments = `delete from {sync}.agent_documents where expires_at < now()`
	sweepCodes     = `delete from {sync}.agent_codes where expires_at < now()`
)

// Sweep removes tasks that ended longer ago than keep, and documents and codes that
// expired. It returns how many tasks it removed.
func (s *Store) Sweep(ctx context.Context, keep time.Duration) (int64, error) {
	if err := s.do(ctx, "sweep", statement{sql: sweepDocuments}, statement{sql: sweepCodes}); err != nil {
		return 0, err
	}
	var total int64
	for {
		var n int64
		if err := s.do(ctx, "sweep", statement{sweepTasks, []any{seconds(keep), sweepBatch}, count(&n)}); err != nil {
			return total, err
		}
		if total += n; n < sweepBatch {
			return total, nil
		}
	}
}
