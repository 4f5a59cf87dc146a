package store

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// maxWhy bounds the reason that is kept, in bytes.
const maxWhy = 500

// An event waits for those of its task before it. One that waits for a change of
// its task is due again when the task is not as the last attempt saw it: nobody has
// to wake it, and no change between attempt and verdict is missed.
const claimEvent = `
with next as (
	select e.seq, t.changes
	from {sync}.agent_events e join {sync}.agent_tasks t on t.id = e.task
	where (e.state = 'due' or e.state = 'waiting' and e.seen <> t.changes) and e.due_at <= now() and t.door = any ($1::text[])
		and not exists (select from {sync}.agent_events p where p.task = e.task and p.seq < e.seq and p.state in ('due', 'waiting'))
	order by e.seq limit 1
	for update of e skip locked
)
update {sync}.agent_events e
set state = 'due', attempts = e.attempts + 1, seen = next.changes, due_at = now() + $2::float8 * interval '1 second'
from next, {sync}.agent_tasks t
where e.seq = next.seq and t.id = e.task
returning e.id, e.kind, e.ref, e.at, e.attempts, ` + taskColumns

// ClaimEvent takes the oldest that is due for one of the doors, with its task; nil
// when there is none.
func (s *Store) ClaimEvent(ctx context.Context, doors []string, hold time.Duration) (*agent.Event, *agent.Task, error) {
	var e agent.Event
	var t *agent.Task
	scan := func(row pgx.CollectableRow) (agent.Task, error) {
		var kind string
		t, err := scanTask(row, &e.ID, &kind, &e.Ref, &e.At, &e.Attempts)
		e.Kind, e.Task = agent.EventKind(kind), t.ID
		return t, err
	}
	err := s.do(ctx, "claim an event", statement{claimEvent, []any{doors, seconds(hold)}, one(&t, scan)})
	if err != nil || t == nil {
		return nil, nil, err
	}
	e.At = e.At.UTC()
	e.Attempts-- // those before this one
	return &e, t, nil
}

const settleEvent = `
update {sync}.agent_events
set state = $3::text, due_at = now() + $4::float8 * interval '1 second', why = $5::text
where id = $1::text and attempts = $2::integer and state = 'due'`

// SettleEvent notes the verdict; after Again it is due after wait. A verdict that
// comes when another attempt has begun is dropped: that one has its own.
func (s *Store) SettleEvent(ctx context.Context, e agent.Event, v agent.Verdict, wait time.Duration, why string) error {
	state := string(v)
	switch v {
	case agent.Again:
		state = "due"
	case agent.Delivered, agent.Waiting, agent.Refused:
		wait = 0
	default:
		return fmt.Errorf("agent/store: settle an event: no verdict %q", v)
	}
	return s.do(ctx, "settle an event", statement{sql: settleEvent, args: []any{e.ID, e.Attempts + 1, state, seconds(wait), cutText(why)}})
}

// cutText is what a text column takes, at most maxWhy bytes of it.
func cutText(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
	for len(s) > maxWhy {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}
