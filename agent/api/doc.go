// Package api is the door over plain HTTP, as AgentUse describes it: POST
// /api/v1/capabilities/{id} does a capability, GET /api/v1/capabilities lists them,
// /api/v1/tasks/{id} tells how a task stands, /api/v1/openapi.json describes it all.
//
// What lives here: bearer tokens, status codes, the envelope, the OpenAPI document.
// What does not: what a capability does, where tokens are kept.
//
// Invariants:
//
//  1. Without a valid token nothing is told, not even whether a capability exists.
//  2. Every answer is an envelope, those to broken requests too.
//  3. A caller sees its own tasks only.
//  4. Answers are never stored on the way: they hold personal data.
package api
