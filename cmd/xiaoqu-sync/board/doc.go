// Package board is the daemon's HTTP side: is it alive (/healthz), may it be
// relied on (/readyz), the figures for Prometheus (/metrics, made by its neighbour
// metrics), and a page for people (/) on which a person on night duty sees in
// two seconds whether all is well.
//
// The files, from the outside inwards: server.go listens and stops; board.go has
// the paths; guard.go is what every answer passes; page.go reads the mirror and
// makes the page's view of it; verdict.go judges; chart.go draws; words.go,
// english.go and chinese.go are all texts; page.html and page.css the form.
//
// What may not live here: SQL, the remote, and anything that changes something.
//
// Invariants:
//
//   - What the page shows is recorded in PostgreSQL, so it is right on a standby too.
//   - No secret, no content of a record and no free text of the remote is on it. Ids of
//     records stand only in the sample of a held rebuild, and pass the redactor.
//   - GET and HEAD only. Every request is bounded in bytes and time, and the page reads
//     the mirror on one connection at a time, so that looking never holds up a run.
//   - Nothing is loaded from elsewhere and no script runs: the security policy allows
//     one style sheet, by its hash, and nothing else.
package board
