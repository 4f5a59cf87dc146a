// Package migrations holds the mirror's schema: numbered SQL files, embedded in
// the binary, and the one way to apply them.
//
// The numbered files make the bookkeeping schema (<schema>_sync) and the
// freshness view. One unnumbered template makes the objects of one resource;
// a resource is data, so its table is made when its name is first configured.
//
// What may not live here: statements that read or write rows of the mirror (they
// are in package mirror), and anything that knows the remote.
//
// Invariants:
//
//   - A numbered file never changes once it was released; a new need is a new number.
//   - Every name in the SQL is qualified, so no statement depends on search_path.
//   - Applying is safe with any number of processes at once, also behind a
//     connection pooler in transaction mode, and needs no right to create
//     anything once everything is there.
//   - A database that is newer than the binary is never touched.
package migrations
