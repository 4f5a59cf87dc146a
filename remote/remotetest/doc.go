// Package remotetest is a simulator of the Xiaoqu MCP server: the remote of
// this product, small enough to run inside a test and complete enough to try
// an integration without a key.
//
// It is written from the text of the contract (v1.0) with net/http and JSON by
// hand. It imports nothing of the client that it tests and no MCP SDK, so one
// misreading cannot stand on both sides of a test and cancel itself out.
//
//	server.go    listener, one request from arrival to answer; call.go the call log
//	ensure.go    POST /api/open/token/ensure (contract §3)
//	rpc.go       sessions, initialize, tools/list (contract §2)
//	tools.go     tools/call: visibility, arguments, quotas, the context (contract §4)
//	changes.go   rounds, snapshots, cursors, sync tokens (contract §6)
//	page.go      one page and its JSON
//	store.go     the tenant's data and what a test may do to it; row.go its bytes
//	seed.go      data that looks like the trade
//	reply.go     envelope and SSE; failure.go the places an error can travel
//	variants.go  one switch for each thing that the contract leaves open
//	fault.go     the fault plan; wire.go and pagefault.go the ready-made effects
//	strict.go    breaches of the contract by the client
//	control.go   what an administrator of the remote could do, and counters
//
// What may not live here: anything that a production binary needs, and anything
// that knows how the client works.
//
// Invariants:
//
//  1. A round's rows never change after its first page, whatever happens to
//     the data (contract §6, snapshot).
//  2. Every change made after a cut-off has a later modify_time than it, so no
//     change can fall between two rounds.
//  3. The same request in the same round has the same page as its answer,
//     also after the last page: a client that lost an answer may ask again.
//  4. Record bytes are sent exactly as Live and All report them.
//
// Where the contract is silent the zero Variants are a plausible server, not
// the only one. A method that is given an unknown resource or text that is not
// a JSON object panics: that is a mistake in the test, not in what it tests.
package remotetest
