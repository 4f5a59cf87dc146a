package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// One statement, so that nothing of it is written when the claim was lost. The
// order of the events' numbers is that of the list.
const finishTask = `
with done as (
	update {sync}.agent_tasks
	set state = $3::text, summary = $4::text, data = $5::bytea, failure = $6::bytea, proposals = coalesce($7::bytea, proposals), links = $8::bytea,
		ended_at = case when $3 <> 'choosing' then now() end, changes = changes + 1` + mine + `
	returning id
), documents as (
	insert into {sync}.agent_documents (hash, task, title, name, type, body, expires_at)
	select d.hash, done.id, d.title, d.name, d.type, d.body, $14::timestamptz
	from done, unnest($9::bytea[], $10::text[], $11::text[], $12::text[], $13::bytea[]) as d (hash, title, name, type, body)
), events as (
	insert into {sync}.agent_events (id, task, kind, ref)
	select e.id, done.id, e.kind, e.ref
	from done, unnest($15::text[], $16::text[], $17::text[]) with ordinality as e (id, kind, ref, n)
	order by e.n
)
select id from done`

// Finish ends this attempt and writes its events; false when the claim was lost.
func (s *Store) Finish(ctx context.Context, t agent.Task, o agent.Outcome) (ok bool, err error) {
	e, err := encode(o)
	if err != nil {
		return false, fmt.Errorf("agent/store: finish a task: %w", err)
	}
	d := newDocuments(o, time.Now().Add(o.Keep))
	links, err := orNull(d.links, len(d.links) == 0)
	if err != nil {
		return false, fmt.Errorf("agent/store: finish a task: %w", err)
	}
	ids, kinds, refs := eventsOf(o)
	var all []statement
	if !o.Tell { // of a call that answered at once, see Begin
		all = append(all, statement{sql: loosely})
	}
	err = s.do(ctx, "finish a task", append(all, statement{finishTask, []any{
		t.ID, t.Attempt, string(o.State), e.summary, e.data, e.failure, e.proposals, links,
		d.hashes, d.titles, d.names, d.types, d.bodies, d.expires, ids, kinds, refs,
	}, some(&ok)})...)
	return ok, err
}

// encoded is an outcome for the task's columns.
type encoded struct {
	summary                  *string
	data, failure, proposals []byte
}

func encode(o agent.Outcome) (e encoded, err error) {
	if o.Result != nil {
		e.summary, e.data = &o.Result.Summary, orEmptyJSON(o.Result.Data)
	}
	if e.failure, err = orNull(o.Failure, o.Failure == nil); err != nil {
		return e, err
	}
	e.proposals, err = orNull(o.Proposals, len(o.Proposals) == 0)
	return e, err
}

func orEmptyJSON(text json.RawMessage) []byte {
	if len(text) == 0 {
		return []byte("null")
	}
	return text
}

// documents are a result's for the table, column by column.
type documents struct {
	hashes, bodies       [][]byte
	titles, names, types []string
	links                []agent.Link
	expires              time.Time
}

func newDocuments(o agent.Outcome, expires time.Time) documents {
	d := documents{
		hashes: [][]byte{}, bodies: [][]byte{}, titles: []string{}, names: []string{}, types: []string{},
		expires: expires.UTC().Truncate(time.Microsecond),
	}
	if o.Result == nil {
		return d
	}
	for _, x := range o.Result.Documents {
		token, sum := rand.Text(), sha256.Sum256(x.Body)
		d.hashes, d.bodies = append(d.hashes, hashOf(token)), append(d.bodies, append([]byte{}, x.Body...))
		d.titles, d.names, d.types = append(d.titles, x.Title), append(d.names, x.Name), append(d.types, x.Type)
		d.links = append(d.links, agent.Link{
			Token: token, Title: x.Title, Name: x.Name, Type: x.Type, Size: int64(len(x.Body)), SHA256: hex.EncodeToString(sum[:]), ExpiresAt: d.expires,
		})
	}
	return d
}

// eventsOf are what the outcome's platform is told, in order.
func eventsOf(o agent.Outcome) (ids, kinds, refs []string) {
	ids, kinds, refs = []string{}, []string{}, []string{}
	if !o.Tell {
		return ids, kinds, refs
	}
	add := func(kind agent.EventKind, ref string) {
		ids, kinds, refs = append(ids, "evt_"+rand.Text()), append(kinds, string(kind)), append(refs, ref)
	}
	switch o.State {
	case agent.Choosing:
		for _, p := range o.Proposals {
			add(agent.EventProposal, p.ID)
		}
	case agent.Completed:
		add(agent.EventCompleted, "")
	case agent.Failed:
		add(agent.EventFailed, "")
	}
	return ids, kinds, refs
}

// hashOf is what is stored of a secret. It is random, so it needs no salt.
func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
