// Package vaulttest gives tests a Vault: a real server, built from source by
// test/vaultdev when somebody asked for it, or a stand-in that answers as Vault's
// documentation says. Both stand behind a proxy that can be told to misbehave, so
// that one suite runs against both.
//
// What lives here: starting and building the real server, the stand-in, faults,
// and set-up through Vault's HTTP API. What may not: the package under test, which
// would let one misreading cancel itself out.
package vaulttest
