// Package relay opens the catalogue of package agent to AI Relay: a supplier of
// RSP 1.0, levels L1 (one endpoint) and L2 (tasks, callbacks, proposals).
//
// What lives here: the signature, the envelopes and what is answered to them, the
// callbacks, the manifest and the rules for it. What may not: what a capability
// does, how a task lives on, SQL. The rules cite the protocol's text as "RSP §N".
//
// Invariants:
//
//  1. Nothing of a body is read before its signature is found right.
//  2. What is understood is answered with HTTP 200, a refusal too: any other status
//     leaves an order in doubt (RSP §2).
//  3. An order is done once. Its first final answer is given again; a passing one is
//     never kept (RSP §10).
//  4. unauthorized is said of a missing binding only: Relay unbinds the user for it
//     (RSP §11).
//  5. No header, secret, binding code, input or record reaches a log.
package relay
