// Package mcp is the door for Xiaoya: the catalogue as tools of an MCP server over
// Streamable HTTP, by the platform's rules for agents ("Xiaoya" in comments).
//
// What lives here: JSON-RPC codes, Mcp-Session-Id, tools and their xiaoya/* and
// x-agentuse-* words, the call context's headers, the result envelope, callbacks,
// artifacts, the manifest and its review. What does not: capabilities, tasks, SQL.
//
// The SDK holds sessions and speaks the protocol's handshake. In front of it stands a
// layer that reads every message itself, so that what is refused is refused before
// the SDK sees it, and with the codes that Xiaoya names.
//
// Invariants:
//
//  1. No tool runs but for a call whose context was checked: signature, age, target
//     agent, invocation.
//  2. The headers of the call context reach nothing behind that check: not the SDK,
//     not a task, not a log, not an answer.
//  3. A platform's invocation is the task's key: the same invocation, the same answer.
//  4. What the platform is told of a task's end has one identity, however often it is
//     told.
package mcp
