package mirror

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// rollbackTimeout bounds the goodbye after a failure; the connection is dropped
// when it is not enough.
const rollbackTimeout = 5 * time.Second

// Step is one page, or several that were joined, and where the last one leads.
type Step struct {
	Before, After Checkpoint // After's Epoch is set by Commit
	Batch         *Batch     // nil for a page without records
	RunID         int64
	Last          bool // the last page ended the round: last_success_at moves
	// Fresh says that the table very likely holds none of these rows yet, as in a
	// first sync. It makes the step cheaper when that is true, and changes nothing
	// when it is not.
	Fresh bool
}

// Counts say what became of records. Received = Staged + Stored() + Unchanged +
// Duplicates + Quarantined for a page; a merge receives nothing, its counts say
// what became of staged rows. Mended records are stored or unchanged like others,
// and noted in quarantine as well.
type Counts struct {
	Received    int64 `json:"received"`
	Staged      int64 `json:"staged"` // went to staging
	Inserted    int64 `json:"inserted"`
	Updated     int64 `json:"updated"`
	Deleted     int64 `json:"deleted"`
	Revived     int64 `json:"revived"`
	Unchanged   int64 `json:"unchanged"`
	Duplicates  int64 `json:"duplicates"`
	Quarantined int64 `json:"quarantined"`
	Mended      int64 `json:"mended"`
}

// Stored is the number of rows that were written.
func (c Counts) Stored() int64 { return c.Inserted + c.Updated + c.Deleted + c.Revived }

// Add returns the sum of both.
func (c Counts) Add(d Counts) Counts {
	return Counts{
		Received: c.Received + d.Received, Staged: c.Staged + d.Staged, Inserted: c.Inserted + d.Inserted, Updated: c.Updated + d.Updated,
		Deleted: c.Deleted + d.Deleted, Revived: c.Revived + d.Revived, Unchanged: c.Unchanged + d.Unchanged,
		Duplicates: c.Duplicates + d.Duplicates, Quarantined: c.Quarantined + d.Quarantined, Mended: c.Mended + d.Mended,
	}
}

// Commit writes a step's rows and its checkpoint in one transaction of two round
// trips and returns the new checkpoint. Either all of it is durable or nothing.
//
// KindFenced: the mirror does not stand at step.Before any more, nothing was
// written. KindTransient: rolled back, the same step may be tried again.
// KindUnreachable: the outcome is not known when the connection broke at the end;
// the caller reads the Checkpoint again and compares its Epoch; if the step had
// landed, the counts are what it did. A step that is
// repeated after a success nobody saw is KindFenced, never written twice.
func (m *Mirror) Commit(ctx context.Context, step Step) (Checkpoint, Counts, error) {
	op := "commit " + step.Before.Resource
	if err := step.check(op); err != nil {
		return Checkpoint{}, Counts{}, err
	}
	p := step.Batch
	if p == nil {
		p = NewBatch(nil, nil)
	}
	var after Checkpoint
	var counts Counts
	by := func(write func(context.Context, *pgx.Conn, Step, *Batch) (Checkpoint, Counts, error)) error {
		return m.transaction(ctx, opTimeout, func(ctx context.Context, conn *pgx.Conn) (err error) {
			after, counts, err = write(ctx, conn, step, p)
			return err
		})
	}
	var err error
	fresh := step.Fresh && len(p.rows) > 0
	if fresh {
		err = by(m.fill)
	}
	if !fresh || unfit(err) {
		err = by(m.write)
	}
	if err != nil {
		return Checkpoint{}, counts, fail(op, err)
	}
	return after, counts, nil
}

// transaction commits the transaction that f begins on its connection, unless f
// has ended it itself, or rolls it back when anything fails.
func (m *Mirror) transaction(ctx context.Context, timeout time.Duration, f func(ctx context.Context, conn *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := m.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // which drops a connection that is still in a transaction
	if err = f(ctx, conn.Conn()); err == nil && conn.Conn().PgConn().TxStatus() != 'I' {
		err = commit(ctx, conn.Conn())
	}
	if err != nil {
		rollback(ctx, conn)
	}
	return err
}

// snapshot is the round's: a last page may close it.
func (s Step) snapshot() string { return cmp.Or(s.After.SnapshotID, s.Before.SnapshotID) }

func (s Step) check(op string) error {
	if err := checkResources(op, []string{s.Before.Resource}); err != nil {
		return err
	}
	switch {
	case s.After.Resource != s.Before.Resource:
		return &Error{Kind: KindInternal, Op: op, Message: "a step leads from one resource to another"}
	case s.Before.Phase != PhaseIncremental || s.After.Phase != PhaseIncremental:
		return &Error{Kind: KindInternal, Op: op, Message: "pages of a rebuild do not go into the readers' table"}
	}
	return nil
}

// write sends BEGIN, the page and its quarantine in one round trip and proves the
// count before anybody commits.
func (m *Mirror) write(ctx context.Context, conn *pgx.Conn, step Step, p *Batch) (Checkpoint, Counts, error) {
	after := step.After
	after.Tenant = step.Before.Tenant
	b := newBatch(conn)
	b.add("begin")
	b.add(m.layout.RenderResource(writePage, after.Resource), pageArguments(step, p, m.channel())...)
	if len(p.notes) > 0 {
		b.add(m.layout.Render(writeNotes), noteArguments(step, p)...)
	}
	results, err := b.send(ctx)
	if err != nil {
		return Checkpoint{}, Counts{}, err
	}
	n, err := integers(results[1].Rows, writePageColumns)
	if err != nil {
		return Checkpoint{}, Counts{}, err
	}
	if n[0] == 0 {
		return Checkpoint{}, Counts{}, fenced("commit " + after.Resource)
	}
	after.Epoch = n[0]
	c := Counts{
		Received: p.received, Inserted: n[3], Updated: n[4], Deleted: n[5], Revived: n[6],
		Unchanged: int64(len(p.rows)) - n[1], Duplicates: p.duplicates, Quarantined: p.refused, Mended: p.mended,
	}
	if changed, written := n[1], n[2]; written != changed || c.Stored() != written ||
		c.Received != c.Stored()+c.Unchanged+c.Duplicates+c.Quarantined {
		return Checkpoint{}, Counts{}, &Error{
			Kind: KindInternal, Op: "commit " + after.Resource, Hint: hintAdded,
			Message: fmt.Sprintf("the page does not add up: %d changed, %d written, %+v", changed, written, c),
		}
	}
	return after, c, nil
}

// commit asks for the command's tag: a transaction that failed before answers
// ROLLBACK, and no error.
func commit(ctx context.Context, conn *pgx.Conn) error {
	tag, err := conn.Exec(ctx, "commit")
	if err != nil {
		return err
	}
	return committed(tag)
}

func committed(tag pgconn.CommandTag) error {
	if tag.String() != "COMMIT" {
		return &Error{Kind: KindTransient, Op: "commit", Message: "PostgreSQL rolled the transaction back"}
	}
	return nil
}

func rollback(ctx context.Context, conn *pgxpool.Conn) {
	if conn.Conn().IsClosed() || conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, "rollback") // the failure that led here is the one to report
}

// integers reads the one row of a result in text format.
func integers(rows [][][]byte, columns int) ([]int64, error) {
	if len(rows) != 1 || len(rows[0]) != columns {
		return nil, fmt.Errorf("a statement gave %d rows", len(rows))
	}
	n := make([]int64, columns)
	for i, text := range rows[0] {
		v, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return nil, err
		}
		n[i] = v
	}
	return n, nil
}
