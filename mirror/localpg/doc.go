// Package localpg runs a throw-away PostgreSQL server for tests and for the
// demo. No production binary links it.
//
// What lives here: finding the server's programs, making a data directory,
// starting, crashing and stopping a server, a database per test, and what may stand
// before a server: a proxy that counts and cuts, a pooler. What may not: tables,
// migrations, anything that knows what is stored.
//
// Invariants:
//
//  1. A server does not outlive the process that started it. On Linux the kernel
//     sees to it, whatever way that process died. Elsewhere the server stops by
//     itself once its directory is swept away.
//  2. A directory whose owner is dead is removed at the next start. The owner is
//     whoever holds the lock on the file inside it, so a recycled process id
//     cannot mislead.
//  3. Nothing but loopback and a Unix socket in a closed directory listens, and
//     the loopback side asks for a random password.
//  4. A row that was committed is there after [Cluster.Kill] and
//     [Cluster.Restart], durable or not: without [Options.Durable] only a crash
//     of the whole machine may lose it.
//
// PostgreSQL refuses to run as root. A process that is root hands the server to
// the account postgres, else nobody, else (when neither can reach the files) to
// an ordinary user id inside a user namespace.
package localpg
