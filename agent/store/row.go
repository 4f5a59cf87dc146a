package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// taskColumns are what scanTask takes, of agent_tasks as t.
const taskColumns = `t.id, t.door, t.key, t.caller, t.capability, t.input, t.reply_to, t.state, t.choose, t.proposals, t.chosen,
	t.summary, t.data, t.failure, t.links, t.attempt, t.created_at, t.started_at, t.ended_at`

// scanTask reads taskColumns, and what comes before them into first.
func scanTask(row pgx.CollectableRow, first ...any) (agent.Task, error) {
	var (
		t                                               agent.Task
		state                                           string
		input, replyTo, proposals, data, failure, links []byte
		summary                                         *string
	)
	err := row.Scan(append(first, &t.ID, &t.Door, &t.Key, &t.Caller, &t.Capability, &input, &replyTo, &state, &t.Choose, &proposals, &t.Chosen,
		&summary, &data, &failure, &links, &t.Attempt, &t.CreatedAt, &t.StartedAt, &t.EndedAt)...)
	if err != nil {
		return t, err
	}
	t.State, t.Input, t.ReplyTo = agent.State(state), input, replyTo
	t.CreatedAt, t.StartedAt, t.EndedAt = t.CreatedAt.UTC(), utc(t.StartedAt), utc(t.EndedAt)
	if summary != nil {
		t.Result = &agent.Result{Summary: *summary, Data: data}
	}
	for _, part := range []struct {
		text []byte
		to   any
	}{{proposals, &t.Proposals}, {failure, &t.Failure}, {links, &t.Links}} {
		if part.text == nil {
			continue
		}
		if err := json.Unmarshal(part.text, part.to); err != nil {
			return t, fmt.Errorf("task %s cannot be read as it was written", t.ID)
		}
	}
	return t, nil
}

func task(row pgx.CollectableRow) (agent.Task, error) { return scanTask(row) }

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// orNull is a JSON text for a bytea column, null for what is empty.
func orNull[T any](v T, empty bool) ([]byte, error) {
	if empty {
		return nil, nil
	}
	return json.Marshal(v)
}

// storable reports whether a text column takes s.
func storable(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
