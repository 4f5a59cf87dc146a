package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// maxKey bounds a caller's key, in bytes, so that it can be indexed.
const maxKey = 512

const insertTask = `
insert into {sync}.agent_tasks (id, door, key, caller, capability, input, input_hash, reply_to, choose, at_once, state, attempt, started_at, due_at)
values ($1::text, $2::text, $3::text, $4::text, $5::text, $6::bytea, $7::bytea, $8::bytea, $9::boolean, $10::boolean,
	case when $10 then 'running' else 'accepted' end, case when $10 then 1 else 0 end, case when $10 then now() end,
	now() + $11::float8 * interval '1 second')
on conflict (door, key) do nothing
returning id`

// A call whose process died while its caller waited is done by the same call again.
const takeOver = `
update {sync}.agent_tasks
set attempt = attempt + 1, due_at = now() + $5::float8 * interval '1 second'
where door = $1::text and key = $2::text and at_once and state = 'running' and due_at < now()
	and capability = $3::text and input_hash = $4::bytea
returning id`

const taskByKey = `select ` + taskColumns + ` from {sync}.agent_tasks t where t.door = $1::text and t.key = $2::text`

const taskByID = `select ` + taskColumns + ` from {sync}.agent_tasks t where t.id = $1::text`

// Begin makes the task unless its door and key have one; see agent.Tasks.
func (s *Store) Begin(ctx context.Context, t agent.Task, claim bool, hold time.Duration) (agent.Task, bool, error) {
	if len(t.Key) > maxKey || !storable(t.Key) || !storable(t.Caller) {
		return agent.Task{}, false, &agent.Failure{Class: agent.Invalid, Code: "invalid_key", Message: fmt.Sprintf("an invocation's or order's id is text without NUL, of at most %d bytes", maxKey)}
	}
	hash, err := inputHash(t.Input)
	if err != nil {
		return agent.Task{}, false, err
	}
	if !claim {
		hold = 0
	}
	var fresh, again bool
	var made *agent.Task
	all := []statement{{insertTask, []any{
		t.ID, t.Door, t.Key, t.Caller, t.Capability, []byte(t.Input), hash, []byte(t.ReplyTo), t.Choose, claim, seconds(hold),
	}, some(&fresh)}}
	if claim {
		// Such a call only reads: whoever asks again after a crash has it read again.
		all = append([]statement{{sql: loosely}}, all...)
		all = append(all, statement{takeOver, []any{t.Door, t.Key, t.Capability, hash, seconds(hold)}, some(&again)})
	}
	// Its snapshot is later, so it sees the row that the first one met.
	all = append(all, statement{taskByKey, []any{t.Door, t.Key}, one(&made, task)})
	if err := s.do(ctx, "begin a task", all...); err != nil {
		return agent.Task{}, false, err
	}
	if made == nil { // removed in between: the next call begins anew
		return agent.Task{}, false, unreachable()
	}
	return *made, fresh || again, nil
}

// inputHash is of the JSON but for space.
func inputHash(input json.RawMessage) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, input); err != nil {
		return nil, &agent.Failure{Class: agent.Invalid, Code: "invalid_input", Message: "the input is not JSON"}
	}
	sum := sha256.Sum256(b.Bytes())
	return sum[:], nil
}

const claimTask = `
update {sync}.agent_tasks t
set state = 'running', attempt = t.attempt + 1, started_at = coalesce(t.started_at, now()), due_at = now() + $1::float8 * interval '1 second'
where t.id = (
	select n.id from {sync}.agent_tasks n
	where n.state in ('accepted', 'running') and not n.at_once and n.due_at <= now()
		and (n.capability = any ($2::text[]) or n.due_at < now() - $3::float8 * interval '1 second')
	order by n.created_at, n.id limit 1
	for update skip locked)
returning ` + taskColumns

