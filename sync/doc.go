// Package sync is the protocol and the judgement: it reads pages of changes
// from a Source, decides what each one means, and hands the Ledger one Step
// at a time. It knows neither HTTP nor SQL.
//
// # Six invariants
//
//  1. A checkpoint moves only in the transaction that wrote its rows.
//  2. Only a last page (has_more=false) moves the sync token.
//  3. A step commits only if the mirror still stands where the step began:
//     a compare-and-set on the state row, which also fences a worker that
//     lost its lease.
//  4. Readers see the mirror before a rebuild or after it, never in between,
//     and never empty because of one.
//  5. Every refusal is named once (in remote), judged once (in policy.go),
//     spoken once (in cmd).
//  6. Killing the process between any two instructions loses nothing and
//     repeats at most the pages in flight.
//
// # Where things are
//
//   - advance.go: what a page does to a checkpoint. Pure.
//   - trail.go: what a round has seen so far, so that it cannot go in circles.
//   - policy.go: what to do about an error. Pure; the only such table.
//   - retry.go: how long to wait, and the loops that wait.
//   - preflight.go: may this service token scan, and is it the same tenant?
//   - walk.go: a resource's pages, the next ones fetched while the current one
//     commits, and what waits committed together.
//   - window.go: how much may wait.
//   - round.go: pages of changes into the readers' table.
//   - rebuild.go: full passes into staging, and what becomes of them: merge,
//     dry run, verification.
//   - engine.go, seat.go: tasks, leases, the run log, the resources side by side.
//   - memory.go: what an engine keeps from one run to the next.
//   - schedule.go, plan.go: moments, jitter, catch-up. Pure.
//   - timetable.go: the one place that waits for a moment; hands.go: who is busy.
//
// No file here imports the standard library's package of the same name:
// channels, errgroup and PostgreSQL hold the state.
package sync
