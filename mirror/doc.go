// Package mirror is the PostgreSQL side: every statement, every row, and what
// PostgreSQL's refusals mean in our own words (Error).
//
// A page becomes rows in Go, where one bad record is set aside before it could
// fail a statement: row.go judges one record, page.go a page's batch. commit.go writes
// pages and their checkpoint in one transaction of two round trips, fill.go the
// same where all rows are new.
//
// A full pass goes to a staging table with a position of its own (pass.go,
// stage.go). compare.go sets it against the readers' table, merge.go writes the
// differences in one transaction, verify.go only reports them.
//
// What may not live here: anything that knows the remote's wire, and judgements
// about when to retry or rebuild (package sync). pgx does not leave this package,
// the migrations and localpg.
//
// Invariants:
//
//   - A checkpoint moves only in the transaction that wrote its rows.
//   - Every write of a state row compares its epoch and raises it. Two workers
//     cannot both go on from one checkpoint; the second gets KindFenced.
//   - In every page: received = staged + stored + unchanged + duplicates +
//     quarantined, or nothing of it is committed.
//   - A full pass reaches readers whole or not at all: no statement but the merge's
//     reads staging for the readers' table, and no merge begins before staging was
//     counted and found to be what its pass promises.
//   - Locks are taken in one order: state row, pass row, staging, the readers' rows.
//   - A row is unchanged when its content hash is; unchanged rows are not written.
//   - change_seq grows with every change of a row, in commit order within a resource.
//   - Statements are qualified, cast and independent of the session, so that a
//     pooler in transaction mode may stand between.
//   - Error texts hold no password and nothing out of a record.
package mirror
