// Package credentials holds everything that is secret: the service key, the
// access token that it is exchanged for, and the means to keep both out of
// every text that the program writes (contract §3).
//
// What lives here: the Secret type, the sources of the key (environment, file,
// systemd; Vault is next door in credentials/vault), the exchange
// POST /api/open/token/ensure, its renewal, what happens when the key is rotated,
// and the Redactor. What may not: MCP, SQL, configuration files, printing. The
// package imports none of our other rooms.
//
// Invariants:
//
//  1. A key, a token or a mobile number is in no error text and no log line,
//     whatever the level, also when the remote echoes it.
//  2. The key travels to the configured host only: redirects are refused.
//  3. The token lives in memory only. A failed exchange never takes away the
//     token that is there: the remote may still honour it.
//  4. However many callers find the token dead at once, one exchange runs, and
//     a caller that gives up does not fail the others.
//  5. Whatever comes from outside is bounded: 64 KiB an answer, a deadline an
//     attempt, five attempts, at most 60 s between two of them.
package credentials
