// Command xiaoqu-sync keeps a PostgreSQL mirror of one Xiaoqu tenant.
//
// This room wires the others, prints, and exits. Each verb has a file; verbs
// return a result or an error and never print. What lives nowhere else: the
// environment, signals, the text and JSON answers (output.go), and the exit
// codes (exit.go). The room alert, below this one, tells people. No rule of the protocol, no SQL and no HTTP lives here.
package main
