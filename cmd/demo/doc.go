// Command demo shows the whole thing with one command and nothing installed:
// it starts a throw-away PostgreSQL and a simulated Xiaoqu, runs the real
// xiaoqu-sync against both, changes data upstream, runs it again, and shows
// what a reader of the mirror sees.
//
//	go run ./cmd/demo                 the tour, then everything is gone
//	go run ./cmd/demo --keep          leaves both running, to go on by hand
//	go run ./cmd/demo --remote-only   the simulator alone, to develop against
package main
