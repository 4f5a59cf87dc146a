// Package store keeps what the agents' doors must not lose, in PostgreSQL: tasks,
// the outbox of their events, documents, tokens, binding codes. It also reads the
// mirror's views for them, with the reader's role and no other.
//
// What lives here: SQL, SQLSTATE, hashes of secrets. What does not: what a
// capability is, and any word of a platform.
//
// Invariants:
//
//  1. A call is one round trip and one transaction: settings, statements, Sync. So a
//     pooler in transaction mode may stand between, and nothing is left open.
//  2. What an attempt writes is compared with the attempt that the row is at: of two
//     workers one ends a task, once.
//  3. A task's end, its documents and its events are written together.
//  4. Tokens, codes and links are stored as SHA-256; each has 80 random bits or more.
//  5. Names of tables and columns come from the configuration alone, values are
//     parameters alone.
//  6. Error texts hold nothing of a record, an input or a secret.
package store
