// Package remote is the client of the Xiaoqu MCP contract, version 1.0: the handshake and its session, the unified
// headers, server-sent events, the envelope, the shape of a page, and the names of the errors.
//
// What lives here: everything that knows a header name, a JSON-RPC member or an HTTP status of the MCP endpoint. Types of
// the MCP SDK stop at this package's wall. What does not: how often to ask again, what a refusal means for a mirror, when a
// cursor may move (package sync judges), and how a token is got (package credentials; see [Tokens]).
//
// The files, from the wire upwards:
//
//	transport.go  one HTTP exchange: headers, the one permitted host, no redirects, the byte limit, typed failures
//	body.go       an answer's body: counted, limited, its beginning kept for the judgement
//	capture.go    raw results and errors taken off the connection before the SDK decodes a number
//	exchange.go   what one call saw on the wire
//	session.go    the session: made when first needed, one handshake at a time, dropped when it is lost
//	judge.go      what an exchange that failed is called
//	extract.go    the one reader of error codes, wherever they travel
//	json.go       JSON opened by shape, numbers and text untouched
//	page.go, identity.go, tools.go  the three answers that callers ask for
//
// Invariants:
//
//  1. No number passes through a float: a record is the bytes that the remote sent.
//  2. Every answer is bounded in bytes, time and depth, and the bytes are counted after decompression.
//  3. The token goes to the configured scheme and host only, and no redirect is followed.
//  4. No token, session id or mobile number is in an error or a log line, even when the remote repeats it.
//  5. Nothing is asked twice behind the caller's back, but for a tools/list that came back empty (contract §2.1).
//  6. A session that is lost is never used again, and all callers share one new handshake.
//
// Unlike its neighbours this package may use the standard library's sync: the SDK calls it from goroutines of its own.
package remote