// orphanTime is how long a task waits for a process that may do it. It is as long as
// a task may take: by then, nobody who may is only busy.
const orphanTime = time.Hour

// Claim takes the oldest task that nobody works on, for hold; nil when there is none.
// Of others than the able capabilities it takes what was due for more than an hour.
func (s *Store) Claim(ctx context.Context, able []string, hold time.Duration) (*agent.Task, error) {
	var t *agent.Task
	err := s.do(ctx, "claim a task", statement{claimTask, []any{seconds(hold), able, seconds(orphanTime)}, one(&t, task)})
	return t, err
}

// Only the attempt that the row is at may change it.
const mine = ` where id = $1::text and attempt = $2::integer and state = 'running'`

const holdTask = `update {sync}.agent_tasks set due_at = now() + $3::float8 * interval '1 second'` + mine + ` returning id`

// Hold prolongs the claim; false when it was lost.
func (s *Store) Hold(ctx context.Context, t agent.Task, hold time.Duration) (ok bool, err error) {
	err = s.do(ctx, "hold a task", statement{holdTask, []any{t.ID, t.Attempt, seconds(hold)}, some(&ok)})
	return ok, err
}

const postponeTask = `update {sync}.agent_tasks set state = 'accepted', due_at = now() + $3::float8 * interval '1 second'` + mine

// Postpone gives the claim back: the task is due again after wait.
func (s *Store) Postpone(ctx context.Context, t agent.Task, wait time.Duration) error {
	return s.do(ctx, "postpone a task", statement{sql: postponeTask, args: []any{t.ID, t.Attempt, seconds(wait)}})
}

const forgetTask = `delete from {sync}.agent_tasks` + mine

// Forget removes a task that ended in a way that must not be kept.
func (s *Store) Forget(ctx context.Context, t agent.Task) error {
	return s.do(ctx, "forget a task", statement{sql: forgetTask, args: []any{t.ID, t.Attempt}})
}

// Task reads one by its id; nil when there is none.
func (s *Store) Task(ctx context.Context, id string) (*agent.Task, error) {
	return s.oneTask(ctx, "read a task", nil, id)
}

// ByKey reads the task of a door's key; nil when there is none.
func (s *Store) ByKey(ctx context.Context, door, key string) (*agent.Task, error) {
	if !storable(key) {
		return nil, nil
	}
	var t *agent.Task
	err := s.do(ctx, "read a task", statement{taskByKey, []any{door, key}, one(&t, task)})
	return t, err
}

const cancelTask = `
update {sync}.agent_tasks set state = 'cancelled', ended_at = now(), changes = changes + 1
where id = $1::text and state in ('accepted', 'choosing')`

// Cancel ends a task that nobody works on; the task as it then is. Its platform,
// which asked, is told nothing.
func (s *Store) Cancel(ctx context.Context, id string) (*agent.Task, error) {
	return s.oneTask(ctx, "cancel a task", &statement{sql: cancelTask, args: []any{id}}, id)
}

// The time that a person took is not the task's: it starts anew.
const chooseTask = `
update {sync}.agent_tasks set chosen = $2::text, state = 'accepted', started_at = null, due_at = now(), changes = changes + 1
where id = $1::text and state = 'choosing'`

// Choose notes the choice once, and lets the task run on; the task as it then is.
func (s *Store) Choose(ctx context.Context, id, proposal string) (*agent.Task, error) {
	return s.oneTask(ctx, "note a choice", &statement{sql: chooseTask, args: []any{id, proposal}}, id)
}

// oneTask reads the task after the change, in the same transaction.
func (s *Store) oneTask(ctx context.Context, op string, change *statement, id string) (*agent.Task, error) {
	if !storable(id) {
		return nil, nil
	}
	var t *agent.Task
	all := []statement{{taskByID, []any{id}, one(&t, task)}}
	if change != nil {
		all = append([]statement{*change}, all...)
	}
	err := s.do(ctx, op, all...)
	return t, err
}
