// Package agent is the one catalogue of what agents may ask of the mirror and of
// its worker, and the tasks that they start. Doors (agent/api, agent/mcp,
// agent/relay) render the catalogue for a platform; they hold no capability of
// their own, and this package knows none of their words.
//
// What lives here: ids, schemas, titles, risks, time limits; the check of an input
// before anything runs; the life of a task; the outbox of events. What does not:
// HTTP, signatures, SQL, what a platform calls things.
//
// Invariants:
//
//  1. Nothing runs whose input does not fit its schema, or that its caller was not
//     allowed by name.
//  2. A task is made once for each door and key. The same key gives the same answer,
//     after a restart too; a key that comes back with another input is refused.
//  3. A task's end and the events that tell of it are written in one transaction.
//  4. A failure that may pass is never kept as an answer.
//  5. No transaction is held across a call to the remote or to a platform.
//  6. Records and inputs reach no log.
package agent
